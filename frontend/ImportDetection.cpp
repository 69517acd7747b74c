//===- ImportDetection.cpp - boxes that overlap -----------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/NodeImport.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
/// Sides and area of boxes, each [batch, boxes] or [batch, classes, boxes].
struct Boxes {
  Value top, left, bottom, right, area;
};

class Suppression {
public:
  explicit Suppression(NodeImport &node) : node(node), element(node.elementOf(node.input(0))) {}

  /// The indices [selected, 3] of batch, class and box.
  Value run();

private:
  template <typename Op> Value apply(Value a, Value b) { return node.make<Op>(element, a, b); }
  Value add(Value a, Value b) { return apply<AddOp>(a, b); }
  Value sub(Value a, Value b) { return apply<SubOp>(a, b); }
  Value mul(Value a, Value b) { return apply<MulOp>(a, b); }
  /// An optional input as a scalar; null where it is absent.
  Value option(size_t index) {
    Value value = node.input(index);
    return value ? node.reshape(value, ArrayRef<int64_t>()) : Value();
  }
  Boxes sides();
  Boxes each(const Boxes &boxes, llvm::function_ref<Value(Value)> change) {
    return {change(boxes.top), change(boxes.left), change(boxes.bottom), change(boxes.right), change(boxes.area)};
  }
  /// Whether what two boxes share is more of what they cover together than the threshold allows.
  Value overlap(const Boxes &a, const Boxes &b, Value threshold);
  /// Which of the boxes, [batch, classes, boxes] with the best score first, are hidden by none before them.
  Value visible(const Boxes &boxes, Value candidates, Value threshold);

  NodeImport &node;
  Type element;
};

Boxes Suppression::sides() {
  auto part = [&](int64_t index) {
    return node.make<GatherOp>(element, node.input(0), node.scalar(index), uint64_t(2));
  };
  Boxes boxes;
  if (node.integer("center_point_box", 0)) {
    Value half = node.scalar(element, 0.5), x = part(0), y = part(1);
    Value width = mul(part(2), half), height = mul(part(3), half);
    boxes = {sub(y, height), sub(x, width), add(y, height), add(x, width), {}};
  } else {
    Value y0 = part(0), x0 = part(1), y1 = part(2), x1 = part(3);
    boxes = {apply<MinOp>(y0, y1), apply<MinOp>(x0, x1), apply<MaxOp>(y0, y1), apply<MaxOp>(x0, x1), {}};
  }
  boxes.area = mul(sub(boxes.bottom, boxes.top), sub(boxes.right, boxes.left));
  return boxes;
}

Value Suppression::overlap(const Boxes &a, const Boxes &b, Value threshold) {
  Value zero = node.scalar(element, 0);
  Value height = sub(apply<MinOp>(a.bottom, b.bottom), apply<MaxOp>(a.top, b.top));
  Value width = sub(apply<MinOp>(a.right, b.right), apply<MaxOp>(a.left, b.left));
  Value shared = mul(apply<MaxOp>(height, zero), apply<MaxOp>(width, zero));
  Value together = sub(add(a.area, b.area), shared);
  return node.make<GreaterOp>(node.i1(), apply<DivOp>(shared, together), threshold);
}

Value Suppression::visible(const Boxes &boxes, Value candidates, Value threshold) {
  Type i1 = node.i1();
  Value count = node.reshape(node.sizes(candidates, 2), ArrayRef<int64_t>()), places = node.countTo(count);
  FailureOr<SmallVector<Value>> rest =
      node.loop(count, Value(), {candidates}, [&](Block &block, SmallVectorImpl<Value> &yielded) {
        Value number = node.reshape(block.getArgument(0), {1}), shown = block.getArgument(2);
        auto current = [&](Value of) { return node.make<GatherOp>(node.elementOf(of), of, number, uint64_t(2)); };
        Value hides = node.make<AndOp>(i1, current(shown), node.make<GreaterOp>(i1, places, number));
        Value hidden = node.make<AndOp>(i1, hides, overlap(each(boxes, current), boxes, threshold));
        yielded.assign({block.getArgument(1), node.make<AndOp>(i1, shown, node.make<NotOp>(i1, hidden))});
        return success();
      });
  return rest->front();
}

Value Suppression::run() {
  Type i64 = node.i64(), i1 = node.i1();
  Value scores = node.input(1);
  auto sorted =
      node.builder.create<TopKOp>(node.loc, Type(UnrankedTensorType::get(element)), Type(UnrankedTensorType::get(i64)),
                                  scores, node.sizes(scores, 2), DimAttr(), uint64_t(2), /*largest=*/true);
  Value order = sorted.getIndices(), shape = node.sizes(scores);
  Boxes boxes = each(sides(), [&](Value of) {
    Value ofClass = node.make<UnsqueezeOp>(element, of, Value(), node.builder.getDenseI64ArrayAttr({1}));
    return node.make<GatherElementsOp>(element, node.make<BroadcastOp>(element, ofClass, shape), order, uint64_t(2));
  });
  Value least = option(4), threshold = option(3), limit = option(2);
  auto all = RankedTensorType::get({}, i1);
  Value candidates =
      least ? node.make<GreaterOp>(i1, sorted.getValues(), least)
            : node.make<BroadcastOp>(
                  i1, node.builder.create<ConstantOp>(node.loc, all, DenseElementsAttr::get(all, true)), shape);
  Value shown = visible(boxes, candidates, threshold ? threshold : node.scalar(element, 0));
  // The best ones of each class, as many as are wanted.
  Value rank = node.make<CumSumOp>(i64, node.castTo(shown, i64), Value(), node.builder.getI64IntegerAttr(2),
                                   /*exclusive=*/false, /*reverse=*/false);
  Value wanted = node.make<LessOrEqualOp>(i1, rank, limit ? node.castTo(limit, i64) : node.scalar(int64_t(0)));
  Value places = node.transpose(node.make<NonZeroOp>(i64, node.make<AndOp>(i1, shown, wanted)), {1, 0});
  Value box = node.make<GatherNDOp>(i64, order, places, uint64_t(0));
  Value classes = node.slice(places, node.constant({0}), node.constant({2}), 1);
  return node.make<ConcatOp>(i64, ValueRange{classes, node.reshape(box, {-1, 1})}, uint64_t(1));
}

LogicalResult importNonMaxSuppression(NodeImport &node) { return node.result(Suppression(node).run()); }
} // namespace

void mlir::transept::addDetectionImports(ImportTable &table) {
  table.add("NonMaxSuppression", importNonMaxSuppression);
}
