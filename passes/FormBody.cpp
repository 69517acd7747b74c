//===- FormBody.cpp - scalar code of kernel bodies ----------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/FormBody.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::transept;

Type transept::scalarType(Type elementType) {
  if (isNarrow(elementType))
    return IntegerType::get(elementType.getContext(), 8);
  if (auto integer = dyn_cast<IntegerType>(elementType))
    return IntegerType::get(elementType.getContext(), integer.getWidth());
  return elementType;
}

Type transept::computeType(Type elementType) {
  if (elementType.isF16() || elementType.isBF16() || narrowFormat(elementType))
    return Float32Type::get(elementType.getContext());
  return scalarType(elementType);
}

DimsAttr transept::shapeOf(Value tensor) {
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    auto entry = cast<kernel::EntryOp>(argument.getOwner()->getParentOp());
    return cast<DimsAttr>(entry.getInputShapes()[argument.getArgNumber()]);
  }
  Operation *op = tensor.getDefiningOp();
  if (auto state = dyn_cast<kernel::StateOp>(op))
    return state.getShape();
  if (auto variable = dyn_cast<kernel::VariableOp>(op))
    return variable.getShape();
  if (auto kernelOp = dyn_cast<kernel::KernelOp>(op))
    return cast<DimsAttr>(kernelOp.getShapes()[kernelOp.getInputs().size() + cast<OpResult>(tensor).getResultNumber()]);
  SmallVector<DimAttr> dims;
  if (auto view = dyn_cast<kernel::ViewOp>(op)) {
    for (Attribute dim : view.getShape())
      dims.push_back(cast<DimAttr>(dim));
  } else { // a constant
    for (int64_t size : cast<RankedTensorType>(tensor.getType()).getShape())
      dims.push_back(dimConstant(op->getContext(), size));
  }
  return DimsAttr::get(op->getContext(), dims);
}

DimAttr transept::elementCount(MLIRContext *context, ArrayRef<DimAttr> dims) { return dimProduct(context, dims); }

RankedTensorType transept::plainType(ArrayRef<DimAttr> dims, Type elementType) {
  SmallVector<int64_t> sizes;
  for (DimAttr dim : dims)
    sizes.push_back(constantValue(dim).value_or(ShapedType::kDynamic));
  return RankedTensorType::get(sizes, elementType);
}

//===- Constants and elements -------------------------------------------------------------------------------------===//

Value Body::size(DimAttr dim) {
  if (std::optional<int64_t> value = constantValue(dim))
    return index(*value);
  return create<kernel::SizeOp>(getIndexType(), dim);
}

Value Body::number(Type scalar, double value) {
  if (auto type = dyn_cast<FloatType>(scalar)) {
    APFloat number(value);
    bool inexact;
    number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
    return create<arith::ConstantOp>(FloatAttr::get(type, number));
  }
  return integer(scalar, static_cast<int64_t>(value));
}

Value Body::integer(Type scalar, int64_t value) {
  if (isa<FloatType>(scalar))
    return number(scalar, static_cast<double>(value));
  return create<arith::ConstantOp>(getIntegerAttr(scalar, value));
}

Value Body::load(Value source, ValueRange indices) {
  return create<kernel::LoadOp>(scalarType(kernel::elementTypeOf(source.getType())), source, indices);
}

Value Body::loadWide(Value source, ValueRange indices) {
  return widen(load(source, indices), kernel::elementTypeOf(source.getType()));
}

Value Body::widen(Value scalar, Type elementType) {
  if (narrowFormat(elementType))
    return decode(scalar, elementType);
  Type wide = computeType(scalar.getType());
  return wide == scalar.getType() ? scalar : create<arith::ExtFOp>(wide, scalar);
}

Value Body::narrow(Value scalar, Type elementType) {
  // What was rounded already stays as it is, infinities too.
  if (narrowFormat(elementType))
    return encode(scalar, elementType, /*saturate=*/false);
  Type type = scalarType(elementType);
  return type == scalar.getType() ? scalar : create<arith::TruncFOp>(type, scalar);
}

