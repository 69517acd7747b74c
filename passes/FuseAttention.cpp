//===- FuseAttention.cpp - scale, mask, softmax and products become one op
//-----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A site is a softmax between two products of run-time tensors. What happens between the first product and the softmax
// is read as a function of one score (MaskDescription.h), so every exporter's spelling of scale and mask is the same
// here.

#include "ir/WeightStore.h"
#include "passes/Fuse.h"
#include "passes/RelativeBias.h"
#include <set>

using namespace mlir;
using namespace mlir::transept;

namespace {

RankedTensorType rankedType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

std::string nodeName(Operation *op) {
  std::string text;
  if (auto name = op->getLoc()->findInstanceOf<NameLoc>())
    return name.getName().str();
  llvm::raw_string_ostream os(text);
  op->getLoc().print(os);
  return text;
}

/// Finds the loads of products of run-time tensors in an expression.
void findScores(const Elem *elem, std::set<const Elem *> &visited, SmallVectorImpl<const Elem *> &scores) {
  if (!visited.insert(elem).second)
    return;
  if (elem->kind == Elem::Kind::Load && elem->tensor.getDefiningOp<MatMulOp>())
    scores.push_back(elem);
  for (const Elem *operand : elem->operands)
    findScores(operand, visited, scores);
}

std::optional<double> scalarOf(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!elements || elements.getNumElements() != 1)
    return std::nullopt;
  return HostTensor::fromElements(elements).getDouble(0);
}

/// Takes constant factors off a value, looking through ops that move elements.
Value peelScale(OpBuilder &builder, Value value, double &scale) {
  if (auto mul = value.getDefiningOp<MulOp>()) {
    for (auto [x, factor] : {std::pair(mul.getLhs(), mul.getRhs()), std::pair(mul.getRhs(), mul.getLhs())})
      if (std::optional<double> number = scalarOf(factor); number && x.getType() == value.getType()) {
        scale *= *number;
        return peelScale(builder, x, scale);
      }
  }
  if (auto div = value.getDefiningOp<DivOp>())
    if (std::optional<double> number = scalarOf(div.getRhs()); number && div.getLhs().getType() == value.getType()) {
      scale /= *number;
      return peelScale(builder, div.getLhs(), scale);
    }
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<ReshapeOp, TransposeOp>(op) || op->getNumOperands() != 1)
    return value;
  Value inner = peelScale(builder, op->getOperand(0), scale);
  if (inner == op->getOperand(0))
    return value;
  Operation *copy = builder.clone(*op);
  copy->setOperand(0, inner);
  return copy->getResult(0);
}

/// The table of a bias as a weight; null where there is no bias.
FailureOr<Value> relativeWeight(OpBuilder &builder, Location loc, const MaskDescription &mask,
                                const ScoreIndices &indices, int64_t heads, bool single, DimAttr &origin,
                                std::string &reason) {
  if (mask.bias.empty())
    return Value();
  FailureOr<RelativeBias> bias = tabulateBias(mask.bias, indices, heads, single, reason);
  if (failed(bias))
    return failure();
  origin = bias->origin;
  std::string key = WeightStore::of(builder.getContext()).add(bias->table.getType(), bias->table.bytes());
  return builder.create<WeightOp>(loc, bias->table.getType(), key, StringAttr()).getResult();
}

class SiteFusion {
public:
  SiteFusion(FusionReport &report) : report(report) {}

