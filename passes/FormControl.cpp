//===- FormControl.cpp - branches and loops as labels and jumps ---------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry stays a list of kernels: labels, jumps and variables say in which order they run. What is set to a variable
// is copied behind the label that sets up its memory, so nothing that a variable is set to may live in it.

#include "ir/Guard.h"
#include "ir/InferSupport.h"
#include "mlir/IR/Builders.h"
#include "passes/FormOps.h"
#include "passes/PlanEntry.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// Symbols that get their values while the ops of a block run.
SmallVector<StringRef> symbolsSetBy(Operation *op) {
  SmallVector<StringRef> symbols;
  auto add = [&](ArrayAttr names) {
    for (Attribute name : names ? names.getValue() : ArrayRef<Attribute>())
      symbols.push_back(cast<StringAttr>(name).getValue());
  };
  if (auto read = dyn_cast<ReadSizesOp>(op))
    add(read.getSymbolsAttr());
  else if (isa<IfOp, LoopOp>(op))
    add(op->getAttrOfType<ArrayAttr>("transept.symbols"));
  return symbols;
}

class ControlFlow {
public:
  ControlFlow(FormContext &f, Operation *op, StringRef kind)
      : f(f), op(op), loc(op->getLoc()), name(f.fresh(kind)), arena(f.builder.getStringAttr(name)) {
    if (auto own = op->getAttrOfType<ArrayAttr>("transept.symbols"))
      for (Attribute symbol : own)
        symbols.insert(cast<StringAttr>(symbol).getValue());
  }

  FormContext &f;
  Operation *op;
  Location loc;
  std::string name; // of its arena, and before the names of its labels and variables
  StringAttr arena;
  llvm::StringSet<> symbols;

  std::string labelName(StringRef part) const { return (name + "." + part).str(); }
  void label(StringRef part) {
    f.builder.create<kernel::LabelOp>(loc, f.builder.getStringAttr(labelName(part)), ArrayAttr(), ArrayAttr(),
                                      StringAttr());
  }
  /// A label that sets the op's own symbols among `to` to what stands at the same place of `from`, and sets up the
  /// arena.
  void label(StringRef part, ArrayRef<DimAttr> to, ArrayRef<DimAttr> from);
  void jump(StringRef part) { f.builder.create<kernel::JumpOp>(loc, labelName(part)); }
  void branch(Value condition, StringRef part, StringRef otherwise) {
    f.builder.create<kernel::BranchOp>(loc, condition, labelName(part), labelName(otherwise));
  }
  Value variable(ArrayRef<DimAttr> dims, Type elementType) {
    return f.builder.create<kernel::VariableOp>(
        loc, plainType(dims, elementType), f.builder.getStringAttr(f.fresh(labelName("value"))), arena, f.dims(dims));
  }
  void set(Value value, Value variable) { f.builder.create<kernel::SetOp>(loc, value, variable); }
  /// Forms the ops of a block. What they rely on is checked as soon as all of its sizes are known.
  LogicalResult formBlock(Block &block);
  /// A tensor that a kernel made since `label`: what is not is copied.
  Value computed(Value tensor);
};

void ControlFlow::label(StringRef part, ArrayRef<DimAttr> to, ArrayRef<DimAttr> from) {
  SmallVector<StringRef> names;
  SmallVector<Attribute> values;
  for (auto [symbol, value] : llvm::zip(to, from))
    if (StringRef text = symbolName(symbol); symbols.contains(text) && !llvm::is_contained(names, text)) {
      names.push_back(text);
      values.push_back(value);
    }
  f.builder.create<kernel::LabelOp>(loc, f.builder.getStringAttr(labelName(part)),
                                    names.empty() ? ArrayAttr() : f.builder.getStrArrayAttr(names),
                                    names.empty() ? ArrayAttr() : f.builder.getArrayAttr(values), arena);
}

LogicalResult ControlFlow::formBlock(Block &block) {
  SmallVector<Attribute> waiting;
  if (auto guards = block.getTerminator()->getAttrOfType<ArrayAttr>(guardsAttrName))
    llvm::append_range(waiting, guards);
  llvm::StringSet<> unknown;
  for (Operation &inner : block)
    for (StringRef symbol : symbolsSetBy(&inner))
      unknown.insert(symbol);
  auto check = [&] {
    llvm::erase_if(waiting, [&](Attribute guard) {
      SmallVector<StringRef> used;
      guard.walk([&](DimAttr dim) { collectSymbols(dim, used); });
      if (llvm::any_of(used, [&](StringRef symbol) { return unknown.contains(symbol); }))
        return false;
      f.builder.create<kernel::GuardOp>(loc, cast<DictionaryAttr>(guard));
      return true;
    });
  };
  check();
  for (Operation &inner : block.without_terminator()) {
    if (isa<ExportOp, CacheAppendOp, SearchHeadOp>(inner))
      return emitUnsupported(op) << "changes states in a branch";
    if (failed(formOp(f, &inner)))
      return failure();
    SmallVector<StringRef> known = symbolsSetBy(&inner);
    for (StringRef symbol : known)
      unknown.erase(symbol);
    if (!known.empty())
      check();
  }
  return success();
}

