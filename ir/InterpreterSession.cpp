//===- InterpreterSession.cpp - generation ops over a session's states ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/InterpreterSession.h"
#include "ir/Evaluate.h"
#include "ir/HostMath.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::transept;
using namespace mlir::transept::host;

namespace {
/// Positions of a cache block, and tokens of a vocabulary block.
constexpr int64_t blockPositions = 16, vocabularyBlock = 2048;

HostTensor findState(const InterpreterSession &session, StringRef name) {
  auto found = session.states.find(std::string_view(name.data(), name.size()));
  return found == session.states.end() ? HostTensor() : found->second;
}

int64_t liveRows(const InterpreterSession &session, int64_t rows) {
  const HostTensor live = findState(session, "step.live");
  return live && live.numElements() == 1 ? std::clamp<int64_t>(live.getInt(0), 0, rows) : rows;
}

/// Element `row` of a per-row state; an error at `op` if there is none.
FailureOr<int64_t> rowValue(Operation *op, const InterpreterSession &session, StringRef name, int64_t row) {
  const HostTensor state = findState(session, name);
  if (!state || row >= state.numElements())
    return op->emitOpError() << "needs element " << row << " of state " << name;
  return state.getInt(row);
}

/// The pool index (block * 16 + offset) of a position of a row. Without a block table, every row has its own blocks.
FailureOr<int64_t> poolIndex(Operation *op, const InterpreterSession &session, int64_t row, int64_t position) {
  const HostTensor table = findState(session, "step.block");
  const int64_t capacity = table                               ? table.shape().back()
                           : session.symbols.count("capacity") ? session.symbols.lookup("capacity")
                                                               : 1024;
  if (position < 0 || position >= capacity || (table && (row + 1) * capacity > table.numElements()))
    return op->emitOpError() << "needs position " << position << " of row " << row << ", the capacity is " << capacity;
  const int64_t block = table ? table.getInt(row * capacity + position)
                              : row * ((capacity + blockPositions - 1) / blockPositions) + position / blockPositions;
  if (block < 0 || block > (int64_t{1} << 24))
    return op->emitOpError() << "has block " << block << " for position " << position << " of row " << row;
  return block * blockPositions + position % blockPositions;
}

/// The pool `name` of vectors [heads, size], grown to hold `index`.
HostTensor &grownPool(InterpreterSession &session, const std::string &name, const HostTensor &rows, int64_t index) {
  HostTensor &pool = session.states[name];
  const int64_t heads = rows.shape()[2], size = rows.shape()[3], blocks = index / blockPositions + 1;
  if (pool && pool.shape()[0] >= blocks)
    return pool;
  HostTensor larger =
      HostTensor::make(RankedTensorType::get({blocks, blockPositions, heads, size}, rows.elementType()));
  if (pool)
    copyElements(larger, 0, pool, 0, pool.numElements());
  return pool = larger;
}

LogicalResult readState(StateOp op, InterpreterSession &session, SmallVectorImpl<HostTensor> &results) {
  const HostTensor state = findState(session, op.getName());
  if (!state)
    return op.emitOpError() << "reads state " << op.getName() << ", which nobody wrote";
  // Vectors over rows are seen as [rows, 1] by graphs that want a position axis.
  if (state.elementType() != results[0].elementType() || state.numElements() != results[0].numElements())
    return op.emitOpError() << "reads state " << op.getName() << " of type " << state.getType() << " as "
                            << results[0].getType();
  copyElements(results[0], 0, state, 0, state.numElements());
  return success();
}

LogicalResult append(CacheAppendOp op, const HostTensor &key, const HostTensor &value, InterpreterSession &session) {
  if (key.shape().size() != 4 || value.shape().size() != 4 || key.shape()[0] != value.shape()[0] ||
      key.shape()[1] != value.shape()[1])
    return op.emitOpError() << "appends keys " << toText(key.shape()) << " and values " << toText(value.shape());
  const std::string layer = std::to_string(op.getLayer());
  const int64_t positions = key.shape()[1];
  for (int64_t at = 0, end = liveRows(session, key.shape()[0]) * positions; at < end; ++at) {
    FailureOr<int64_t> first = rowValue(op, session, "step.position", at / positions);
    if (failed(first))
      return failure();
    FailureOr<int64_t> index = poolIndex(op, session, at / positions, *first + at % positions);
    if (failed(index))
      return failure();
    for (auto &[name, rows] : {std::make_pair("cache.key.", key), std::make_pair("cache.value.", value)}) {
      const int64_t width = rows.shape()[2] * rows.shape()[3];
      HostTensor &pool = grownPool(session, name + layer, rows, *index);
      if (pool.shape().drop_front(2) != rows.shape().drop_front(2) || pool.elementType() != rows.elementType())
        return op.emitOpError() << "appends " << toText(rows.shape()) << " to a cache of " << toText(pool.shape());
      copyElements(pool, *index * width, rows, at * width, width);
    }
  }
  return success();
}

/// The part of an attention problem that is one position's: query [rows, T, H, D], `row` counts rows * T.
AttentionProblem rowProblem(const HostTensor &query, int64_t row, double scale) {
  AttentionProblem problem;
  problem.batch = problem.queries = 1;
  problem.heads = query.shape()[2];
  problem.size = query.shape()[3];
  problem.scale = scale;
  problem.softcap = 0;
  problem.emptyRow = EmptyRow::Zero;
  problem.query = [&query, row, heads = problem.heads, size = problem.size](int64_t, int64_t, int64_t h, int64_t d) {
    return query.getDouble((row * heads + h) * size + d);
  };
  return problem;
}

/// Attends and writes the position of the result [rows, T, H, Dv]; `weights`, where given, receives [1, H, 1, keys].
void attendRow(const AttentionProblem &problem, int64_t row, HostTensor &result, HostTensor *weights = nullptr) {
  HostTensor one =
      HostTensor::make(RankedTensorType::get({1, 1, problem.heads, problem.valueSize}, result.elementType()));
  attend(problem, one, weights);
  copyElements(result, row * one.numElements(), one, 0, one.numElements());
}

LogicalResult attendToCache(CacheAttentionOp op, ArrayRef<HostTensor> operands, InterpreterSession &session,
                            HostTensor &result) {
  const HostTensor &query = operands[0], relative = operands.size() > 1 ? operands[1] : HostTensor();
  const std::string layer = std::to_string(op.getLayer());
  const HostTensor keys = findState(session, "cache.key." + layer), values = findState(session, "cache.value." + layer);
  if (!keys || !values || query.shape().size() != 4 || keys.shape()[3] != query.shape()[3] || keys.shape()[2] == 0 ||
      query.shape()[2] % keys.shape()[2] != 0 || values.shape()[2] != keys.shape()[2] ||
      result.numElements() != query.shape()[0] * query.shape()[1] * query.shape()[2] * values.shape()[3] ||
      (relative && !isRelativeTable(relative, query.shape()[2])))
    return op.emitOpError() << "cannot attend from " << toText(query.shape()) << " to the cache of layer " << layer;
  const int64_t positions = query.shape()[1];
  for (int64_t at = 0, end = liveRows(session, query.shape()[0]) * positions; at < end; ++at) {
    const int64_t row = at / positions;
    FailureOr<int64_t> first = rowValue(op, session, "step.position", row);
    if (failed(first))
      return failure();
    std::vector<int64_t> places;
    for (int64_t p = 0; p <= *first + at % positions; ++p) {
      FailureOr<int64_t> index = poolIndex(op, session, row, p);
      if (failed(index))
        return failure();
      if (*index >= std::min(keys.shape()[0], values.shape()[0]) * blockPositions)
        return op.emitOpError() << "reads position " << p << " of row " << row << ", which nobody wrote";
      places.push_back(*index);
    }
    AttentionProblem problem = rowProblem(query, at, op.getScale().convertToFloat());
    problem.keys = static_cast<int64_t>(places.size());
    problem.keyHeads = keys.shape()[2];
    problem.valueSize = values.shape()[3];
    auto reader = [&places](const HostTensor &pool) {
      return [&places, &pool](int64_t, int64_t j, int64_t h, int64_t d) {
        return pool.getDouble((places[j] * pool.shape()[2] + h) * pool.shape()[3] + d);
      };
    };
    problem.key = reader(keys);
    problem.value = reader(values);
    if (relative)
      problem.bias = [&, position = problem.keys - 1](int64_t, int64_t h, int64_t, int64_t j) {
        return relativeBias(relative, h, j - position - static_cast<int64_t>(op.getRelativeOrigin().value_or(0)));
      };
    attendRow(problem, at, result);
  }
  return success();
}

LogicalResult attendToSource(CrossAttentionOp op, ArrayRef<HostTensor> operands, InterpreterSession &session,
                             MutableArrayRef<HostTensor> results) {
  HostTensor &result = results[0];
  const HostTensor &query = operands[0], &key = operands[1], &value = operands[2];
  const HostTensor keyMask = operands.size() > 3 ? operands[3] : HostTensor();
  if (query.shape().size() != 4 || key.shape().size() != 4 || value.shape().size() != 4 ||
      key.shape()[3] != query.shape()[3] || key.shape().take_front(3) != value.shape().take_front(3) ||
      key.shape()[2] == 0 || query.shape()[2] % key.shape()[2] != 0 ||
      result.numElements() != query.shape()[0] * query.shape()[1] * query.shape()[2] * value.shape()[3] ||
      (keyMask && keyMask.shape() != key.shape().take_front(2)))
    return op.emitOpError() << "cannot attend from " << toText(query.shape()) << " to keys " << toText(key.shape())
                            << " and values " << toText(value.shape());
  const int64_t positions = query.shape()[1], heads = query.shape()[2], keys = key.shape()[1];
  for (int64_t at = 0, end = liveRows(session, query.shape()[0]) * positions; at < end; ++at) {
    FailureOr<int64_t> source = rowValue(op, session, "step.source", at / positions);
    if (failed(source))
      return failure();
    if (*source < 0 || *source >= key.shape()[0])
      return op.emitOpError() << "reads source slot " << *source << " of " << key.shape()[0];
    AttentionProblem problem = rowProblem(query, at, op.getScale().convertToFloat());
    problem.keys = keys;
    problem.keyHeads = key.shape()[2];
    problem.valueSize = value.shape()[3];
    problem.emptyRow = op.getEmptyRow();
    auto reader = [slot = *source](const HostTensor &states) {
      return [slot, &states](int64_t, int64_t j, int64_t h, int64_t d) {
        ArrayRef<int64_t> shape = states.shape();
        return states.getDouble(((slot * shape[1] + j) * shape[2] + h) * shape[3] + d);
      };
    };
    problem.key = reader(key);
    problem.value = reader(value);
    if (keyMask)
      problem.visible = [&, slot = *source](int64_t, int64_t, int64_t, int64_t j) {
        return keyMask.getDouble(slot * keyMask.shape()[1] + j) != 0;
      };
    if (results.size() == 1) {
      attendRow(problem, at, result);
      continue;
    }
    HostTensor weights = HostTensor::make(RankedTensorType::get({1, heads, 1, keys}, results[1].elementType()));
    attendRow(problem, at, result, &weights);
    for (int64_t h = 0; h < heads; ++h)
      copyElements(results[1], (((at / positions) * heads + h) * positions + at % positions) * keys, weights, h * keys,
                   keys);
  }
  return success();
}

/// Fills block `block` of the search results of one row.
struct SearchResults {
  HostTensor max, sum, value, token;
  int64_t blocks, topk;