  void run(SoftmaxOp softmax);
  void describe(AttentionOp op);

private:
  /// [B, H, T, X] or [B * H, T, X] as [B, T, H, X] or, for keys given as [.., D, S], as [B, S, H, D].
  Value toRows(OpBuilder &builder, Location loc, Value value, DimAttr batch, DimAttr heads, bool transposed) {
    SmallVector<DimAttr> dims = dimsOf(rankedType(value));
    Type elementType = rankedType(value).getElementType();
    if (dims.size() == 3) {
      dims = {batch, heads, dims[1], dims[2]};
      value = builder.create<ReshapeOp>(loc, makeType(dims, elementType), value, Value(), false);
    }
    SmallVector<int64_t> permutation = transposed ? SmallVector<int64_t>{0, 3, 1, 2} : SmallVector<int64_t>{0, 2, 1, 3};
    SmallVector<DimAttr> moved;
    for (int64_t axis : permutation)
      moved.push_back(dims[axis]);
    Value result = builder.create<TransposeOp>(loc, makeType(moved, elementType), value, permutation);
    return normalizeMovement(builder, result);
  }

  bool fuse(SoftmaxOp softmax, MatMulOp output, Value weights, bool guarded, std::string &reason);

  FusionReport &report;
};

} // namespace

void SiteFusion::run(SoftmaxOp softmax) {
  auto type = rankedType(softmax.getResult());
  if (!type || softmax.getLogarithm() || (type.getRank() != 3 && type.getRank() != 4) ||
      softmax.getAxis() != static_cast<uint64_t>(type.getRank() - 1))
    return;
  // where(is_nan(p), 0, p): rows without any visible key become zero.
  Value weights = softmax.getResult();
  bool guarded = false;
  for (Operation *user : weights.getUsers())
    if (auto where = dyn_cast<WhereOp>(user))
      if (auto isNaN = where.getCondition().getDefiningOp<IsNaNOp>();
          isNaN && isNaN.getInput() == softmax.getResult() && where.getOnFalse() == softmax.getResult() &&
          scalarOf(where.getOnTrue()) == 0.0) {
        weights = where.getResult();
        guarded = true;
        break;
      }
  MatMulOp output;
  bool otherUses = false;
  for (Operation *user : weights.getUsers()) {
    auto product = dyn_cast<MatMulOp>(user);
    if (product && product.getLhs() == weights && !output)
      output = product;
    else
      otherUses = true;
  }
  if (!output)
    return;
  ++report.sites;
  std::string reason = "the attention weights are used elsewhere";
  if (!otherUses && fuse(softmax, output, weights, guarded, reason))
    ++report.fused;
  else
    report.unfused.push_back({nodeName(softmax), reason});
}

