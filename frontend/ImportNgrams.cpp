//===- ImportNgrams.cpp - how often sequences of tokens occur --------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/NodeImport.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
/// The n-grams of one length: `items` holds them one after the other.
struct Grams {
  int64_t length;
  ArrayRef<int64_t> items;
  int64_t count() const { return static_cast<int64_t>(items.size()) / length; }
};

/// What the attributes of TfIdfVectorizer say.
struct Vocabulary {
  SmallVector<int64_t> pool, columns;
  SmallVector<float> weights;
  SmallVector<Grams> grams; ///< of all lengths, in the order of `columns`; those that are not counted included
  int64_t shortest = 1, longest = 1, skips = 0, width = 0;
  std::string mode;
};

LogicalResult readVocabulary(NodeImport &node, Vocabulary &v) {
  if (node.has("pool_strings"))
    return node.unsupported("TfIdfVectorizer of strings");
  v.pool = node.integers("pool_int64s").value_or(SmallVector<int64_t>());
  v.columns = node.integers("ngram_indexes").value_or(SmallVector<int64_t>());
  SmallVector<int64_t> starts = node.integers("ngram_counts").value_or(SmallVector<int64_t>());
  v.shortest = node.integer("min_gram_length", 1);
  v.longest = node.integer("max_gram_length", 1);
  v.skips = node.integer("max_skip_count", 0);
  v.mode = node.text("mode", "TF");
  v.weights = node.reals("weights").value_or(SmallVector<float>(v.columns.size(), 1.0f));
  if (v.mode != "TF" && v.mode != "IDF" && v.mode != "TFIDF")
    return node.invalid("has the unknown mode " + quoted(v.mode));
  constexpr int64_t limit = 1 << 10;
  if (v.skips < 0 || v.shortest < 1 || v.longest < v.shortest)
    return node.invalid("counts n-grams of lengths " + Twine(v.shortest) + " to " + Twine(v.longest) + ", " +
                        Twine(v.skips) + " skipped");
  if (v.longest > static_cast<int64_t>(starts.size()) || v.weights.size() != v.columns.size())
    return node.invalid("has another number of lengths or weights than of n-grams");
  if (v.skips > limit)
    return node.unsupported("TfIdfVectorizer that skips " + Twine(v.skips) + " tokens (up to " + Twine(limit) +
                            " are supported)");
  starts.push_back(static_cast<int64_t>(v.pool.size()));
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    int64_t length = static_cast<int64_t>(i) + 1, from = starts[i], to = starts[i + 1];
    if (from < 0 || to < from || to > static_cast<int64_t>(v.pool.size()) || (to - from) % length != 0)
      return node.invalid("has n-grams of length " + Twine(length) + " from " + Twine(from) + " to " + Twine(to) +
                          " of its pool");
    v.grams.push_back({length, ArrayRef(v.pool).slice(from, to - from)});
  }
  size_t total = 0;
  for (const Grams &grams : v.grams)
    total += grams.count();
  constexpr int64_t widest = int64_t(1) << 31;
  for (int64_t column : v.columns) {
    if (column < 0 || column >= widest)
      return node.invalid("has the n-gram index " + Twine(column));
    v.width = std::max(v.width, column + 1);
  }
  return total == v.columns.size() ? success() : node.invalid("has another number of n-grams than of indexes");
}

