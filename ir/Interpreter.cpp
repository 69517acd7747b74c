//===- Interpreter.cpp - runs a graph-level function on host tensors ------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/Interpreter.h"
#include "ir/Evaluate.h"
#include "ir/Guard.h"
#include "ir/InferSupport.h"
#include "ir/InterpreterSession.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
class Interpreter : public InferContext {
public:
  Interpreter(MLIRContext *context, InterpreterSession &session, uint64_t maxTensorBytes)
      : session(session), symbols(session.symbols), maxTensorBytes(maxTensorBytes) {
    this->context = context;
    bindDims.addReplacement([this](DimAttr dim) -> std::optional<std::pair<Attribute, WalkResult>> {
      std::optional<int64_t> value = evaluate(dim, symbols);
      return std::make_pair(value ? dimConstant(this->context, *value) : dim, WalkResult::skip());
    });
  }

  std::optional<Failure> bindInputs(func::FuncOp function, ArrayRef<HostTensor> inputs);
  std::optional<Failure> run(Block &block, std::vector<HostTensor> &outputs);

  void guard(Operation *op, DimAttr lhs, GuardRelation relation, DimAttr rhs, StringRef message) override;
  DimAttr runtimeSymbol(Operation *, StringRef hint) override {
    return dimSymbol(context, ("runtime." + hint + "." + Twine(runtimeSymbols++)).str());
  }

private:
  std::optional<Failure> bindInput(BlockArgument argument, StringRef name, const HostTensor &input);
  /// The relations a function, or a branch, relies on: the guards of `holder`.
  std::optional<Failure> checkGuards(Operation *holder);
  std::optional<Failure> runOp(Operation *op);
  std::optional<Failure> runIf(IfOp op);
  std::optional<Failure> runLoop(LoopOp op);
  std::optional<Failure> makeResults(Operation *op, ArrayRef<HostTensor> operands,
                                     SmallVectorImpl<HostTensor> &results);
  /// The static type of a result, as its declared type and the symbols say it; null if they do not.
  RankedTensorType declaredType(Value result) const;
  Failure failureAt(Operation *op, int exitCode, const Twine &message) const;
  /// The first error that was emitted, or a general one.
  Failure emittedFailure(Operation *op, const Twine &otherwise);

  InterpreterSession &session;
  llvm::StringMap<int64_t> symbols;
  uint64_t maxTensorBytes;
  DenseMap<Value, HostTensor> values;
  AttrTypeReplacer bindDims;
  std::string guardMessage;
  unsigned runtimeSymbols = 0;

public:
  std::string errors; ///< first message of the context's diagnostics
};
} // namespace

Failure Interpreter::failureAt(Operation *op, int exitCode, const Twine &message) const {
  return {exitCode, nodeLabel(op) + " " + message.str(), {}};
}

Failure Interpreter::emittedFailure(Operation *op, const Twine &otherwise) {
  if (errors.empty())
    return failureAt(op, ExitInputs, otherwise);
  // The node's label replaces the op's: "'transept.gather' op has …".
  StringRef text = errors;
  if (text.consume_front("'" + op->getName().getStringRef().str() + "' op "))
    errors = text.str();
  Failure failure = failureAt(op, ExitInputs, errors);
  errors.clear();
  return failure;
}

//===- Inputs -----------------------------------------------------------------------------------------------------===//

std::optional<Failure> Interpreter::bindInput(BlockArgument argument, StringRef name, const HostTensor &input) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  if (!type)
    return std::nullopt;
  auto mismatch = [&](const Twine &what) {
    return Failure{ExitInputs, "input " + quoted(name) + " " + what.str(), {}};
  };
  if (type.getElementType() != input.elementType()) {
    std::string text;
    llvm::raw_string_ostream(text) << "has elements of type " << input.elementType() << ", the graph wants "
                                   << type.getElementType();
    return mismatch(text);
  }
  if (type.getRank() != input.getType().getRank())
    return mismatch("has " + Twine(input.getType().getRank()) + " axes, the graph wants " + Twine(type.getRank()));
  for (auto [axis, dim] : llvm::enumerate(dimsOf(type))) {
    const int64_t size = input.shape()[axis];
    if (!dim)
      continue;
    if (StringRef symbol = symbolName(dim); !symbol.empty())
      symbols.try_emplace(symbol, size);
    std::optional<int64_t> wanted = evaluate(dim, symbols);
    if (wanted && *wanted != size)
      return mismatch("has size " + Twine(size) + " along axis " + Twine(axis) + ", the graph wants " + toString(dim) +
                      (constantValue(dim) ? "" : " = " + std::to_string(*wanted)));
  }
  return std::nullopt;
}

