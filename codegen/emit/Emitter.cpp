//===- Emitter.cpp - building the code of one kernel --------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/emit/Emitter.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "transept/abi.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::emit;

Emitter::Emitter(OpBuilder &builder, FuncOp source, const Machine &machine, const KernelFunction &call)
    : b(builder), loc(source.getLoc()), machine(machine), scratch(call.scratch), function(call.function),
      error(call.error) {
  b.setInsertionPointToEnd(&function.getBody().front());
  Type pointerType = call.buffers.getType(), i64 = b.getI64Type();
  for (unsigned i = 0; i < source.getBody().getNumArguments(); ++i)
    buffers.push_back(load(pointer(call.buffers, i, pointerType), pointerType));
  for (auto [i, name] : llvm::enumerate(source.getSymbols().getAsValueRange<StringAttr>()))
    symbols[name] = castIndex(load(pointer(call.sizes, i, i64), i64), b.getIndexType());
  begin = castIndex(call.begin, b.getIndexType());
  end = castIndex(call.end, b.getIndexType());
  sizesEnd = index(0).getDefiningOp();
}

Value Emitter::buffer(Value argument) const { return buffers[cast<BlockArgument>(argument).getArgNumber()]; }

//===- What the dispatch passes
//------------------------------------------------------------------------------------===//

Value Emitter::dim(DimAttr expression) {
  using mlir::transept::DimKind;
  if (Value known = dims.lookup(expression))
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(sizesEnd);
  auto operand = [&](unsigned i) { return dim(cast<DimAttr>(expression.getOperands()[i])); };
  auto fold = [&](llvm::function_ref<Value(Value, Value)> combine) {
    Value result = operand(0);
    for (unsigned i = 1; i < expression.getOperands().size(); ++i)
      result = combine(result, operand(i));
    return result;
  };
  Value result;
  switch (static_cast<DimKind>(expression.getKind())) {
  case DimKind::Constant:
    result = index(expression.getValue());
    break;
  case DimKind::Symbol:
    result = symbols.lookup(expression.getName());
    if (!result) {
      if (!unknownSymbol)
        emitError(loc) << "kernel.func does not list the symbol '" << expression.getName() << "'";
      unknownSymbol = true;
      result = index(0);
    }
    break;
  case DimKind::Sum:
    result = fold([&](Value x, Value y) { return add(x, y); });
    break;
  case DimKind::Product:
    result = mul(index(expression.getValue()), fold([&](Value x, Value y) { return mul(x, y); }));
    break;
  case DimKind::Min:
    result = fold([&](Value x, Value y) { return minimum(x, y); });
    break;
  case DimKind::Max:
    result = fold([&](Value x, Value y) { return maximum(x, y); });
    break;
  case DimKind::FloorDiv:
  case DimKind::Mod: {
    // Divisors of live code are positive; a zero must not trap all the same.
    Value x = operand(0), y = maximum(operand(1), index(1));
    Value quotient = b.createOrFold<arith::FloorDivSIOp>(loc, x, y);
    result = static_cast<DimKind>(expression.getKind()) == DimKind::FloorDiv ? quotient : sub(x, mul(quotient, y));
    break;
  }
  }
  return dims[expression] = result;
}

void Emitter::storeError(int64_t id, Value value) {
  Type i32 = b.getI32Type();
  Value none = integer(i32, 0);
  Value exchanged = b.create<LLVM::AtomicCmpXchgOp>(loc, error, none, integer(i32, id), LLVM::AtomicOrdering::monotonic,
                                                    LLVM::AtomicOrdering::monotonic);
  Value first = b.create<LLVM::ExtractValueOp>(loc, exchanged, ArrayRef<int64_t>{1});
  ifThen(first, [&] {
    store(castIndex(value, b.getI64Type()), pointer(error, offsetof(transept_error_word, value), b.getI8Type()));
  });
}

Value Emitter::liveRows(KernelOp kernel, DimAttr total) {
  Value all = dim(total);
  unsigned inputs = kernel.getInputs().size(), outputs = kernel.getOutputs().size();
  if (kernel->getNumOperands() == inputs + outputs)
    return all;
  auto shape = cast<transept::DimsAttr>(kernel.getShapes()[outputs ? inputs : 0]);
  Value count = load(buffer(kernel->getOperands().back()), b.getI32Type());
  Value live = maximum(castIndex(count, b.getIndexType()), index(0));
  if (auto each = transept::dimExactDiv(total, shape.getDims()[0]))
    live = mul(live, dim(*each));
  return minimum(live, all);
}