/// How often each of the n-grams occurs in the rows of `tokens` [rows, tokens], with `skip` tokens left out between its
/// items: [rows, n-grams] of i64.
Value occurrences(NodeImport &node, Value tokens, const Grams &grams, int64_t skip) {
  Type i64 = node.i64(), i1 = node.i1();
  int64_t reach = (grams.length - 1) * (skip + 1);
  Value size = node.reshape(node.sizes(tokens, 1), ArrayRef<int64_t>());
  Value count = node.make<SubOp>(i64, size, node.scalar(reach)), hit;
  Value starts = node.countTo(node.make<MaxOp>(i64, count, node.scalar(int64_t(0))));
  for (int64_t item = 0; item < grams.length; ++item) {
    SmallVector<int64_t> wanted;
    for (int64_t gram = 0; gram < grams.count(); ++gram)
      wanted.push_back(grams.items[gram * grams.length + item]);
    Value at = node.make<AddOp>(i64, starts, node.scalar(item * (skip + 1)));
    Value found = node.make<UnsqueezeOp>(i64, node.make<GatherOp>(i64, tokens, at, uint64_t(1)), Value(),
                                         node.builder.getDenseI64ArrayAttr({2}));
    Value same = node.make<EqualOp>(i1, found, node.constant(wanted)); // [rows, starts, n-grams]
    hit = hit ? node.make<AndOp>(i1, hit, same) : same;
  }
  return node.reduce(node.castTo(hit, i64), ReduceKind::Sum, {1}, /*keepdims=*/false);
}

/// Each n-gram of the pool has a column; what is counted in it is its number, whether there is one, or its weight times
/// these.
LogicalResult importTfIdfVectorizer(NodeImport &node) {
  Vocabulary v;
  if (failed(readVocabulary(node, v)))
    return failure();
  std::optional<int64_t> rank = node.rank(node.input(0));
  if (!rank)
    return node.unsupported("TfIdfVectorizer of an input of unknown rank");
  Type i64 = node.i64(), f32 = node.builder.getF32Type();
  Value tokens = node.castTo(node.input(0), i64);
  if (*rank == 1)
    tokens = node.reshape(tokens, {1, -1});
  Value rows = node.sizes(tokens, 0, 1);
  SmallVector<Value> parts;
  for (const Grams &grams : v.grams) {
    if (grams.count() == 0)
      continue;
    Value sum;
    bool isCounted = grams.length >= v.shortest && grams.length <= v.longest;
    // A single token has nothing to skip.
    for (int64_t skip = 0; isCounted && skip <= (grams.length == 1 ? 0 : v.skips); ++skip) {
      Value found = occurrences(node, tokens, grams, skip);
      sum = sum ? node.make<AddOp>(i64, sum, found) : found;
    }
    if (!sum) {
      Value shape = node.make<ConcatOp>(i64, ValueRange{rows, node.constant({grams.count()})}, uint64_t(0));
      sum = node.make<BroadcastOp>(i64, node.scalar(int64_t(0)), shape);
    }
    parts.push_back(sum);
  }
  if (parts.empty())
    return node.invalid("has no n-grams");
  Value counts = parts.size() == 1 ? parts[0] : node.make<ConcatOp>(i64, parts, uint64_t(1));
  if (v.mode == "IDF")
    counts = node.castTo(node.make<GreaterOp>(node.i1(), counts, node.scalar(int64_t(0))), i64);
  Value result = node.castTo(counts, f32);
  if (v.mode != "TF") {
    auto type = RankedTensorType::get({static_cast<int64_t>(v.weights.size())}, f32);
    HostTensor weights = HostTensor::make(type);
    for (auto [i, weight] : llvm::enumerate(v.weights))
      weights.setDouble(static_cast<int64_t>(i), weight);
    result = node.make<MulOp>(f32, result, node.materializeHost(weights));
  }
  Value shape = node.make<ConcatOp>(i64, ValueRange{rows, node.constant({v.width})}, uint64_t(0));
  Value columns = node.make<BroadcastOp>(i64, node.constant(v.columns), node.sizes(result));
  result = node.make<ScatterElementsOp>(f32, node.make<BroadcastOp>(f32, node.scalar(f32, 0), shape), columns, result,
                                        uint64_t(1), ScatterKind::Add);
  return node.result(*rank == 1 ? node.reshape(result, {-1}) : result);
}
} // namespace

void mlir::transept::addNgramImports(ImportTable &table) { table.add("TfIdfVectorizer", importTfIdfVectorizer); }
