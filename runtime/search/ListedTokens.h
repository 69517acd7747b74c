// The tokens whose logits a step computes where all its rows may generate some only.
#ifndef TRANSEPT_RUNTIME_SEARCH_LISTEDTOKENS_H
#define TRANSEPT_RUNTIME_SEARCH_LISTEDTOKENS_H

#include "runtime/Span.h"
#include "runtime/search/Stepper.h"

#include <cstdint>
#include <vector>

namespace transept::search {

/// A list that grows as requests join, and begins anew where it would be too long. Tokens keep their places until then.
class ListedTokens {
public:
  static constexpr int64_t panelTokens = 64; // that are computed together

  /// An empty list of at most `capacity` tokens, a multiple of panelTokens. Allocates all memory.
  void reset(int64_t vocabulary, int64_t capacity);

  /// Whether every row may generate some tokens only, and the list holds them all, now.
  bool cover(Span<const StepRow> rows);

  /// By token; that of a token of the list is its place.
  const int32_t *places() const { return places_.data(); }
  /// By place, to the end of the last panel; -1: none.
  Span<const int32_t> tokens() const { return {tokens_.data(), static_cast<size_t>(panels() * panelTokens)}; }
  int64_t panels() const { return (used_ + panelTokens - 1) / panelTokens; }
  /// The first panel that holds other tokens than at the last settle().
  int64_t firstFresh() const { return settled_ / panelTokens; }
  void settle() { settled_ = used_; }

private:
  bool append(Span<const StepRow> rows);
  void clear();

  std::vector<int32_t> places_, tokens_;
  int64_t used_ = 0, settled_ = 0;
};

} // namespace transept::search

#endif
