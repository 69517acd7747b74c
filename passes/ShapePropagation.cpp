//===- ShapePropagation.cpp - facts of all values of a function ------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Shapes.h"
#include "passes/SizeMath.h"

using namespace mlir;
using namespace mlir::transept;

/// Tensors of more than 2^40 elements cannot be meant.
static bool isTooLarge(ArrayRef<int64_t> shape) {
  int64_t left = int64_t(1) << 40;
  for (int64_t size : shape) {
    if (ShapedType::isDynamic(size) || size == 0)
      continue;
    if (size > left)
      return true;
    left /= size;
  }
  return false;
}

ShapePropagation::ShapePropagation(func::FuncOp function) : function(function) {
  context = function.getContext();
  // A run-time symbol must have a new name.
  symbolNames = symbolNamesOf(function);
}

//===- InferContext
//-------------------------------------------------------------------------------------------------===//

/// Divides both sides by what they have in common: sizes in a guard are positive or make it trivial.
static void cancelCommonFactors(DimAttr &lhs, DimAttr &rhs) {
  SmallVector<StringRef> symbols;
  collectSymbols(lhs, symbols);
  for (StringRef name : symbols) {
    DimAttr symbol = dimSymbol(lhs.getContext(), name);
    while (dependsOn(rhs, name)) {
      std::optional<DimAttr> a = dimExactDiv(lhs, symbol), b = dimExactDiv(rhs, symbol);
      if (!a || !b)
        break;
      lhs = *a;
      rhs = *b;
    }
  }
  for (int64_t factor : {2, 3, 5, 7, 11, 13})
    for (unsigned rounds = 0; rounds < 32; ++rounds) {
      DimAttr constant = dimConstant(lhs.getContext(), factor);
      std::optional<DimAttr> a = dimExactDiv(lhs, constant), b = dimExactDiv(rhs, constant);
      if (!a || !b)
        break;
      lhs = *a;
      rhs = *b;
    }
}

/// min(a, b) = a says a <= b.
static void simplifyMinimum(DimAttr &lhs, GuardRelation &relation, DimAttr &rhs) {
  for (bool swap : {false, true}) {
    DimAttr minimum = swap ? rhs : lhs, other = swap ? lhs : rhs;
    if (static_cast<DimKind>(minimum.getKind()) != DimKind::Min || minimum.getOperands().size() != 2)
      continue;
    for (unsigned i : {0, 1})
      if (minimum.getOperands()[i] == other) {
        lhs = other;
        rhs = cast<DimAttr>(minimum.getOperands()[1 - i]);
        relation = GuardRelation::LessOrEqual;
        return;
      }
  }
}

static std::optional<bool> decide(DimAttr lhs, GuardRelation relation, DimAttr rhs) {
  switch (relation) {
  case GuardRelation::Equal:
    return decideEqual(lhs, rhs);
  case GuardRelation::LessOrEqual:
    return decideLessOrEqual(lhs, rhs);
  case GuardRelation::GreaterOrEqual:
    return decideLessOrEqual(rhs, lhs);
  case GuardRelation::NotEqual:
    if (std::optional<bool> equal = decideEqual(lhs, rhs))
      return !*equal;
    return std::nullopt;
  }
  return std::nullopt;
}

void ShapePropagation::guard(Operation *op, DimAttr lhs, GuardRelation relation, DimAttr rhs, StringRef message) {
  if (relation == GuardRelation::Equal) {
    cancelCommonFactors(lhs, rhs);
    simplifyMinimum(lhs, relation, rhs);
  }
  if (std::optional<bool> decided = decide(lhs, relation, rhs)) {
    if (!*decided && !contradiction) {
      contradiction = true;
      op->emitOpError() << "can never run: " << message;
    }
    return;
  }
  SmallVector<Guard> &list = guards[op->getBlock()];
  bool known = llvm::any_of(list, [&](const Guard &other) {
    return other.relation == relation && ((other.lhs == lhs && other.rhs == rhs) ||
                                          (relation == GuardRelation::Equal && other.lhs == rhs && other.rhs == lhs));
  });
  if (!known)
    list.push_back({lhs, relation, rhs, message.str()});
}