bool SiteFusion::fuse(SoftmaxOp softmax, MatMulOp output, Value weights, bool guarded, std::string &reason) {
  MLIRContext *context = softmax.getContext();
  auto type = rankedType(softmax.getResult());
  SmallVector<DimAttr> dims = dimsOf(type);
  DimAttr batch, heads;
  if (dims.size() == 4) {
    batch = dims[0];
    heads = dims[1];
  } else {
    // batch * heads: heads is the constant factor.
    if (static_cast<DimKind>(dims[0].getKind()) != DimKind::Product || dims[0].getValue() < 1) {
      reason = "batch and heads cannot be told apart in " + toString(dims[0]);
      return false;
    }
    heads = dimConstant(context, dims[0].getValue());
    batch = *dimExactDiv(dims[0], heads);
  }
  if (!constantValue(heads)) {
    reason = "the number of heads is not constant";
    return false;
  }
  ElementExprs exprs(context);
  ScoreIndices indices{exprs.indexSymbol("b", batch), exprs.indexSymbol("h", heads),
                       exprs.indexSymbol("i", dims[dims.size() - 2]), exprs.indexSymbol("j", dims.back())};
  // Axes of size 1 have the one position 0.
  auto at = [&](DimAttr symbol, DimAttr extent) {
    return constantValue(extent) == 1 ? exprs.number(0) : exprs.index(symbol);
  };
  SmallVector<const Elem *> position;
  if (dims.size() == 4)
    position = {at(indices.batch, batch), at(indices.head, heads)};
  else
    position = {exprs.index(dimAdd(dimMul(indices.batch, heads), indices.head))};
  position.push_back(at(indices.query, dims[dims.size() - 2]));
  position.push_back(at(indices.key, dims.back()));

  const Elem *element = exprs.at(softmax.getInput(), position);
  std::set<const Elem *> visited;
  SmallVector<const Elem *> scores;
  findScores(element, visited, scores);
  if (scores.size() != 1) {
    reason = "no product of queries and keys reaches the softmax element by element";
    return false;
  }
  auto product = scores[0]->tensor.getDefiningOp<MatMulOp>();
  auto queryType = rankedType(product.getLhs()), keyType = rankedType(product.getRhs()),
       valueType = rankedType(output.getRhs()), outputType = rankedType(output.getResult());
  size_t rank = rankedType(product.getResult()).getRank();
  bool sameRank = queryType && keyType && valueType && outputType && (rank == 3 || rank == 4) &&
                  queryType.getRank() == static_cast<int64_t>(rank) &&
                  keyType.getRank() == static_cast<int64_t>(rank) && valueType.getRank() == type.getRank();
  if (!sameRank) {
    reason = "queries, keys and values have different ranks";
    return false;
  }
  if (scores[0]->operands[rank - 1] != position.back() ||
      scores[0]->operands[rank - 2] != position[position.size() - 2]) {
    reason = "the softmax runs over another axis than the keys";
    return false;
  }
  const Elem *first =
      rank == 4 ? at(indices.batch, batch) : exprs.index(dimAdd(dimMul(indices.batch, heads), indices.head));
  if (scores[0]->operands[0] != first || (rank == 4 && scores[0]->operands[1] != at(indices.head, heads))) {
    reason = "batch and heads are mixed between the product and the softmax";
    return false;
  }
  auto leadingAgree = [](RankedTensorType a, RankedTensorType b) {
    SmallVector<DimAttr> x = dimsOf(a), y = dimsOf(b);
    return std::equal(x.begin(), x.end() - 2, y.begin(), y.end() - 2);
  };
  if (!leadingAgree(queryType, keyType) || !leadingAgree(type, valueType)) {
    reason = "keys or values are broadcast over batch or heads";
    return false;
  }

  OpBuilder builder(output);
  FailureOr<MaskDescription> mask =
      describeMask(exprs, builder, softmax.getLoc(), element, scores[0], indices, /*boolean=*/false, reason);
  if (failed(mask))
    return false;
  Location loc = softmax.getLoc();
  DimAttr origin;
  FailureOr<Value> relative = relativeWeight(builder, loc, *mask, indices, *constantValue(heads),
                                             constantValue(dims[dims.size() - 2]) == 1, origin, reason);
  if (failed(relative))
    return false;
  double scale = mask->scale;
  Value query = toRows(builder, loc, product.getLhs(), batch, heads, false);
  Value key = toRows(builder, loc, product.getRhs(), batch, heads, true);
  Value value = toRows(builder, loc, output.getRhs(), batch, heads, false);
  query = peelScale(builder, query, scale);
  key = peelScale(builder, key, scale);
  SmallVector<DimAttr> resultDims = dimsOf(rankedType(query));
  resultDims.back() = dimsOf(rankedType(value)).back();
  EmptyRow emptyRow = guarded && mask->emptyRow == EmptyRow::NaN ? EmptyRow::Zero : mask->emptyRow;
  auto attention = builder.create<AttentionOp>(loc, makeType(resultDims, outputType.getElementType()), Type(), query,
                                               key, value, mask->keyMask, Value(), Value(), *relative,
                                               APFloat(static_cast<float>(scale)), mask->causalOffset.has_value(),
                                               mask->causalOffset.value_or(DimAttr()), APFloat(0.0f), emptyRow, origin);
  SmallVector<DimAttr> headsFirst{resultDims[0], resultDims[2], resultDims[1], resultDims[3]};
  Value result = builder.create<TransposeOp>(loc, makeType(headsFirst, outputType.getElementType()),
                                             attention.getResult(), ArrayRef<int64_t>{0, 2, 1, 3});
  if (result.getType() != output.getType())
    result = builder.create<ReshapeOp>(loc, output.getType(), result, Value(), false);
  output.getResult().replaceAllUsesWith(result);
  output.erase();
  for (std::string &assumption : mask->assumptions)
    if (!llvm::is_contained(report.assumptions, assumption))
      report.assumptions.push_back(assumption);
  return true;
}

