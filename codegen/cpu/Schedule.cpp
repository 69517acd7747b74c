//===- Schedule.cpp - work items and scratch of every kernel ------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/cpu/Schedule.h"
#include "codegen/Codegen.h"
#include "codegen/cpu/NarrowTile.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;
using namespace mlir::transept;

int64_t cpu::mapChunk(MapOp op) {
  // Rows of this length stay whole: one item writes them as one stream.
  constexpr int64_t wholeRow = 4096, chunk = 1024;
  auto inner = constantValue(cast<DimAttr>(op.getDomain()[op.getDomain().size() - 1]));
  return op.getDomain().size() > 1 && inner && *inner <= wholeRow ? std::max<int64_t>(*inner, 1) : chunk;
}

namespace {

struct Work {
  DimAttr items, scratch;
};

DimsAttr shapeOf(KernelOp op, unsigned operand) { return cast<DimsAttr>(op.getShapes()[operand]); }
DimAttr roundUp(DimAttr size, int64_t multiple) {
  return dimMul(chunksOf(size, multiple), dimConstant(size.getContext(), multiple));
}

Work workOf(MapOp op) {
  MLIRContext *context = op.getContext();
  DimAttr items = dimConstant(context, 1), none = dimConstant(context, 0);
  ArrayRef<Attribute> domain = op.getDomain().getValue();
  if (domain.empty())
    return {items, none};
  for (Attribute dim : domain.drop_back())
    items = dimMul(items, cast<DimAttr>(dim));
  return {dimMul(items, chunksOf(cast<DimAttr>(domain.back()), mapChunk(op))), none};
}

Work workOf(ContractOp op) {
  MLIRContext *context = op.getContext();
  int64_t panels = 0;
  for (int64_t columns : op.getParts())
    panels += (columns + panelColumns - 1) / panelColumns;
  DimAttr items = dimMul(dimConstant(context, panels), chunksOf(op.getRows(), contractRows));
  FailureOr<ProductKind> kind = productKindOf(op);
  if (failed(kind))
    return {};
  if (*kind == ProductKind::Float || *kind == ProductKind::Int8Weights)
    return {items, dimConstant(context, contractScales)};
  int64_t rowBytes = narrowStride(op.getK()) * (*kind == ProductKind::Bf16 ? 2 : 1);
  DimAttr rows = dimMin(op.getRows(), dimConstant(context, contractRows));
  return {items, dimAdd(dimConstant(context, contractNarrowRows), dimMul(rows, dimConstant(context, rowBytes)))};
}

Work workOf(RowsOp op) { return {op.getRows(), dimConstant(op.getContext(), 0)}; }

Work workOf(SerialOp op) { return {op.getItems(), dimConstant(op.getContext(), 0)}; }

Work workOf(AttendOp op) {
  KernelOp kernel = cast<KernelOp>(op.getOperation());
  ArrayRef<DimAttr> query = shapeOf(kernel, 0).getDims(), value = shapeOf(kernel, 2).getDims();
  MLIRContext *context = op.getContext();
  DimAttr keySize = roundUp(query[3], lanes), valueSize = roundUp(value[3], lanes);
  // Keys transposed, sums of values, scores; maxima and sums per row, in whole groups; what softmax has of sixteen
  // rows; two parts of a byte per key of a block.
  DimAttr floats = dimAdd(dimMul(keySize, dimConstant(context, attendKeys)),
                          dimMul(valueSize, dimConstant(context, attendRowsHeld)));
  constexpr int64_t others =
      attendRows * attendKeys + 2 * (attendRowsHeld + lanes) + lanes * lanes + 2 * lanes + 2 * attendKeys;
  floats = dimAdd(floats, dimConstant(context, others));
  DimAttr items = dimMul(dimMul(query[0], query[2]), chunksOf(query[1], attendRows));
  return {items, dimMul(floats, dimConstant(context, 4))};
}

template <typename Op> Work workOfRowAttention(Op op) {
  ArrayRef<DimAttr> query = shapeOf(cast<KernelOp>(op.getOperation()), 0).getDims();
  // The scores of a block, stored by whole vectors.
  return {dimMul(dimMul(query[0], query[1]), query[2]), dimConstant(op.getContext(), (attendKeys + lanes) * 4)};
}

Work workOf(CacheAppendOp op) {
  ArrayRef<DimAttr> key = shapeOf(cast<KernelOp>(op.getOperation()), 0).getDims();
  return {dimMul(key[0], key[1]), dimConstant(op.getContext(), 0)};
}

Work workOf(SearchHeadOp op) {
  MLIRContext *context = op.getContext();
  if (isListed(op)) {
    DimAttr panels = shapeOf(cast<KernelOp>(op.getOperation()), 3).getDims()[0];
    return {dimMul(panels, chunksOf(shapeOf(cast<KernelOp>(op.getOperation()), 0).getDims()[0], contractRows)),
            dimConstant(context, contractScales)};
  }
  int64_t blocks = (op.getVocabulary() + op.getBlockSize() - 1) / op.getBlockSize();
  DimAttr rows = shapeOf(cast<KernelOp>(op.getOperation()), 0).getDims()[0];
  // Screened: sixteen logits.
  return {dimMul(rows, dimConstant(context, blocks)), dimConstant(context, isScreened(op) ? lanes * 4 : 0)};
}

} // namespace

LogicalResult kernel::scheduleCpu(ModuleOp module) {
  for (FuncOp func : module.getOps<FuncOp>()) {
    Block &body = func.getBody().front();
    if (!llvm::hasSingleElement(body))
      return func.emitOpError("holds not exactly one kernel");
    Operation &kernel = body.front();
    if (auto map = dyn_cast<MapOp>(kernel))
      mergeMapDimensions(map);
    Work work = TypeSwitch<Operation *, Work>(&kernel)
                    .Case<MapOp, ContractOp, RowsOp, SerialOp, AttendOp, CacheAppendOp, SearchHeadOp>(
                        [](auto op) { return workOf(op); })
                    .Case<AttendCacheOp, AttendSourceOp>([](auto op) { return workOfRowAttention(op); })
                    .Default([](Operation *) { return Work(); });
    if (!work.items)
      return kernel.emitOpError("is no kernel that processors implement");
    func.setItemsAttr(work.items);
    func.setScratchAttr(work.scratch);
  }
  return success();
}
