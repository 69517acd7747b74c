//===- Schedule.cpp - how the work of a kernel is cut into workgroups ---------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/Codegen.h"
#include "codegen/emit/WorkItems.h"
#include "codegen/vulkan/Kernels.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using namespace mlir::transept;

static ArrayRef<DimAttr> shapeOf(Operation *op, unsigned operand) {
  return cast<DimsAttr>(cast<KernelOp>(op).getShapes()[operand]).getDims();
}

Work vulkan::workOf(Operation *kernel) {
  MLIRContext *context = kernel->getContext();
  auto product = [&](ArrayRef<DimAttr> dims) {
    DimAttr items = dimConstant(context, 1);
    for (DimAttr dim : dims)
      items = dimMul(items, dim);
    return items;
  };
  return TypeSwitch<Operation *, Work>(kernel)
      .Case([&](MapOp op) {
        SmallVector<DimAttr> domain(op.getDomain().getAsRange<DimAttr>());
        return Work{product(domain), groupSize};
      })
      .Case([&](SerialOp op) { return Work{op.getItems(), groupSize}; })
      .Case([&](ContractOp op) {
        int64_t panels = 0;
        for (int64_t columns : op.getParts())
          panels += (columns + panelColumns - 1) / panelColumns;
        DimAttr quads = dimConstant(context, panels * (panelColumns / contractColumns));
        return Work{dimMul(quads, emit::chunksOf(op.getRows(), contractRows)), groupSize};
      })
      .Case([&](RowsOp op) { return Work{op.getRows(), 1}; })
      .Case<AttendOp, AttendCacheOp, AttendSourceOp>([&](auto op) { return Work{product(shapeOf(op, 0).take_front(3)), 1}; })
      .Case([&](CacheAppendOp op) { return Work{product(shapeOf(op, 0).take_front(2)), 1}; })
      .Case([&](SearchHeadOp op) {
        int64_t blocks = (op.getVocabulary() + op.getBlockSize() - 1) / op.getBlockSize();
        return Work{dimMul(shapeOf(op, 0)[0], dimConstant(context, blocks)), 1};
      })
      .Default([](Operation *) { return Work(); });
}

DictionaryAttr ShaderWork::toAttribute() const {
  Builder builder(items.getContext());
  return builder.getDictionaryAttr({builder.getNamedAttr("group_size", builder.getI64IntegerAttr(groupSize)),
                                    builder.getNamedAttr("items", items),
                                    builder.getNamedAttr("items_per_group", builder.getI64IntegerAttr(perGroup))});
}

std::optional<ShaderWork> ShaderWork::fromAttribute(Attribute attribute) {
  auto dictionary = dyn_cast_or_null<DictionaryAttr>(attribute);
  if (!dictionary)
    return std::nullopt;
  auto items = dictionary.getAs<DimAttr>("items");
  auto size = dictionary.getAs<IntegerAttr>("group_size"), each = dictionary.getAs<IntegerAttr>("items_per_group");
  if (!items || !size || !each)
    return std::nullopt;
  return ShaderWork{items, size.getInt(), each.getInt()};
}
