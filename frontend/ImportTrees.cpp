//===- ImportTrees.cpp - ensembles of decision trees ------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All rows walk down all trees at once, one level per repetition of a loop. Nodes and leaves have one numbering, leaves
// behind the nodes; a leaf leads to itself.

#include "frontend/NodeImport.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

namespace {
enum Mode : int64_t { LessOrEqual, Less, GreaterOrEqual, Greater, Equal, NotEqual, Member, ModeCount };
enum class Aggregate : int64_t { Average, Sum, Min, Max };
enum class PostTransform : int64_t { None, Softmax, Logistic, SoftmaxZero, Probit };

/// Tables with an entry per node and leaf.
struct Trees {
  int64_t nodes = 0, leaves = 0, depth = 0, targets = 0, largestSet = 0;
  SmallVector<int64_t> roots, features, modes, onTrue, onFalse, missing, leafTargets;
  SmallVector<double> splits, leafWeights, sets; ///< sets: `largestSet` members per entry, filled up with NaN
  Aggregate aggregate = Aggregate::Sum;
  PostTransform transform = PostTransform::None;
};

class TreeReader {
public:
  TreeReader(NodeImport &node, Trees &trees) : node(node), t(trees) {}
  LogicalResult read();

private:
  LogicalResult readNodes();
  LogicalResult readLeaves();
  LogicalResult readSets();
  LogicalResult measureDepth();
  /// The elements of a tensor attribute; a failure is reported.
  FailureOr<SmallVector<double>> numbers(StringRef name);