std::optional<Failure> Interpreter::bindInputs(func::FuncOp function, ArrayRef<HostTensor> inputs) {
  if (inputs.size() != function.getNumArguments())
    return Failure{ExitInputs,
                   "the graph has " + std::to_string(function.getNumArguments()) + " inputs, but " +
                       std::to_string(inputs.size()) + " were given",
                   {}};
  for (BlockArgument argument : function.getArguments()) {
    const unsigned index = argument.getArgNumber();
    auto nameAttr = function.getArgAttrOfType<StringAttr>(index, "transept.name");
    const std::string name = nameAttr ? nameAttr.str() : std::to_string(index);
    HostTensor input = inputs[index];
    if (!input) {
      Attribute value = function.getArgAttr(index, "transept.default");
      if (auto elements = dyn_cast_or_null<ElementsAttr>(value))
        input = HostTensor::fromElements(elements);
      else if (auto key = dyn_cast_or_null<StringAttr>(value))
        if (WeightStore::Weight weight = WeightStore::of(context).lookup(key); weight.type)
          input = HostTensor::fromBytes(weight.type, weight.bytes);
      if (!input)
        return Failure{ExitInputs, "input " + quoted(name) + " is missing", {}};
    }
    if (std::optional<Failure> failure = bindInput(argument, name, input))
      return failure;
    values[argument] = input;
  }
  return std::nullopt;
}

//===- Guards -----------------------------------------------------------------------------------------------------===//

void Interpreter::guard(Operation *op, DimAttr lhs, GuardRelation relation, DimAttr rhs, StringRef message) {
  std::optional<int64_t> left = evaluate(lhs, symbols), right = evaluate(rhs, symbols);
  bool holds = left && right;
  if (holds)
    switch (relation) {
    case GuardRelation::Equal:
      holds = *left == *right;
      break;
    case GuardRelation::LessOrEqual:
      holds = *left <= *right;
      break;
    case GuardRelation::GreaterOrEqual:
      holds = *left >= *right;
      break;
    case GuardRelation::NotEqual:
      holds = *left != *right;
      break;
    }
  if (holds || !guardMessage.empty())
    return;
  guardMessage = message.str();
  if (left && right)
    guardMessage += " (" + std::to_string(*left) + " and " + std::to_string(*right) + ")";
}

std::optional<Failure> Interpreter::checkGuards(Operation *holder) {
  auto guards = holder->getAttrOfType<ArrayAttr>(guardsAttrName);
  for (Attribute entry : guards ? guards.getValue() : ArrayRef<Attribute>()) {
    std::optional<Guard> relied = parseGuard(entry);
    if (!relied)
      return Failure{ExitInvalidModel, "a guard is malformed", {}};
    // Sizes that only the data says have no value yet; the ops that depend on them check themselves.
    if (evaluate(relied->lhs, symbols) && evaluate(relied->rhs, symbols))
      guard(holder, relied->lhs, relied->relation, relied->rhs, relied->message);
    if (!guardMessage.empty())
      return Failure{ExitInputs, guardMessage, {}};
  }
  return std::nullopt;
}

//===- Ops --------------------------------------------------------------------------------------------------------===//

RankedTensorType Interpreter::declaredType(Value result) const {
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (!type)
    return {};
  SmallVector<int64_t> shape;
  for (DimAttr dim : dimsOf(type)) {
    std::optional<int64_t> size = dim ? evaluate(dim, symbols) : std::nullopt;
    if (!size || *size < 0)
      return {};
    shape.push_back(*size);
  }
  return RankedTensorType::get(shape, type.getElementType());
}