DimAttr ShapePropagation::runtimeSymbol(Operation *op, StringRef hint) {
  // The op keeps its names, so that another run of the pass says the same.
  auto names = op->getAttrOfType<ArrayAttr>(symbolsAttrName);
  SmallVector<Attribute> list(names ? names.getValue() : ArrayRef<Attribute>());
  unsigned index = symbolsHanded++;
  if (index < list.size())
    if (auto name = dyn_cast<StringAttr>(list[index]))
      return dimSymbol(context, name);
  std::string name;
  for (unsigned number = 0;; ++number) {
    name = (hint + "." + Twine(number)).str();
    if (symbolNames.insert(name).second)
      break;
  }
  list.resize(index);
  list.push_back(StringAttr::get(context, name));
  op->setAttr(symbolsAttrName, ArrayAttr::get(context, list));
  return dimSymbol(context, name);
}

//===- Propagation
//--------------------------------------------------------------------------------------------------===//

void ShapePropagation::inheritGuards(Operation *op, Operation *owner) {
  for (const Guard &old : guardsFromAttr(owner->getAttrOfType<ArrayAttr>(guardsAttrName)))
    guard(op, old.lhs, old.relation, old.rhs, old.message);
}

/// Dynamic axes that nobody named get the argument's name and the axis.
void ShapePropagation::nameArguments() {
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    Dims dims = dimsOf(type);
    if (!llvm::is_contained(dims, DimAttr()))
      continue;
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "transept.name");
    std::string prefix = name ? name.str() : "arg" + std::to_string(argument.getArgNumber());
    for (auto [axis, dim] : llvm::enumerate(dims)) {
      if (dim)
        continue;
      std::string label = prefix + "_dim" + std::to_string(axis);
      while (!symbolNames.insert(label).second)
        label += "_";
      dim = dimSymbol(context, label);
    }
    argument.setType(makeType(dims, type.getElementType()));
  }
}

LogicalResult ShapePropagation::run() {
  nameArguments();
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<TensorType>(argument.getType());
    if (!type)
      return function.emitError() << "argument " << argument.getArgNumber() << " is no tensor";
    facts[argument].type = type;
  }
  inheritGuards(function.front().getTerminator(), function);
  if (failed(processBlock(function.front())) || contradiction)
    return failure();
  function.setFunctionType(FunctionType::get(context, function.front().getArgumentTypes(),
                                             function.front().getTerminator()->getOperandTypes()));
  return success();
}

LogicalResult ShapePropagation::processBlock(Block &block) {
  for (auto it = block.begin(); it != block.end();) {
    Operation *op = &*it;
    if (auto branches = dyn_cast<IfOp>(op)) {
      const Fact &condition = facts[branches.getCondition()];
      std::optional<SmallVector<int64_t>> decided = constantInts(condition);
      if (decided && decided->size() == 1) {
        it = inlineBranch(branches, decided->front() != 0);
        continue;
      }
    }
    if (failed(processOp(op)))
      return failure();
    ++it;
  }
  return success();
}

Block::iterator ShapePropagation::inlineBranch(IfOp op, bool condition) {
  Block &branch = (condition ? op.getThenRegion() : op.getElseRegion()).front();
  Operation *yield = branch.getTerminator();
  for (auto [result, value] : llvm::zip(op.getResults(), yield->getOperands()))
    result.replaceAllUsesWith(value);
  Block *block = op->getBlock();
  // What the branch relies on, the graph around it now does.
  inheritGuards(op, yield);
  yield->erase();
  Block::iterator before = op->getIterator();
  bool first = before == block->begin();
  Block::iterator previous = first ? before : std::prev(before);
  block->getOperations().splice(before, branch.getOperations());
  op.erase();
  return first ? block->begin() : std::next(previous);
}

/// Small results of constants are constants.
void ShapePropagation::evaluateConstants(Operation *op, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  if (results.size() != 1 || results[0].constant || op->getNumRegions() != 0 || !isPure(op) || isa<WeightOp>(op))
    return;
  Fact &result = results[0];
  std::optional<SmallVector<int64_t>> shape = smallShape(result);
  if (!shape)
    return;
  auto type = RankedTensorType::get(*shape, elementTypeOf(result));
  if (std::optional<SmallVector<int64_t>> values = constantInts(result)) {
    HostTensor tensor = HostTensor::make(type);
    for (auto [i, value] : llvm::enumerate(*values))
      isa<FloatType>(type.getElementType()) ? tensor.setDouble(i, static_cast<double>(value)) : tensor.setInt(i, value);
    result.constant = std::move(tensor);
    return;
  }
  SmallVector<HostTensor> inputs, outputs{HostTensor::make(type)};
  for (const Fact &operand : operands) {
    if (!operand.constant)
      return;
    inputs.push_back(operand.constant);
  }
  // What cannot be evaluated fails when (and if) it runs.
  ScopedDiagnosticHandler quiet(context, [](Diagnostic &) { return success(); });
  if (succeeded(cast<GraphOp>(op).evaluate(inputs, outputs)) && outputs.size() == 1 && outputs[0].getType() == type) {
    std::optional<Content> content = std::move(result.content);
    result = constantFact(std::move(outputs[0]));
    if (!result.content)
      result.content = std::move(content);
  }
}