std::pair<Value, Value> Emitter::shareOf(Value live, Value all) {
  if (live == all)
    return {begin, end};
  auto scaled = [&](Value item) { return div(mul(item, live), maximum(all, index(1))); };
  return {scaled(begin), scaled(end)};
}

void Emitter::forLiveItems(KernelOp kernel, DimAttr items, llvm::function_ref<void(Value)> body) {
  auto [from, to] = shareOf(liveRows(kernel, items), dim(items));
  forLoop(from, to, 1, body);
}

//===- Constants and types
//-----------------------------------------------------------------------------------------===//

Value Emitter::index(int64_t value) { return b.create<arith::ConstantIndexOp>(loc, value); }

Value Emitter::number(Type type, double value) {
  if (!isa<FloatType>(getElementTypeOrSelf(type)))
    return integer(type, static_cast<int64_t>(value));
  Attribute element = b.getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    element = DenseElementsAttr::get(vector, element);
  return b.create<arith::ConstantOp>(loc, cast<TypedAttr>(element));
}

Value Emitter::integer(Type type, int64_t value) {
  Attribute element = b.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    element = DenseElementsAttr::get(vector, element);
  return b.create<arith::ConstantOp>(loc, cast<TypedAttr>(element));
}

Type Emitter::sameShape(Type like, Type element) {
  if (auto vector = dyn_cast<VectorType>(like))
    return VectorType::get(vector.getShape(), element);
  return element;
}

//===- Arithmetic
//--------------------------------------------------------------------------------------------------===//

static bool isFloat(Value x) { return isa<FloatType>(getElementTypeOrSelf(x.getType())); }

Value Emitter::add(Value x, Value y) {
  return isFloat(x) ? b.createOrFold<arith::AddFOp>(loc, x, y) : b.createOrFold<arith::AddIOp>(loc, x, y);
}
Value Emitter::sub(Value x, Value y) {
  return isFloat(x) ? b.createOrFold<arith::SubFOp>(loc, x, y) : b.createOrFold<arith::SubIOp>(loc, x, y);
}
Value Emitter::mul(Value x, Value y) {
  return isFloat(x) ? b.createOrFold<arith::MulFOp>(loc, x, y) : b.createOrFold<arith::MulIOp>(loc, x, y);
}

Value Emitter::fma(Value x, Value y, Value z) {
  if (machine.fusedMultiplyAdd)
    return b.create<math::FmaOp>(loc, x, y, z);
  return add(mul(x, y), z);
}

//===- Vectors
//-----------------------------------------------------------------------------------------------------===//

Value Emitter::broadcast(Value scalar) {
  if (isa<VectorType>(scalar.getType()))
    return scalar;
  return b.createOrFold<vector::BroadcastOp>(loc, vectorOf(scalar.getType()), scalar);
}

Value Emitter::laneNumbers(Type element) {
  SmallVector<Attribute> numbers;
  for (int64_t lane = 0; lane < lanes; ++lane)
    numbers.push_back(b.getIntegerAttr(element, lane));
  return b.create<arith::ConstantOp>(loc, DenseElementsAttr::get(vectorOf(element), numbers));
}

Value Emitter::lanesBelow(Value count) {
  Type i32 = b.getI32Type();
  return compare(arith::CmpIPredicate::slt, laneNumbers(i32), broadcast(castIndex(count, i32)));
}

Value Emitter::shuffle(Value x, Value y, ArrayRef<int64_t> order) {
  return b.create<vector::ShuffleOp>(loc, x, y, order);
}

Value Emitter::reduceLanes(Value vector, llvm::function_ref<Value(Value, Value)> combine) {
  for (int64_t width = lanes / 2; width >= 1; width /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < width; ++lane) {
      low.push_back(lane);
      high.push_back(lane + width);
    }
    vector = combine(shuffle(vector, vector, low), shuffle(vector, vector, high));
  }
  return b.create<vector::ExtractOp>(loc, vector, ArrayRef<int64_t>{0});
}

//===- Memory
//------------------------------------------------------------------------------------------------------===//