std::optional<Failure> Interpreter::makeResults(Operation *op, ArrayRef<HostTensor> operands,
                                                SmallVectorImpl<HostTensor> &results) {
  SmallVector<RankedTensorType> types;
  for (Value result : op->getResults())
    types.push_back(declaredType(result));
  if (llvm::is_contained(types, RankedTensorType())) {
    SmallVector<Fact> facts, inferred;
    for (const HostTensor &operand : operands)
      facts.push_back(constantFact(operand));
    if (failed(cast<GraphOp>(op).infer(*this, facts, inferred)))
      return emittedFailure(op, "cannot tell the shape of its result");
    if (!guardMessage.empty())
      return Failure{ExitInputs, guardMessage, {}};
    for (auto [index, fact] : llvm::enumerate(inferred)) {
      auto type = dyn_cast_or_null<RankedTensorType>(fact.type);
      if (!type || !type.hasStaticShape())
        return failureAt(op, ExitInvalidModel, "does not tell the shape of its result");
      types[index] = RankedTensorType::get(type.getShape(), type.getElementType());
      // A size that only the data says has its value from here on.
      if (auto declared = dyn_cast<RankedTensorType>(op->getResult(index).getType()))
        if (declared.getRank() == type.getRank())
          for (auto [axis, dim] : llvm::enumerate(dimsOf(declared)))
            if (dim && !symbolName(dim).empty())
              symbols.try_emplace(symbolName(dim), type.getDimSize(axis));
    }
  }
  for (RankedTensorType type : types) {
    uint64_t bytes = byteWidth(type.getElementType());
    if (bytes == 0)
      return failureAt(op, ExitUnsupported, "has elements of a type that cannot be evaluated");
    for (int64_t size : type.getShape())
      bytes = llvm::SaturatingMultiply<uint64_t>(bytes, std::max<int64_t>(size, 1));
    if (bytes > maxTensorBytes)
      return failureAt(op, ExitLimit, "makes a tensor of more than " + Twine(maxTensorBytes) + " bytes");
    results.push_back(HostTensor::make(type));
  }
  return std::nullopt;
}

std::optional<Failure> Interpreter::runIf(IfOp op) {
  HostTensor condition = values.lookup(op.getCondition());
  if (condition.numElements() != 1)
    return failureAt(op, ExitInputs, "has a condition of " + Twine(condition.numElements()) + " elements");
  Region &region = condition.getInt(0) ? op.getThenRegion() : op.getElseRegion();
  std::vector<HostTensor> outputs;
  if (std::optional<Failure> failure = run(region.front(), outputs))
    return failure;
  for (auto [result, output] : llvm::zip_equal(op.getResults(), outputs)) {
    values[result] = output;
    if (auto type = dyn_cast<RankedTensorType>(result.getType()); type && type.getRank() == output.getType().getRank())
      for (auto [axis, dim] : llvm::enumerate(dimsOf(type)))
        if (dim && !symbolName(dim).empty())
          symbols.try_emplace(symbolName(dim), output.shape()[axis]);
  }
  return std::nullopt;
}

/// The elements collected in every repetition, one after another.
static HostTensor stack(ArrayRef<HostTensor> parts, RankedTensorType declared) {
  SmallVector<int64_t> shape = {static_cast<int64_t>(parts.size())};
  if (parts.empty())
    for (int64_t size : declared.getShape().drop_front())
      shape.push_back(ShapedType::isDynamic(size) ? 0 : size);
  else
    llvm::append_range(shape, parts.front().shape());
  HostTensor result = HostTensor::make(RankedTensorType::get(shape, declared.getElementType()));
  char *to = result.data();
  for (const HostTensor &part : parts)
    to = llvm::copy(part.bytes(), to);
  return result;
}