void Body::store(Value value, Value target, ValueRange indices) {
  create<kernel::StoreOp>(narrow(value, kernel::elementTypeOf(target.getType())), target, indices);
}

//===- Arithmetic
//----------------------------------------------------------------------------------------------------===//

Value Body::add(Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType()))
    return create<arith::AddFOp>(lhs, rhs);
  return create<arith::AddIOp>(lhs, rhs);
}
Value Body::sub(Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType()))
    return create<arith::SubFOp>(lhs, rhs);
  return create<arith::SubIOp>(lhs, rhs);
}
Value Body::mul(Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType()))
    return create<arith::MulFOp>(lhs, rhs);
  return create<arith::MulIOp>(lhs, rhs);
}

Value Body::less(Value lhs, Value rhs, bool isUnsigned) {
  if (isa<FloatType>(lhs.getType()))
    return create<arith::CmpFOp>(arith::CmpFPredicate::OLT, lhs, rhs);
  return create<arith::CmpIOp>(isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt, lhs, rhs);
}
Value Body::lessOrEqual(Value lhs, Value rhs, bool isUnsigned) {
  if (isa<FloatType>(lhs.getType()))
    return create<arith::CmpFOp>(arith::CmpFPredicate::OLE, lhs, rhs);
  return create<arith::CmpIOp>(isUnsigned ? arith::CmpIPredicate::ule : arith::CmpIPredicate::sle, lhs, rhs);
}
Value Body::equal(Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType()))
    return create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, lhs, rhs);
  return create<arith::CmpIOp>(arith::CmpIPredicate::eq, lhs, rhs);
}

Value Body::different(Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType()))
    return create<arith::CmpFOp>(arith::CmpFPredicate::UNE, lhs, rhs);
  return create<arith::CmpIOp>(arith::CmpIPredicate::ne, lhs, rhs);
}

Value Body::clampIndex(Value value, Value size) {
  Value last = sub(size, index(1));
  return create<arith::MaxSIOp>(create<arith::MinSIOp>(value, last), index(0));
}

//===- Conversions
//-----------------------------------------------------------------------------------------------------===//

Value Body::toIndex(Value integer, Type elementType) {
  if (transept::isUnsigned(elementType))
    return create<arith::IndexCastUIOp>(getIndexType(), integer);
  return create<arith::IndexCastOp>(getIndexType(), integer);
}

Value Body::fromIndex(Value index, Type elementType) {
  Type i64 = getI64Type();
  return convert(create<arith::IndexCastOp>(i64, index), i64, elementType);
}

/// The low bits of an integer as an element of a type below a byte.
Value Body::wrapNarrow(Value integer, Type to) {
  if (integer.getType().getIntOrFloatBitWidth() < 8)
    integer = create<arith::ExtUIOp>(getI8Type(), integer);
  else if (integer.getType().getIntOrFloatBitWidth() > 8)
    integer = create<arith::TruncIOp>(getI8Type(), integer);
  const unsigned width = to.getIntOrFloatBitWidth();
  if (to.isUnsignedInteger())
    return create<arith::AndIOp>(integer, this->integer(getI8Type(), (1 << width) - 1));
  Value shift = this->integer(getI8Type(), 8 - width);
  return create<arith::ShRSIOp>(create<arith::ShLIOp>(integer, shift), shift);
}