/// What is carried may change its sizes: each is a symbol of the loop until the body shows that it stays.
LogicalResult ShapePropagation::processLoop(LoopOp op) {
  Block &body = op.getBody().front();
  symbolsHanded = 0;
  (void)runtimeSymbol(op, "iterations");
  auto setFact = [&](unsigned argument, TensorType type) {
    body.getArgument(argument).setType(type);
    facts[body.getArgument(argument)] = Fact{type, std::nullopt, HostTensor()};
  };
  setFact(0, RankedTensorType::get({}, IntegerType::get(context, 64)));
  setFact(1, RankedTensorType::get({}, IntegerType::get(context, 1)));
  auto owns = [&](DimAttr dim) {
    auto names = op->getAttrOfType<ArrayAttr>(symbolsAttrName);
    return llvm::is_contained(names, StringAttr::get(context, symbolName(dim)));
  };
  for (auto [i, initial] : llvm::enumerate(op.getInitial())) {
    auto first = dyn_cast<RankedTensorType>(initial.getType());
    auto known = dyn_cast<RankedTensorType>(body.getArgument(i + 2).getType());
    if (!first) {
      setFact(i + 2, cast<TensorType>(initial.getType()));
      continue;
    }
    Dims dims = dimsOf(first);
    for (auto [axis, dim] : llvm::enumerate(dims)) {
      if (!known)
        dim = runtimeSymbol(op, "carried");
      else if (known.getRank() == first.getRank() && owns(dimsOf(known)[axis]))
        dim = dimsOf(known)[axis];
    }
    setFact(i + 2, makeType(dims, first.getElementType()));
  }
  inheritGuards(body.getTerminator(), body.getTerminator());
  if (failed(processBlock(body)))
    return failure();
  for (auto [i, initial] : llvm::enumerate(op.getInitial())) {
    auto argument = dyn_cast<RankedTensorType>(body.getArgument(i + 2).getType());
    auto yielded = dyn_cast<RankedTensorType>(body.getTerminator()->getOperand(i + 1).getType());
    if (!argument || !yielded)
      continue;
    if (argument.getRank() != yielded.getRank())
      return op.emitOpError() << "carries a value with " << argument.getRank() << " axes and yields one with "
                              << yielded.getRank();
    Dims from = dimsOf(cast<RankedTensorType>(initial.getType())), at = dimsOf(argument), to = dimsOf(yielded);
    for (size_t axis = 0; axis < at.size(); ++axis)
      if (at[axis] != from[axis] && at[axis] == to[axis] && owns(at[axis]))
        constantSizes.emplace_back(symbolName(at[axis]).str(), from[axis]);
  }
  return success();
}

LogicalResult ShapePropagation::processOp(Operation *op) {
  if (auto loop = dyn_cast<LoopOp>(op)) {
    if (failed(processLoop(loop)))
      return failure();
    return inferResults(op);
  }
  for (Region &region : op->getRegions())
    for (Block &block : region) {
      inheritGuards(block.getTerminator(), block.getTerminator());
      if (failed(processBlock(block)))
        return failure();
    }
  return isa<GraphOp>(op) ? inferResults(op) : success();
}

LogicalResult ShapePropagation::inferResults(Operation *op) {
  auto graphOp = cast<GraphOp>(op);
  SmallVector<Fact> operands, results;
  for (Value operand : op->getOperands())
    operands.push_back(facts[operand]);
  symbolsHanded = 0;
  if (failed(graphOp.infer(*this, operands, results)))
    return failure();
  if (results.size() != op->getNumResults())
    return op->emitOpError() << "inferred " << results.size() << " results";
  for (auto [value, fact] : llvm::zip(op->getResults(), results)) {
    if (RankedTensorType type = fact.ranked(); type && isTooLarge(type.getShape()))
      return op->emitOpError() << "makes a tensor of shape " << toString(dimsOf(type)) << ", which is too large";
    value.setType(fact.type);
  }
  evaluateConstants(op, operands, results);
  for (auto [value, fact] : llvm::zip(op->getResults(), results))
    facts[value] = std::move(fact);
  return success();
}
