#include "runtime/search/SourceSlots.h"

#include "runtime/Expr.h"
#include "runtime/Plan.h"

#include <algorithm>

namespace transept::search {

namespace {

bool mentions(const program::Expr &expr, int64_t symbol) {
  return std::any_of(expr.terms().begin(), expr.terms().end(), [&](const program::Expr::Term &term) {
    return term.op() == program::Expr::SYMBOL && term.value() == symbol;
  });
}

int64_t constantOf(const program::Expr &expr) {
  Result<int64_t> value = isConstant(expr) ? evaluateExpr(expr, {}) : 0;
  return value.ok() ? *value : 0;
}

} // namespace

std::optional<SourceSlots> SourceSlots::create(const program::Manifest &manifest) {
  SourceSlots result;
  result.manifest_ = &manifest;
  for (int i = 0; i < manifest.generation_symbols_size(); ++i) {
    if (manifest.generation_symbols(i).name() == "batch")
      result.batch_ = i;
    if (manifest.generation_symbols(i).name() == "source")
      result.source_ = i;
  }
  for (const program::Entry &entry : manifest.entries()) {
    if (entry.name() != manifest.generation().encode() || entry.name().empty())
      continue;
    for (const program::Buffer &buffer : entry.buffers())
      for (int i = 0; buffer.storage() == program::STATE && i < manifest.states_size(); ++i)
        if (manifest.states(i).name() == buffer.name())
          result.slots_.push_back({i, -1, -1});
  }
  for (Slots &slots : result.slots_) {
    const program::State &state = manifest.states(slots.state);
    for (int axis = 0; axis < state.dims_size(); ++axis) {
      const program::Expr &dim = state.dims(axis);
      bool isBatch = plainSymbol(dim) == result.batch_ && result.batch_ >= 0;
      bool alongSource = result.source_ >= 0 && mentions(dim, result.source_);
      if ((mentions(dim, result.batch_) && !isBatch) || (isBatch && slots.batchAxis >= 0) ||
          (alongSource && slots.sourceAxis >= 0))
        return std::nullopt;
      // A slot must be one range, or what the encoder leaves at the beginning would lie in others.
      if (!isBatch && slots.batchAxis < 0 && constantOf(dim) != 1)
        return std::nullopt;
      slots.batchAxis = isBatch ? axis : slots.batchAxis;
      slots.sourceAxis = alongSource ? axis : slots.sourceAxis;
    }
    if (slots.batchAxis < 0)
      return std::nullopt;
  }
  return result;
}

Result<SourceSlots::Shape> SourceSlots::shapeOf(const Slots &slots, int64_t batch, int64_t length,
                                                Span<const int64_t> symbols) const {
  const program::State &state = manifest_->states(slots.state);
  std::vector<int64_t> call(symbols.begin(), symbols.end()), from, to;
  if (batch_ >= 0)
    call[static_cast<size_t>(batch_)] = batch;
  if (source_ >= 0)
    call[static_cast<size_t>(source_)] = length;
  TRANSEPT_TRY(denseBytes(state.dtype(), state.dims(), call, from).status());
  TRANSEPT_TRY(denseBytes(state.dtype(), state.dims(), symbols, to).status());
  Shape shape;
  shape.sources = from[slots.batchAxis];
  shape.slots = to[slots.batchAxis];
  shape.element = dtypeSize(state.dtype());
  for (int axis = slots.batchAxis + 1; axis < static_cast<int>(to.size()); ++axis) {
    if (axis == slots.sourceAxis) {
      shape.positions = from[axis];
      shape.room = to[axis];
      continue;
    }
    (axis < slots.sourceAxis ? shape.outer : shape.element) *= to[axis];
  }
  return shape;
}

Status SourceSlots::appendCopies(Span<const SlotMove> moves, int64_t batch, int64_t length, int64_t padding,
                                 Span<const int64_t> symbols, std::vector<StateCopy> &copies) const {
  for (const Slots &slots : slots_) {
    TRANSEPT_ASSIGN(Shape shape, shapeOf(slots, batch, length, symbols));
    auto add = [&](int64_t from, int64_t to, int64_t bytes) {
      copies.push_back({static_cast<size_t>(slots.state), static_cast<uint64_t>(from), static_cast<uint64_t>(to),
                        static_cast<uint64_t>(bytes)});
    };
    for (const SlotMove &move : moves) {
      if (!shape.holds(move))
        return {Code::Internal, "a source does not fit into its slot"};
      for (int64_t i = 0; i < shape.outer; ++i) {
        add(shape.inCall(move.from, i, 0), shape.inSession(move.to, i, 0), shape.positions * shape.element);
        const int64_t behind = padding < 0 || move.positions < length ? shape.inCall(move.from, i, shape.positions - 1)
                                                                      : shape.inSession(padding, i, 0);
        for (int64_t position = shape.positions; shape.repeats() && position < shape.room; ++position)
          add(behind, shape.inSession(move.to, i, position), shape.element);
      }
    }
  }
  return {};
}

Status SourceSlots::appendPadding(const SlotMove &move, int64_t batch, int64_t length, Span<const int64_t> symbols,
                                  std::vector<StateCopy> &copies) const {
  for (const Slots &slots : slots_) {
    TRANSEPT_ASSIGN(Shape shape, shapeOf(slots, batch, length, symbols));
    if (!shape.holds(move))
      return {Code::Internal, "a source does not fit into its slot"};
    for (int64_t i = 0; shape.repeats() && i < shape.outer; ++i)
      copies.push_back({static_cast<size_t>(slots.state),
                        static_cast<uint64_t>(shape.inCall(move.from, i, shape.positions - 1)),
                        static_cast<uint64_t>(shape.inSession(move.to, i, 0)), static_cast<uint64_t>(shape.element)});
  }
  return {};
}

} // namespace transept::search