Value Body::convert(Value scalar, Type from, Type to) {
  Type source = scalar.getType(), target = computeType(to);
  if (to.isInteger(1)) {
    if (source.isInteger(1))
      return scalar;
    return different(scalar, number(source, 0));
  }
  bool fromUnsigned = transept::isUnsigned(from);
  if (isa<FloatType>(target)) {
    Value wide = scalar;
    if (!isa<FloatType>(source))
      wide = fromUnsigned ? create<arith::UIToFPOp>(target, scalar).getResult()
                          : create<arith::SIToFPOp>(target, scalar).getResult();
    else if (source.getIntOrFloatBitWidth() < target.getIntOrFloatBitWidth())
      wide = create<arith::ExtFOp>(target, scalar);
    else if (source.getIntOrFloatBitWidth() > target.getIntOrFloatBitWidth())
      wide = create<arith::TruncFOp>(target, scalar);
    // A value held in f32 that stands for a shorter float has been rounded to it.
    return widen(narrow(wide, to), to);
  }
  if (isNarrow(to))
    return wrapNarrow(isa<FloatType>(source) ? create<arith::FPToSIOp>(getI32Type(), scalar).getResult() : scalar, to);
  if (isa<FloatType>(source))
    return to.isUnsignedInteger() ? create<arith::FPToUIOp>(target, scalar).getResult()
                                  : create<arith::FPToSIOp>(target, scalar).getResult();
  unsigned have = source.getIntOrFloatBitWidth(), want = target.getIntOrFloatBitWidth();
  if (have == want)
    return scalar;
  if (have > want)
    return create<arith::TruncIOp>(target, scalar);
  return fromUnsigned ? create<arith::ExtUIOp>(target, scalar).getResult()
                      : create<arith::ExtSIOp>(target, scalar).getResult();
}

//===- Control flow
//----------------------------------------------------------------------------------------------------===//

SmallVector<Value> Body::forEach(Value size, ArrayRef<Value> initial, LoopStep step) {
  auto loop = create<scf::ForOp>(index(0), size, index(1), ValueRange(initial),
                                 [&](OpBuilder &builder, Location loc, Value i, ValueRange carried) {
                                   Body inner(loc, builder);
                                   inner.create<scf::YieldOp>(step(inner, i, carried));
                                 });
  return SmallVector<Value>(loop.getResults());
}

Value Body::accumulate(Value size, Value initial, function_ref<Value(Body &, Value, Value)> step) {
  return forEach(size, {initial}, [&](Body &inner, Value i, ValueRange carried) -> SmallVector<Value> {
    return {step(inner, i, carried.front())};
  })[0];
}

void Body::repeat(Value size, function_ref<void(Body &, Value)> step) {
  forEach(size, {}, [&](Body &inner, Value i, ValueRange) -> SmallVector<Value> {
    step(inner, i);
    return {};
  });
}

void Body::when(Value condition, function_ref<void(Body &)> content) {
  create<scf::IfOp>(condition, [content](OpBuilder &builder, Location loc) {
    Body inner(loc, builder);
    content(inner);
    inner.create<scf::YieldOp>();
  });
}

Value Body::choose(Value condition, function_ref<Value(Body &)> onTrue, function_ref<Value(Body &)> onFalse) {
  auto branch = [](function_ref<Value(Body &)> content) {
    return [content](OpBuilder &builder, Location loc) {
      Body inner(loc, builder);
      inner.create<scf::YieldOp>(content(inner));
    };
  };
  auto op = create<scf::IfOp>(condition, branch(onTrue), branch(onFalse));
  return op.getResult(0);
}

SmallVector<Value> Body::delinearize(Value linear, ArrayRef<DimAttr> dims) {
  SmallVector<Value> indices(dims.size());
  Value rest = linear;
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (constantValue(dims[axis]) == 1) {
      indices[axis] = index(0);
      continue;
    }
    bool isOutermost = llvm::all_of(dims.take_front(axis), [](DimAttr dim) { return constantValue(dim) == 1; });
    if (isOutermost) {
      indices[axis] = rest;
      rest = index(0);
      continue;
    }
    Value extent = size(dims[axis]);
    indices[axis] = create<arith::RemUIOp>(rest, extent);
    rest = create<arith::DivUIOp>(rest, extent);
  }
  return indices;
}

Value Body::linearize(ValueRange indices, ArrayRef<DimAttr> dims) {
  Value linear;
  for (auto [position, dim] : llvm::zip(indices, dims)) {
    if (constantValue(dim) == 1)
      continue;
    linear = linear ? add(mul(linear, size(dim)), position) : Value(position);
  }
  return linear ? linear : index(0);
}