  void fill(int64_t row, int64_t block, ArrayRef<double> logits, const llvm::SmallDenseSet<int64_t> &special) {
    const int64_t first = block * vocabularyBlock;
    const int64_t end = std::min<int64_t>(first + vocabularyBlock, logits.size()), at = row * blocks + block;
    double most = -std::numeric_limits<double>::infinity(), total = 0;
    std::vector<int64_t> candidates;
    for (int64_t token = first; token < end; ++token) {
      most = std::isnan(most) || most > logits[token] ? most : logits[token];
      if (!special.contains(token))
        candidates.push_back(token);
    }
    for (int64_t token = first; token < end; ++token)
      total += math::exp(logits[token] - most);
    max.setDouble(at, most);
    sum.setDouble(at, total);
    std::stable_sort(candidates.begin(), candidates.end(), [&](int64_t a, int64_t b) { return logits[a] > logits[b]; });
    for (int64_t i = 0; i < topk; ++i) {
      const bool some = i < static_cast<int64_t>(candidates.size());
      token.setInt(at * topk + i, some ? candidates[i] : -1);
      value.setDouble(at * topk + i, some ? logits[candidates[i]] : -std::numeric_limits<double>::infinity());
    }
  }
};

LogicalResult search(SearchHeadOp op, const HostTensor &logits, InterpreterSession &session) {
  if (logits.shape().empty() || logits.shape().back() == 0 || session.symbols.lookup("topk") <= 0)
    return op.emitOpError() << "needs logits and the symbol topk, but has shape " << toText(logits.shape());
  MLIRContext *context = op.getContext();
  Builder builder(context);
  const int64_t vocabulary = logits.shape().back(), rows = logits.numElements() / vocabulary;
  const HostTensor special = findState(session, "step.special");
  const int64_t specials = special ? special.shape().back() : 0;
  if (special && special.numElements() != rows * specials)
    return op.emitOpError() << "has " << rows << " rows, but step.special has shape " << toText(special.shape());
  auto make = [&](ArrayRef<int64_t> shape, Type element) {
    return HostTensor::make(RankedTensorType::get(shape, element));
  };
  Type f32 = builder.getF32Type(), i32 = builder.getI32Type();
  SearchResults results;
  results.blocks = (vocabulary + vocabularyBlock - 1) / vocabularyBlock;
  results.topk = session.symbols.lookup("topk");
  results.max = make({rows, results.blocks}, f32);
  results.sum = make({rows, results.blocks}, f32);
  results.value = make({rows, results.blocks, results.topk}, f32);
  results.token = make({rows, results.blocks, results.topk}, i32);
  HostTensor specialLogits = make({rows, specials}, f32), raw = make({rows, vocabulary}, f32);
  for (int64_t row = 0, live = liveRows(session, rows); row < live; ++row) {
    std::vector<double> values(vocabulary);
    for (int64_t token = 0; token < vocabulary; ++token) {
      values[token] = logits.getDouble(row * vocabulary + token);
      raw.setDouble(row * vocabulary + token, values[token]);
    }
    llvm::SmallDenseSet<int64_t> set;
    for (int64_t i = 0; i < specials; ++i) {
      const int64_t token = special.getInt(row * specials + i);
      if (token < 0 || token >= vocabulary)
        continue;
      set.insert(token);
      specialLogits.setDouble(row * specials + i, values[token]);
    }
    for (int64_t block = 0; block < results.blocks; ++block)
      results.fill(row, block, values, set);
  }
  session.states["search.max"] = results.max;
  session.states["search.sum"] = results.sum;
  session.states["search.value"] = results.value;
  session.states["search.token"] = results.token;
  session.states["search.special"] = specialLogits;
  session.states["logits"] = raw;
  return success();
}
} // namespace

LogicalResult transept::evaluateInSession(Operation *op, ArrayRef<HostTensor> operands, InterpreterSession &session,
                                          SmallVectorImpl<HostTensor> &results) {
  if (auto state = dyn_cast<StateOp>(op))
    return readState(state, session, results);
  if (auto exported = dyn_cast<ExportOp>(op)) {
    session.states[exported.getName().str()] = operands[0];
    return success();
  }
  if (auto appended = dyn_cast<CacheAppendOp>(op))
    return append(appended, operands[0], operands[1], session);
  if (auto cached = dyn_cast<CacheAttentionOp>(op))
    return attendToCache(cached, operands, session, results[0]);
  if (auto cross = dyn_cast<CrossAttentionOp>(op))
    return attendToSource(cross, operands, session, results);
  return search(cast<SearchHeadOp>(op), operands[0], session);
}