Value ControlFlow::computed(Value tensor) {
  if (isa_and_nonnull<kernel::KernelOp>(rootOf(tensor).getDefiningOp()))
    return tensor;
  return f.map(loc, shapeOf(tensor).getDims(), {tensor}, kernel::elementTypeOf(tensor.getType()),
               [](Body &b, ValueRange indices, ValueRange sources) { return b.loadWide(sources[0], indices); });
}

void appendDims(SmallVectorImpl<DimAttr> &dims, Value graphValue) { llvm::append_range(dims, graphDims(graphValue)); }

Value firstElement(Body &b, Value source, Value tensor) {
  return b.loadWide(source, SmallVector<Value>(shapeOf(tensor).getDims().size(), b.index(0)));
}

} // namespace

LogicalResult transept::formBranches(FormContext &f, IfOp op) {
  ControlFlow flow(f, op, "if");
  SmallVector<Value> results;
  SmallVector<DimAttr> dims;
  for (Value result : op.getResults()) {
    results.push_back(flow.variable(graphDims(result), graphElementType(result)));
    appendDims(dims, result);
  }
  flow.branch(f.tensor(op.getCondition()), "then", "else");
  for (auto [part, region] : {std::pair("then", &op.getThenRegion()), std::pair("else", &op.getElseRegion())}) {
    flow.label(part);
    if (failed(flow.formBlock(region->front())))
      return failure();
    OperandRange yielded = region->front().getTerminator()->getOperands();
    SmallVector<DimAttr> own;
    for (Value value : yielded)
      appendDims(own, value);
    flow.label((Twine(part) + "_results").str(), dims, own);
    for (auto [value, variable] : llvm::zip(yielded, results))
      flow.set(f.tensor(value), variable);
    flow.jump("end");
  }
  flow.label("end");
  for (auto [result, variable] : llvm::zip(op.getResults(), results))
    f.define(result, variable);
  return success();
}

namespace {

/// Builds one loop. Its state: the number of the repetition, whether to go on, what is carried, what was collected.
class LoopForm {
public:
  LoopForm(FormContext &f, LoopOp op)
      : f(f), op(op), flow(f, op, "loop"), body(op.getBody().front()), carried(op.getInitial().size()) {}
  LogicalResult run();

private:
  OperandRange yielded() { return body.getTerminator()->getOperands(); }
  OperandRange elements() { return yielded().drop_front(1 + carried); }
  void checkCollected();
  void makeVariables();
  Value goesOn();
  Value appended(Value collected, Value element);
  Value number(int64_t value);