Value Emitter::pointer(Value base, Value position, Type element) {
  Value i64 = castIndex(position, b.getI64Type());
  return b.create<LLVM::GEPOp>(loc, base.getType(), storageOf(element), base, ArrayRef<LLVM::GEPArg>{i64});
}

Value Emitter::pointer(Value base, int64_t position, Type element) {
  if (position == 0)
    return base;
  return b.create<LLVM::GEPOp>(loc, base.getType(), storageOf(element), base,
                               ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(position)});
}

Value Emitter::load(Value pointer, Type type) {
  Type element = getElementTypeOrSelf(type), stored = sameShape(type, storageOf(element));
  unsigned alignment = isa<LLVM::LLVMPointerType>(type) ? 8 : bytesOf(element);
  Value value = b.create<LLVM::LoadOp>(loc, stored, pointer, alignment);
  if (element.isInteger(1))
    value = compare(arith::CmpIPredicate::ne, value, integer(stored, 0));
  return value;
}

void Emitter::store(Value value, Value pointer) {
  Type element = getElementTypeOrSelf(value.getType());
  if (element.isInteger(1))
    value = b.create<arith::ExtUIOp>(loc, sameShape(value.getType(), storageOf(element)), value);
  b.create<LLVM::StoreOp>(loc, value, pointer, bytesOf(element));
}

void Emitter::maskedStore(Value value, Value pointer, Value mask) {
  Type element = getElementTypeOrSelf(value.getType());
  if (element.isInteger(1))
    value = b.create<arith::ExtUIOp>(loc, sameShape(value.getType(), storageOf(element)), value);
  b.create<LLVM::MaskedStoreOp>(loc, value, pointer, mask, b.getI32IntegerAttr(bytesOf(element)));
}

Value Emitter::stackArray(Type element, int64_t count) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  Value size = b.create<LLVM::ConstantOp>(loc, b.getI64Type(), b.getI64IntegerAttr(count));
  return b.create<LLVM::AllocaOp>(loc, LLVM::LLVMPointerType::get(b.getContext()), storageOf(element), size,
                                  /*alignment=*/TRANSEPT_SCRATCH_ALIGNMENT);
}

//===- Control flow
//------------------------------------------------------------------------------------------------===//

void Emitter::forLoop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
  auto loop = b.create<scf::ForOp>(loc, from, to, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

Emitter::Carried Emitter::forLoop(Value from, Value to, int64_t step, ValueRange init,
                                  llvm::function_ref<Carried(Value, ValueRange)> body) {
  auto loop = b.create<scf::ForOp>(loc, from, to, index(step), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Carried next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!next.empty())
    b.create<scf::YieldOp>(loc, next);
  return Carried(loop.getResults());
}

Emitter::Carried Emitter::whileLoop(ValueRange init, llvm::function_ref<Value(ValueRange)> condition,
                                    llvm::function_ref<Carried(ValueRange)> body) {
  auto loop = b.create<scf::WhileOp>(loc, init.getTypes(), init);
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Location> locations(init.size(), loc);
  Block *before = b.createBlock(&loop.getBefore(), {}, init.getTypes(), locations);
  Value goesOn = condition(before->getArguments());
  b.create<scf::ConditionOp>(loc, goesOn, before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, init.getTypes(), locations);
  Carried next = body(after->getArguments());
  b.create<scf::YieldOp>(loc, next);
  return Carried(loop.getResults());
}

void Emitter::ifThen(Value condition, llvm::function_ref<void()> then) {
  auto branch = b.create<scf::IfOp>(loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  then();
}

void Emitter::ifElse(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise) {
  auto branch = b.create<scf::IfOp>(loc, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  then();
  b.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

void Emitter::forLaneGroups(Value from, Value to, llvm::function_ref<void(Value, Value)> body) {
  Value length = sub(to, from);
  Value full = add(from, mul(div(length, index(lanes)), index(lanes)));
  forLoop(from, full, lanes, [&](Value position) { body(position, Value()); });
  auto constant = getConstantIntValue(length);
  if (constant && *constant % lanes == 0)
    return;
  ifThen(less(full, to), [&] { body(full, sub(to, full)); });
}

LogicalResult Emitter::finish() {
  b.create<func::ReturnOp>(loc);
  return failure(unknownSymbol);
}
