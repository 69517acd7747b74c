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

ShaderWork vulkan::workOf(Operation *kernel) {
  MLIRContext *context = kernel->getContext();
  auto product = [&](ArrayRef<DimAttr> dims) {
    DimAttr items = dimConstant(context, 1);
    for (DimAttr dim : dims)
      items = dimMul(items, dim);
    return items;
  };
  /// An item for each invocation, or for the workgroup.
  auto each = [](DimAttr items) { return ShaderWork{items, usualGroupSize, /*groupStep=*/1, /*perGroup=*/0}; };
  auto together = [](DimAttr items) { return ShaderWork{items, usualGroupSize, /*groupStep=*/1, /*perGroup=*/1}; };
  return TypeSwitch<Operation *, ShaderWork>(kernel)
      .Case([&](MapOp op) { return each(product(SmallVector<DimAttr>(op.getDomain().getAsRange<DimAttr>()))); })
      .Case([&](SerialOp op) { return each(op.getItems()); })
      .Case([&](ContractOp op) {
        int64_t panels = 0;
        for (int64_t columns : op.getParts())
          panels += (columns + panelColumns - 1) / panelColumns;
        auto itemsOf = [&](int64_t rows) {
          return dimMul(dimConstant(context, panels), emit::chunksOf(op.getRows(), rows));
        };
        constexpr int64_t usualSlices = 8;
        ShaderWork work{itemsOf(contractRows), contractTeam * usualSlices, contractTeam, /*perGroup=*/1};
        if (op.getQuantised() || (!op.getInputs().empty() && elementTypeOf(op.getInputs()[0].getType()).isInteger(8)))
          work.tiles = itemsOf(matrixTileRows);
        return work;
      })
      .Case([&](RowsOp op) { return together(op.getRows()); })
      .Case<AttendOp, AttendCacheOp, AttendSourceOp>(
          [&](auto op) { return together(product(shapeOf(op, 0).take_front(3))); })
      .Case([&](CacheAppendOp op) { return together(product(shapeOf(op, 0).take_front(2))); })
      .Case([&](SearchHeadOp op) {
        int64_t blocks = (op.getVocabulary() + op.getBlockSize() - 1) / op.getBlockSize();
        return together(dimMul(shapeOf(op, 0)[0], dimConstant(context, blocks)));
      })
      .Default([](Operation *) { return ShaderWork(); });
}

DictionaryAttr ShaderWork::toAttribute() const {
  Builder builder(items.getContext());
  SmallVector<NamedAttribute> fields = {builder.getNamedAttr("group_size", builder.getI64IntegerAttr(groupSize)),
                                        builder.getNamedAttr("group_step", builder.getI64IntegerAttr(groupStep)),
                                        builder.getNamedAttr("items", items),
                                        builder.getNamedAttr("items_per_group", builder.getI64IntegerAttr(perGroup))};
  if (tiles)
    fields.push_back(builder.getNamedAttr("tiles", tiles));
  return builder.getDictionaryAttr(fields);
}

std::optional<ShaderWork> ShaderWork::fromAttribute(Attribute attribute) {
  auto dictionary = dyn_cast_or_null<DictionaryAttr>(attribute);
  if (!dictionary)
    return std::nullopt;
  auto items = dictionary.getAs<DimAttr>("items");
  auto size = dictionary.getAs<IntegerAttr>("group_size"), step = dictionary.getAs<IntegerAttr>("group_step"),
       each = dictionary.getAs<IntegerAttr>("items_per_group");
  if (!items || !size || !step || !each)
    return std::nullopt;
  return ShaderWork{items, size.getInt(), step.getInt(), each.getInt(), dictionary.getAs<DimAttr>("tiles")};
}
