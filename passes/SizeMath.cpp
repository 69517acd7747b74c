//===- SizeMath.cpp - integer arithmetic as graph ops -----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/SizeMath.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "passes/Shapes.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
/// The arithmetic is known to fit: nothing is guarded, and no size is open.
class KnownContext : public InferContext {
public:
  explicit KnownContext(MLIRContext *mlirContext) { context = mlirContext; }
  void guard(Operation *, DimAttr, GuardRelation, DimAttr, StringRef) override {}
  DimAttr runtimeSymbol(Operation *op, StringRef hint) override {
    op->emitOpError() << "has a size that is not known: " << hint;
    return dimSymbol(context, hint);
  }
};
} // namespace

void SizeMath::inferType(Operation *op) {
  KnownContext known(op->getContext());
  SmallVector<Fact> operands(op->getNumOperands()), results;
  for (auto [fact, operand] : llvm::zip(operands, op->getOperands()))
    fact.type = cast<TensorType>(operand.getType());
  if (succeeded(cast<GraphOp>(op).infer(known, operands, results)) && results.size() == 1)
    op->getResult(0).setType(results[0].type);
}

Value SizeMath::vector(ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, builder.getI64Type());
  return builder.create<ConstantOp>(loc, type, DenseElementsAttr::get(type, values));
}

Value SizeMath::scalar(int64_t value) {
  auto type = RankedTensorType::get({}, builder.getI64Type());
  return builder.create<ConstantOp>(loc, type, DenseElementsAttr::get(type, value));
}

Value SizeMath::sizes(ArrayRef<DimAttr> dims) {
  auto type = RankedTensorType::get({static_cast<int64_t>(dims.size())}, builder.getI64Type());
  return builder.create<DimValueOp>(loc, type, builder.getArrayAttr(SmallVector<Attribute>(dims.begin(), dims.end())));
}

Value SizeMath::iota(DimAttr length) {
  return builder.create<RangeOp>(loc, makeType({length}, builder.getI64Type()), Value(), Value(), Value(),
                                 dimConstant(context(), 0), builder.getI64IntegerAttr(1));
}

Value SizeMath::zeros(ArrayRef<DimAttr> dims) {
  auto one = RankedTensorType::get({1}, builder.getI64Type());
  return builder.create<FillOp>(loc, makeType(dims, builder.getI64Type()), Value(),
                                DenseElementsAttr::get(one, int64_t(0)));
}

Value SizeMath::reshape(Value input, ArrayRef<DimAttr> dims) {
  Type element = cast<TensorType>(input.getType()).getElementType();
  return builder.create<ReshapeOp>(loc, makeType(dims, element), input, Value(), false);
}

Value SizeMath::reshape(Value input, ArrayRef<int64_t> dims) {
  SmallVector<DimAttr> list;
  for (int64_t dim : dims)
    list.push_back(dimConstant(context(), dim));
  return reshape(input, list);
}

Value SizeMath::castTo(Value input, Type type) { return make<CastOp>(input, TypeAttr::get(type)); }

Value SizeMath::pick(Value source, ArrayRef<int64_t> places) {
  return make<GatherOp>(source, vector(places), builder.getI64IntegerAttr(0));
}

Value SizeMath::reduce(ReduceKind kind, Value input, int64_t axis) {
  return make<ReduceOp>(input, Value(), ReduceKindAttr::get(context(), kind), builder.getDenseI64ArrayAttr({axis}),
                        builder.getBoolAttr(false), builder.getBoolAttr(false));
}

Value SizeMath::sumBefore(Value source) {
  return make<CumSumOp>(source, Value(), builder.getI64IntegerAttr(0), builder.getBoolAttr(true),
                        builder.getBoolAttr(false), UnitAttr());
}

llvm::StringSet<> transept::symbolNamesOf(Operation *function) {
  llvm::StringSet<> names;
  AttrTypeWalker walker;
  walker.addWalk([&](DimAttr dim) {
    if (StringRef name = symbolName(dim); !name.empty())
      names.insert(name);
  });
  function->walk([&](Operation *op) {
    walker.walk(op->getAttrDictionary());
    for (Type type : op->getResultTypes())
      walker.walk(type);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          walker.walk(type);
    if (auto list = op->getAttrOfType<ArrayAttr>(symbolsAttrName))
      for (Attribute name : list)
        if (auto text = dyn_cast<StringAttr>(name))
          names.insert(text.getValue());
  });
  return names;
}