  NodeImport &node;
  Trees &t;
};

FailureOr<SmallVector<double>> TreeReader::numbers(StringRef name) {
  const onnx::TensorProto *tensor = node.tensor(name);
  if (!tensor)
    return SmallVector<double>();
  Outcome<TensorData> data = node.decode(*tensor);
  if (!data)
    return failure();
  HostTensor content = HostTensor::fromBytes(data->type, data->bytes);
  SmallVector<double> values;
  for (int64_t i = 0; i < content.numElements(); ++i)
    values.push_back(content.getDouble(i));
  return values;
}

LogicalResult TreeReader::readNodes() {
  auto list = [&](StringRef name) { return node.integers(name).value_or(SmallVector<int64_t>()); };
  t.features = list("nodes_featureids");
  t.nodes = static_cast<int64_t>(t.features.size());
  t.roots = list("tree_roots");
  t.missing = list("nodes_missing_value_tracks_true");
  t.missing.resize(t.missing.empty() ? t.nodes : t.missing.size(), 0);
  node.ignore("nodes_hitrates");
  FailureOr<SmallVector<double>> modes = numbers("nodes_modes"), splits = numbers("nodes_splits");
  if (failed(modes) || failed(splits))
    return failure();
  t.splits = *splits;
  SmallVector<int64_t> trueIds = list("nodes_truenodeids"), trueLeaves = list("nodes_trueleafs"),
                       falseIds = list("nodes_falsenodeids"), falseLeaves = list("nodes_falseleafs");
  for (size_t count : {modes->size(), splits->size(), trueIds.size(), trueLeaves.size(), falseIds.size(),
                       falseLeaves.size(), t.missing.size()})
    if (count != t.features.size())
      return node.invalid("has lists of " + Twine(count) + " and of " + Twine(t.nodes) + " nodes");
  for (int64_t i = 0; i < t.nodes; ++i) {
    auto mode = static_cast<int64_t>((*modes)[i]);
    if (mode < 0 || mode >= ModeCount || t.features[i] < 0)
      return node.invalid("has a node with mode " + Twine(mode) + " and feature " + Twine(t.features[i]));
    t.modes.push_back(mode);
    for (auto [ids, leaves, targets] :
         {std::tuple(&trueIds, &trueLeaves, &t.onTrue), std::tuple(&falseIds, &falseLeaves, &t.onFalse)}) {
      int64_t id = (*ids)[i];
      bool isLeaf = (*leaves)[i] != 0;
      if (id < 0 || id >= (isLeaf ? t.leaves : t.nodes))
        return node.invalid("has a node that leads to " + Twine(isLeaf ? "leaf " : "node ") + Twine(id));
      targets->push_back(isLeaf ? t.nodes + id : id);
    }
  }
  bool known = llvm::all_of(t.roots, [&](int64_t root) { return root >= 0 && root < t.nodes; });
  return known && !t.roots.empty() ? success() : node.invalid("has no trees, or a root that is no node");
}

LogicalResult TreeReader::readLeaves() {
  FailureOr<SmallVector<double>> weights = numbers("leaf_weights");
  if (failed(weights))
    return failure();
  t.leafTargets = node.integers("leaf_targetids").value_or(SmallVector<int64_t>());
  t.leafWeights = *weights;
  t.leaves = static_cast<int64_t>(t.leafTargets.size());
  t.targets = node.integer("n_targets", 0);
  if (t.leaves == 0 || weights->size() != t.leafTargets.size())
    return node.invalid("has no leaves, or another number of weights");
  for (int64_t target : t.leafTargets)
    if (target < 0 || target >= t.targets)
      return node.invalid("has a leaf for target " + Twine(target) + " of " + Twine(t.targets));
  return success();
}

LogicalResult TreeReader::readSets() {
  FailureOr<SmallVector<double>> members = numbers("membership_values");
  if (failed(members))
    return failure();
  SmallVector<SmallVector<double>> sets(1);
  for (double member : *members)
    if (std::isnan(member))
      sets.emplace_back();
    else
      sets.back().push_back(member);
  size_t wanted = llvm::count(t.modes, int64_t(Member)), next = 0;
  if (sets.size() < wanted || (sets.size() > wanted && !sets.back().empty()))
    return node.invalid("has another number of sets than of nodes that look into one");
  if (wanted == 0)
    return success();
  for (const SmallVector<double> &set : sets)
    t.largestSet = std::max<int64_t>(t.largestSet, set.size());
  t.largestSet = std::max<int64_t>(t.largestSet, 1);
  constexpr int64_t limit = 1 << 24;
  if (t.largestSet > limit / (t.nodes + t.leaves))
    return node.unsupported("TreeEnsemble with " + Twine(t.nodes) + " nodes and sets of " + Twine(t.largestSet));
  for (int64_t i = 0; i < t.nodes + t.leaves; ++i) {
    SmallVector<double> set;
    if (i < t.nodes && t.modes[i] == Member)
      set = sets[next++];
    set.resize(t.largestSet, std::nan(""));
    llvm::append_range(t.sets, set);
  }
  return success();
}

/// The longest way from a root to a leaf; a way that is longer than there are nodes never ends.
LogicalResult TreeReader::measureDepth() {
  SmallVector<int64_t> level(t.roots.begin(), t.roots.end());
  for (; !level.empty(); ++t.depth) {
    if (t.depth > t.nodes)
      return node.invalid("has a node that leads back to itself");
    llvm::DenseSet<int64_t> next;
    for (int64_t from : level)
      for (int64_t to : {t.onTrue[from], t.onFalse[from]})
        if (to < t.nodes)
          next.insert(to);
    level.assign(next.begin(), next.end());
  }
  return success();
}

LogicalResult TreeReader::read() {
  if (failed(readLeaves()) || failed(readNodes()) || failed(readSets()) || failed(measureDepth()))
    return failure();
  int64_t aggregate = node.integer("aggregate_function", 1), transform = node.integer("post_transform", 0);
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)
    return node.invalid("has the unknown aggregate_function " + Twine(aggregate) + " or post_transform " +
                        Twine(transform));
  t.aggregate = static_cast<Aggregate>(aggregate);
  t.transform = static_cast<PostTransform>(transform);
  if (t.transform == PostTransform::SoftmaxZero || t.transform == PostTransform::Probit)
    return node.unsupported("TreeEnsemble with post_transform SOFTMAX_ZERO or PROBIT");
  for (int64_t i = 0; i < t.leaves; ++i) {
    t.features.push_back(0);
    t.modes.push_back(LessOrEqual);
    t.missing.push_back(0);
    t.splits.push_back(0);
    t.onTrue.push_back(t.nodes + i);
    t.onFalse.push_back(t.nodes + i);
  }
  return success();
}

class TreeBuilder {
public:
  TreeBuilder(NodeImport &node, const Trees &trees)
      : node(node), t(trees), element(node.elementOf(node.input(0))), i64(node.i64()), i1(node.i1()) {}
  Value build();

private:
  Value integers(ArrayRef<int64_t> values) { return node.constant(values); }
  Value reals(ArrayRef<double> values, ArrayRef<int64_t> shape) {
    HostTensor tensor = HostTensor::make(RankedTensorType::get(shape, element));
    for (auto [i, value] : llvm::enumerate(values))
      tensor.setDouble(static_cast<int64_t>(i), value);
    return node.materializeHost(tensor);
  }
  Value reals(ArrayRef<double> values) { return reals(values, {static_cast<int64_t>(values.size())}); }
  Value at(Value table, Value places) { return node.make<GatherOp>(node.elementOf(table), table, places, uint64_t(0)); }
  template <typename Op> Value test(Value a, Value b) { return node.make<Op>(i1, a, b); }
  /// Where rows [rows, trees] go on to from `places`.
  Value below(Value places);
  Value isTrue(Value places, Value value);

  NodeImport &node;
  const Trees &t;
  Type element, i64, i1;
};

