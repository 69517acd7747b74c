//===- MicrosoftAttention.cpp - what the attention operators of com.microsoft share
//----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/MicrosoftAttention.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

Value MicrosoftAttention::build(NodeImport &node) {
  if (scale == 0) {
    std::optional<int64_t> size = knownSize(node, query, 3);
    if (!size || *size < 1) {
      (void)node.unsupported(node.op() + " of heads whose size is no constant");
      return {};
    }
    scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(*size)));
  }
  OpBuilder &builder = node.builder;
  if (causal && !causalOffset)
    causalOffset = dimConstant(builder.getContext(), 0);
  auto op = builder.create<AttentionOp>(
      node.loc, Type(UnrankedTensorType::get(node.elementOf(query))), Type(), query, key, value, keyMask, bias, mask,
      Value(), builder.getF32FloatAttr(scale), causal ? builder.getUnitAttr() : UnitAttr(), causalOffset,
      builder.getF32FloatAttr(softcap), EmptyRowAttr::get(builder.getContext(), EmptyRow::Uniform), DimAttr());
  return node.reshape(op.getResult(), {0, 0, -1});
}

LogicalResult mlir::transept::readMask(AttentionParts &p, Value given, MicrosoftAttention &attention) {
  NodeImport &node = p.node;
  if (!given)
    return success();
  std::optional<SmallVector<DimAttr>> dims = node.dims(given);
  if (!dims)
    return node.unsupported(node.op() + " with a mask of unknown rank");
  if (dims->size() == 2) {
    attention.keyMask = given;
  } else if (dims->size() == 1) {
    // Other vectors hold ends and starts, or cumulated lengths.
    std::optional<SmallVector<DimAttr>> batch = node.dims(attention.query);
    if (!batch || batch->empty() || batch->front() != dims->front())
      return node.unsupported(node.op() + " with a mask that is a vector of another size than the batch");
    Value column = node.reshape(node.castTo(given, p.i64), {-1, 1});
    attention.keyMask = p.less(p.countTo(p.scalarSize(attention.key, 1)), column);
  } else if (dims->size() == 3) {
    Value seen = node.castTo(given, node.i1());
    attention.mask = node.make<UnsqueezeOp>(node.i1(), seen, Value(), node.builder.getDenseI64ArrayAttr({1}));
  } else {
    return node.unsupported(node.op() + " with a mask of " + Twine(dims->size()) + " axes");
  }
  return success();
}

std::optional<int64_t> mlir::transept::headsOf(NodeImport &node, StringRef name) {
  int64_t heads = node.integer(name, 0);
  if (heads > 0)
    return heads;
  (void)node.invalid("has " + name + " " + Twine(heads));
  return std::nullopt;
}

LogicalResult mlir::transept::refuse(NodeImport &node, ArrayRef<StringRef> names) {
  for (StringRef name : names)
    if (node.integer(name, 0) != 0)
      return node.unsupported("attribute " + quoted(name) + " of " + node.op());
  return success();
}

LogicalResult mlir::transept::makeCausal(NodeImport &node, Value past, MicrosoftAttention &attention) {
  attention.causal = true;
  if (!past)
    return success();
  std::optional<SmallVector<DimAttr>> dims = node.dims(past);
  if (!dims || dims->size() < 2 || !(*dims)[dims->size() - 2])
    return node.unsupported(node.op() + " of causal kind with a past of unknown shape");
  attention.causalOffset = (*dims)[dims->size() - 2];
  return success();
}

std::optional<int64_t> mlir::transept::knownSize(NodeImport &node, Value of, size_t axis) {
  std::optional<SmallVector<DimAttr>> dims = of ? node.dims(of) : std::nullopt;
  return dims && axis < dims->size() && (*dims)[axis] ? constantValue((*dims)[axis]) : std::nullopt;
}