std::optional<Failure> Interpreter::runLoop(LoopOp op) {
  Block &body = op.getBody().front();
  auto numberOf = [&](Value value, int64_t otherwise) { return value ? values.lookup(value).getInt(0) : otherwise; };
  const int64_t limit = numberOf(op.getCount(), std::numeric_limits<int64_t>::max());
  bool again = numberOf(op.getCondition(), 1) != 0;
  std::vector<HostTensor> carried;
  for (Value initial : op.getInitial())
    carried.push_back(values.lookup(initial));
  std::vector<SmallVector<HostTensor>> collected(op.getNumResults() - carried.size());
  const llvm::StringMap<int64_t> before = symbols;
  uint64_t bytes = 0;
  auto bind = [&](Value value, const HostTensor &tensor) {
    values[value] = tensor;
    if (auto type = dyn_cast<RankedTensorType>(value.getType()); type && type.getRank() == tensor.getType().getRank())
      for (auto [axis, dim] : llvm::enumerate(dimsOf(type)))
        if (dim && !symbolName(dim).empty())
          symbols[symbolName(dim)] = tensor.shape()[axis];
  };
  for (int64_t i = 0; i < limit && again; ++i) {
    symbols = before; // what the body found out last time holds no longer
    HostTensor number = HostTensor::make(RankedTensorType::get({}, IntegerType::get(context, 64)));
    number.setInt(0, i);
    HostTensor flag = HostTensor::make(RankedTensorType::get({}, IntegerType::get(context, 1)));
    flag.setInt(0, again);
    bind(body.getArgument(0), number);
    bind(body.getArgument(1), flag);
    for (auto [argument, value] : llvm::zip(body.getArguments().drop_front(2), carried))
      bind(argument, value);
    std::vector<HostTensor> outputs;
    if (std::optional<Failure> failure = run(body, outputs))
      return failure;
    again = outputs.front().getInt(0) != 0;
    std::copy_n(outputs.begin() + 1, carried.size(), carried.begin());
    for (auto [list, element] : llvm::zip(collected, llvm::drop_begin(outputs, carried.size() + 1))) {
      if (!list.empty() && list.front().getType() != element.getType())
        return failureAt(op, ExitInputs, "collects elements of different shapes");
      list.push_back(element);
      bytes += element.bytes().size();
    }
    if (bytes > maxTensorBytes)
      return failureAt(op, ExitLimit, "makes a tensor of more than " + Twine(maxTensorBytes) + " bytes");
  }
  symbols = before;
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    bind(result, i < carried.size() ? carried[i]
                                    : stack(collected[i - carried.size()], cast<RankedTensorType>(result.getType())));
  return std::nullopt;
}

std::optional<Failure> Interpreter::runOp(Operation *op) {
  if (auto conditional = dyn_cast<IfOp>(op))
    return runIf(conditional);
  if (auto loop = dyn_cast<LoopOp>(op))
    return runLoop(loop);
  if (!isa<GraphOp>(op))
    return failureAt(op, ExitInvalidModel, "is no graph op");
  SmallVector<HostTensor> operands, results;
  for (Value operand : op->getOperands())
    operands.push_back(values.lookup(operand));
  if (std::optional<Failure> failure = makeResults(op, operands, results))
    return failure;
  LogicalResult evaluated = failure();
  if (isa<StateOp, ExportOp, CacheAppendOp, CacheAttentionOp, CrossAttentionOp, SearchHeadOp>(op)) {
    evaluated = evaluateInSession(op, operands, session, results);
  } else {
    // Attributes may hold expressions: a copy of the op gets their values.
    auto attributes = cast<DictionaryAttr>(bindDims.replace(op->getAttrDictionary()));
    if (attributes == op->getAttrDictionary()) {
      evaluated = cast<GraphOp>(op).evaluate(operands, results);
    } else {
      Operation *copy = op->cloneWithoutRegions();
      copy->setAttrs(attributes);
      evaluated = cast<GraphOp>(copy).evaluate(operands, results);
      copy->destroy();
    }
  }
  if (failed(evaluated))
    return emittedFailure(op, "failed");
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
    values[result] = value;
  return std::nullopt;
}

std::optional<Failure> Interpreter::run(Block &block, std::vector<HostTensor> &outputs) {
  Operation *holder = isa<func::FuncOp>(block.getParentOp()) ? block.getParentOp() : block.getTerminator();
  if (std::optional<Failure> failure = checkGuards(holder))
    return failure;
  for (Operation &op : block.without_terminator())
    if (std::optional<Failure> failure = runOp(&op))
      return failure;
  for (Value operand : block.getTerminator()->getOperands())
    outputs.push_back(values.lookup(operand));
  return std::nullopt;
}

Outcome<std::vector<HostTensor>> transept::interpret(func::FuncOp function, ArrayRef<HostTensor> inputs,
                                                     InterpreterSession *session, uint64_t maxTensorBytes) {
  InterpreterSession none;
  Interpreter interpreter(function.getContext(), session ? *session : none, maxTensorBytes);
  ScopedDiagnosticHandler handler(function.getContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && interpreter.errors.empty())
      interpreter.errors = diagnostic.str();
    return success();
  });
  if (function.isExternal())
    return Failure{ExitInvalidModel, "the function has no body", {}};
  if (std::optional<Failure> failure = interpreter.bindInputs(function, inputs))
    return *failure;
  std::vector<HostTensor> outputs;
  if (std::optional<Failure> failure = interpreter.run(function.front(), outputs))
    return *failure;
  return outputs;
}