Value TreeBuilder::isTrue(Value places, Value value) {
  Value mode = at(integers(t.modes), places), split = at(reals(t.splits), places), result;
  auto choose = [&](Mode wanted, llvm::function_ref<Value()> compute) {
    if (!llvm::is_contained(t.modes, int64_t(wanted)))
      return;
    Value own = compute();
    result = result ? node.make<WhereOp>(i1, test<EqualOp>(mode, node.scalar(int64_t(wanted))), own, result) : own;
  };
  choose(LessOrEqual, [&] { return test<LessOrEqualOp>(value, split); });
  choose(Less, [&] { return test<LessOp>(value, split); });
  choose(GreaterOrEqual, [&] { return test<GreaterOrEqualOp>(value, split); });
  choose(Greater, [&] { return test<GreaterOp>(value, split); });
  choose(Equal, [&] { return test<EqualOp>(value, split); });
  choose(NotEqual, [&] { return node.make<NotOp>(i1, test<EqualOp>(value, split)); });
  choose(Member, [&] {
    Value set = at(reals(t.sets, {t.nodes + t.leaves, t.largestSet}), places); // [rows, trees, members]
    Value wide = node.make<UnsqueezeOp>(element, value, Value(), node.builder.getDenseI64ArrayAttr({2}));
    Value same = node.castTo(test<EqualOp>(set, wide), i64);
    return node.castTo(node.reduce(same, ReduceKind::Max, {2}, /*keepdims=*/false), i1);
  });
  return result;
}

Value TreeBuilder::below(Value places) {
  Value feature = at(integers(t.features), places);
  Value value = node.make<GatherElementsOp>(element, node.input(0), feature, uint64_t(1));
  Value onTrue = isTrue(places, value);
  if (isa<FloatType>(element)) {
    // What is missing fulfils no comparison but "not equal"; the attribute adds to that.
    Value follows = node.castTo(at(integers(t.missing), places), i1);
    onTrue = node.make<OrOp>(i1, onTrue, node.make<AndOp>(i1, node.make<IsNaNOp>(i1, value), follows));
  }
  return node.make<WhereOp>(i64, onTrue, at(integers(t.onTrue), places), at(integers(t.onFalse), places));
}

Value TreeBuilder::build() {
  Value rows = node.sizes(node.input(0), 0, 1);
  auto trees = static_cast<int64_t>(t.roots.size());
  Value shape = node.make<ConcatOp>(i64, ValueRange{rows, node.constant({trees})}, uint64_t(0));
  Value start = node.make<BroadcastOp>(i64, integers(t.roots), shape);
  FailureOr<SmallVector<Value>> end =
      node.loop(node.scalar(t.depth), Value(), {start}, [&](Block &block, SmallVectorImpl<Value> &yielded) {
        yielded.assign({block.getArgument(1), below(block.getArgument(2))});
        return success();
      });
  Value leaf = node.make<SubOp>(i64, end->front(), node.scalar(t.nodes));
  // [rows, trees, targets]: what each tree says of each target.
  auto wide = [&](Value value) {
    return node.make<UnsqueezeOp>(node.elementOf(value), value, Value(), node.builder.getDenseI64ArrayAttr({2}));
  };
  Value isTarget = test<EqualOp>(wide(at(integers(t.leafTargets), leaf)), node.countTo(node.scalar(t.targets)));
  Value weight = wide(at(reals(t.leafWeights), leaf));
  auto reduce = [&](double otherwise, ReduceKind kind) {
    Value votes = node.make<WhereOp>(element, isTarget, weight, node.scalar(element, otherwise));
    return node.reduce(votes, kind, {1}, /*keepdims=*/false);
  };
  Value result;
  if (t.aggregate == Aggregate::Average || t.aggregate == Aggregate::Sum) {
    result = reduce(0, ReduceKind::Sum);
    if (t.aggregate == Aggregate::Average)
      result = node.make<DivOp>(element, result, node.scalar(element, static_cast<double>(trees)));
  } else {
    bool least = t.aggregate == Aggregate::Min;
    result = reduce(least ? INFINITY : -INFINITY, least ? ReduceKind::Min : ReduceKind::Max);
    // A target that no tree votes for.
    Value any = node.castTo(node.reduce(node.castTo(isTarget, i64), ReduceKind::Max, {1}, /*keepdims=*/false), i1);
    result = node.make<WhereOp>(element, any, result, node.scalar(element, 0));
  }
  if (t.transform == PostTransform::Logistic)
    result = node.make<SigmoidOp>(element, result);
  if (t.transform == PostTransform::Softmax)
    result = node.make<SoftmaxOp>(element, result, uint64_t(1), /*logarithm=*/false);
  return result;
}

LogicalResult importTreeEnsemble(NodeImport &node) {
  Trees trees;
  if (failed(TreeReader(node, trees).read()))
    return failure();
  return node.result(TreeBuilder(node, trees).build());
}
} // namespace

void mlir::transept::addTreeImports(ImportTable &table) { table.add("ai.onnx.ml", "TreeEnsemble", importTreeEnsemble); }