/// An exporter's own attention op: its mask operand becomes a description where it can be proved.
void SiteFusion::describe(AttentionOp op) {
  ++report.sites;
  ++report.fused;
  Value operand = op.getMask() ? op.getMask() : op.getBias();
  OpBuilder builder(op);
  auto normalise = [&](Value value) { return normalizeMovement(builder, value); };
  op.getQueryMutable().assign(normalise(op.getQuery()));
  op.getKeyMutable().assign(normalise(op.getKey()));
  op.getValueMutable().assign(normalise(op.getValue()));
  auto type = operand ? rankedType(operand) : RankedTensorType();
  if (!type || (op.getMask() && op.getBias()) || op.getKeyMask())
    return;
  MLIRContext *context = op.getContext();
  SmallVector<DimAttr> query = dimsOf(rankedType(op.getQuery())), key = dimsOf(rankedType(op.getKey()));
  SmallVector<DimAttr> extents{query[0], query[2], query[1], key[1]};
  ElementExprs exprs(context);
  ScoreIndices indices{exprs.indexSymbol("b", extents[0]), exprs.indexSymbol("h", extents[1]),
                       exprs.indexSymbol("i", extents[2]), exprs.indexSymbol("j", extents[3])};
  SmallVector<DimAttr> symbols{indices.batch, indices.head, indices.query, indices.key};
  SmallVector<const Elem *> position;
  for (auto [axis, dim] : llvm::enumerate(dimsOf(type))) {
    size_t full = 4 - type.getRank() + axis;
    position.push_back(constantValue(dim) == 1 ? exprs.number(0) : exprs.index(symbols[full]));
  }
  std::string reason;
  FailureOr<MaskDescription> mask = describeMask(exprs, builder, op.getLoc(), exprs.at(operand, position), nullptr,
                                                 indices, static_cast<bool>(op.getMask()), reason);
  if (failed(mask)) {
    report.assumptions.push_back(nodeName(op) + " keeps its mask tensor: " + reason);
    return;
  }
  if (mask->causalOffset && op.getCausal() && op.getCausalOffset() != *mask->causalOffset)
    return;
  std::optional<int64_t> heads = constantValue(extents[1]);
  DimAttr origin;
  FailureOr<Value> relative = Value();
  reason = "the number of heads is not constant";
  if (!mask->bias.empty() && !heads)
    relative = failure();
  else
    relative = relativeWeight(builder, op.getLoc(), *mask, indices, heads.value_or(0), constantValue(extents[2]) == 1,
                              origin, reason);
  if (failed(relative)) {
    report.assumptions.push_back(nodeName(op) + " keeps its mask tensor: " + reason);
    return;
  }
  op.getMaskMutable().clear();
  op.getBiasMutable().clear();
  if (*relative) {
    op.getRelativeMutable().assign(*relative);
    op.setRelativeOriginAttr(origin);
  }
  if (mask->keyMask)
    op.getKeyMaskMutable().assign(mask->keyMask);
  if (mask->causalOffset) {
    op.setCausal(true);
    op.setCausalOffsetAttr(*mask->causalOffset);
  }
}

void transept::fuseAttention(Operation *root, FusionReport &report) {
  SmallVector<Operation *> sites;
  root->walk([&](Operation *op) {
    if (isa<SoftmaxOp, AttentionOp>(op))
      sites.push_back(op);
  });
  SiteFusion fusion(report);
  for (Operation *op : sites) {
    if (auto softmax = dyn_cast<SoftmaxOp>(op))
      fusion.run(softmax);
    else
      fusion.describe(cast<AttentionOp>(op));
  }
}
