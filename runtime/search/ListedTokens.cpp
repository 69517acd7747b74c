#include "runtime/search/ListedTokens.h"

#include <algorithm>

namespace transept::search {

void ListedTokens::reset(int64_t vocabulary, int64_t capacity) {
  places_.assign(static_cast<size_t>(vocabulary), -1);
  tokens_.assign(static_cast<size_t>(capacity), -1);
  used_ = settled_ = 0;
}

void ListedTokens::clear() {
  for (int64_t place = 0; place < used_; ++place) {
    places_[tokens_[place]] = -1;
    tokens_[place] = -1;
  }
  used_ = settled_ = 0;
}

bool ListedTokens::append(Span<const StepRow> rows) {
  for (const StepRow &row : rows) {
    if (row.member > 0) // as the first row of the search
      continue;
    for (int32_t token : row.allowed) {
      if (places_[token] >= 0)
        continue;
      if (used_ == static_cast<int64_t>(tokens_.size()))
        return false;
      places_[token] = static_cast<int32_t>(used_);
      tokens_[used_++] = token;
    }
  }
  return true;
}

bool ListedTokens::cover(Span<const StepRow> rows) {
  if (std::any_of(rows.begin(), rows.end(), [](const StepRow &row) { return row.allowed.empty(); }))
    return false;
  if (append(rows))
    return true;
  clear(); // of tokens that were listed for rows that are gone
  if (append(rows))
    return true;
  clear();
  return false;
}

} // namespace transept::search