  FormContext &f;
  LoopOp op;
  ControlFlow flow;
  Block &body;
  size_t carried;
  DimAttr done; // repetitions so far
  Value iteration, again;
  SmallVector<Value> values, collected;
  SmallVector<DimAttr> carriedDims; // sizes of what is carried, `done`, sizes of what is collected
};

/// Elements have the shape of the first one.
void LoopForm::checkCollected() {
  DimAttr zero = f.constant(0);
  for (auto [list, element] : llvm::zip(collected, elements()))
    for (auto [dim, size] : llvm::zip(shapeOf(list).getDims().drop_front(), graphDims(element)))
      if (dim != size) {
        Guard guard{dimMul(done, dimSub(size, dim)), GuardRelation::Equal, zero,
                    nodeLabel(op) + " collects elements of one shape: " + toString(size) + " changes"};
        f.builder.create<kernel::GuardOp>(flow.loc, cast<DictionaryAttr>(guardsToAttr(f.context(), guard)[0]));
      }
}

void LoopForm::makeVariables() {
  DimAttr symbol = f.symbol(f.fresh(flow.name + ".done"));
  flow.symbols.insert(symbolName(symbol));
  done = symbol;
  iteration = flow.variable({}, f.builder.getI64Type());
  again = flow.variable({}, f.builder.getI1Type());
  for (BlockArgument argument : body.getArguments().drop_front(2)) {
    values.push_back(flow.variable(graphDims(argument), graphElementType(argument)));
    appendDims(carriedDims, argument);
  }
  carriedDims.push_back(done);
  for (Value result : op.getResults().drop_front(carried)) {
    SmallVector<DimAttr> dims = graphDims(result);
    dims.front() = done;
    collected.push_back(flow.variable(dims, graphElementType(result)));
    carriedDims.append(dims.begin() + 1, dims.end());
  }
}

Value LoopForm::number(int64_t value) {
  return f.map(flow.loc, {}, {}, f.builder.getI64Type(),
               [&](Body &b, ValueRange, ValueRange) { return b.integer(b.getI64Type(), value); });
}

Value LoopForm::goesOn() {
  SmallVector<Value> inputs = {again, iteration};
  if (op.getCount())
    inputs.push_back(f.tensor(op.getCount()));
  return f.map(flow.loc, {}, inputs, f.builder.getI1Type(), [&](Body &b, ValueRange, ValueRange sources) {
    Value go = b.loadWide(sources[0], {});
    if (sources.size() == 3)
      go = b.both(go, b.less(b.loadWide(sources[1], {}), firstElement(b, sources[2], inputs[2])));
    return go;
  });
}

/// The collected elements and one more.
Value LoopForm::appended(Value list, Value element) {
  SmallVector<DimAttr> dims(shapeOf(element).getDims());
  dims.insert(dims.begin(), dimAdd(done, f.constant(1)));
  return f.map(flow.loc, dims, {list, element}, kernel::elementTypeOf(list.getType()),
               [&](Body &b, ValueRange at, ValueRange sources) {
                 return b.choose(
                     b.less(at.front(), b.size(done)), [&](Body &inner) { return inner.loadWide(sources[0], at); },
                     [&](Body &inner) { return inner.loadWide(sources[1], at.drop_front()); });
               });
}

LogicalResult LoopForm::run() {
  makeVariables();
  // At first.
  SmallVector<DimAttr> dims;
  SmallVector<Value> first;
  for (Value initial : op.getInitial()) {
    appendDims(dims, initial);
    first.push_back(f.tensor(initial));
  }
  dims.resize(carriedDims.size(), f.constant(0)); // nothing is collected
  Value zero = number(0), start = op.getCondition() ? f.tensor(op.getCondition()) : Value();
  Value flag = f.map(flow.loc, {}, start ? ArrayRef<Value>(start) : ArrayRef<Value>(), f.builder.getI1Type(),
                     [&](Body &b, ValueRange, ValueRange sources) {
                       return sources.empty() ? b.boolean(true) : firstElement(b, sources[0], start);
                     });
  flow.label("enter", carriedDims, dims);
  flow.set(zero, iteration);
  flow.set(flag, again);
  for (auto [value, variable] : llvm::zip(first, values))
    flow.set(value, variable);

  flow.label("test");
  flow.branch(goesOn(), "body", "end");

  flow.label("body");
  f.define(body.getArgument(0), iteration);
  f.define(body.getArgument(1), again);
  for (auto [argument, variable] : llvm::zip(body.getArguments().drop_front(2), values))
    f.define(argument, variable);
  if (failed(flow.formBlock(body)))
    return failure();
  SmallVector<Value> next;
  dims.clear();
  for (Value value : yielded().drop_front().take_front(carried)) {
    appendDims(dims, value);
    next.push_back(flow.computed(f.tensor(value)));
  }
  dims.push_back(dimAdd(done, f.constant(1)));
  for (Value element : elements())
    appendDims(dims, element);
  checkCollected();
  Value condition = f.tensor(yielded().front());
  Value nextFlag =
      f.map(flow.loc, {}, {condition}, f.builder.getI1Type(),
            [&](Body &b, ValueRange, ValueRange sources) { return firstElement(b, sources[0], condition); });
  Value nextNumber =
      f.map(flow.loc, {}, {iteration}, f.builder.getI64Type(), [](Body &b, ValueRange, ValueRange sources) {
        return b.add(b.loadWide(sources[0], {}), b.integer(b.getI64Type(), 1));
      });
  SmallVector<Value> longer;
  for (auto [list, element] : llvm::zip(collected, elements()))
    longer.push_back(appended(list, f.tensor(element)));

  flow.label("next", carriedDims, dims);
  flow.set(nextNumber, iteration);
  flow.set(nextFlag, again);
  for (auto [value, variable] : llvm::zip(next, values))
    flow.set(value, variable);
  for (auto [value, variable] : llvm::zip(longer, collected))
    flow.set(value, variable);
  flow.jump("test");

  // The number of repetitions has a name of its own in the shapes of what was collected.
  SmallVector<DimAttr> counts, counted;
  for (Value result : op.getResults().drop_front(carried)) {
    counts.push_back(graphDims(result).front());
    counted.push_back(done);
  }
  SmallVector<StringRef> names;
  for (DimAttr count : counts)
    if (StringRef text = symbolName(count); flow.symbols.contains(text) && !llvm::is_contained(names, text))
      names.push_back(text);
  f.builder.create<kernel::LabelOp>(
      flow.loc, f.builder.getStringAttr(flow.labelName("end")),
      names.empty() ? ArrayAttr() : f.builder.getStrArrayAttr(names),
      names.empty() ? ArrayAttr() : f.builder.getArrayAttr(SmallVector<Attribute>(names.size(), done)), StringAttr());
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    f.define(result, i < carried ? values[i] : f.view(flow.loc, collected[i - carried], graphDims(result)));
  return success();
}

} // namespace

LogicalResult transept::form(FormContext &f, LoopOp op) { return LoopForm(f, op).run(); }
