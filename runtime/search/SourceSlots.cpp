#include "runtime/search/SourceSlots.h"

#include "runtime/Expr.h"
#include "runtime/Plan.h"

#include <algorithm>

namespace transept::search {

namespace {

/// Most bytes of a position that is repeated; a mask has one element, or one per head.
constexpr int64_t repeatedBytes = 128;

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

Status SourceSlots::appendCopies(Span<const SlotMove> moves, int64_t batch, int64_t length, Span<const int64_t> symbols,
                                 std::vector<StateCopy> &copies) const {
  std::vector<int64_t> call(symbols.begin(), symbols.end()), from, to;
  if (batch_ >= 0)
    call[static_cast<size_t>(batch_)] = batch;
  if (source_ >= 0)
    call[static_cast<size_t>(source_)] = length;
  for (const Slots &slots : slots_) {
    const program::State &state = manifest_->states(slots.state);
    TRANSEPT_TRY(denseBytes(state.dtype(), state.dims(), call, from).status());
    TRANSEPT_TRY(denseBytes(state.dtype(), state.dims(), symbols, to).status());
    for (const SlotMove &move : moves)
      TRANSEPT_TRY(appendCopy(slots, move, from, to, copies));
  }
  return {};
}

Status SourceSlots::appendCopy(const Slots &slots, const SlotMove &move, Span<const int64_t> from,
                               Span<const int64_t> to, std::vector<StateCopy> &copies) const {
  // A slot is [outer][positions][element bytes].
  int64_t outer = 1, element = dtypeSize(manifest_->states(slots.state).dtype()), positions = 1, room = 1;
  for (int axis = slots.batchAxis + 1; axis < static_cast<int>(to.size()); ++axis) {
    if (axis == slots.sourceAxis) {
      positions = from[axis];
      room = to[axis];
      continue;
    }
    (axis < slots.sourceAxis ? outer : element) *= to[axis];
  }
  if (positions < 1 || positions > room || move.from >= from[slots.batchAxis] || move.to >= to[slots.batchAxis])
    return {Code::Internal, "a source does not fit into its slot"};
  auto add = [&](int64_t first, int64_t target, int64_t bytes) {
    copies.push_back({static_cast<size_t>(slots.state), static_cast<uint64_t>(first), static_cast<uint64_t>(target),
                      static_cast<uint64_t>(bytes)});
  };
  for (int64_t i = 0; i < outer; ++i) {
    const int64_t first = (move.from * outer + i) * positions * element,
                  target = (move.to * outer + i) * room * element;
    add(first, target, positions * element);
    for (int64_t position = positions; element <= repeatedBytes && position < room; ++position)
      add(first + (positions - 1) * element, target + position * element, element);
  }
  return {};
}

} // namespace transept::search
