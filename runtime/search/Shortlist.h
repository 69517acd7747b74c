// A vocabulary shortlist: the target tokens that a source makes possible.
#ifndef TRANSEPT_RUNTIME_SEARCH_SHORTLIST_H
#define TRANSEPT_RUNTIME_SEARCH_SHORTLIST_H

#include "runtime/Span.h"
#include "runtime/Status.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace transept::search {

/// Candidates of n-grams of source tokens. Immutable, so that threads may share it.
class Shortlist {
public:
  /// Longest n-gram of a source.
  static constexpr size_t longest = 16;

  /// A line per entry: ids of adjacent source tokens with spaces between them, a tab, ids of target tokens with spaces
  /// between them. Without source tokens, the targets are candidates of every source; equal sources add up. Target ids
  /// are below `vocabulary`. Fails with Code::InvalidInput and the line's number; `name` is what the text is called.
  static Result<std::shared_ptr<const Shortlist>> parse(std::string_view text, int64_t vocabulary,
                                                        const std::string &name);
  static Result<std::shared_ptr<const Shortlist>> read(const std::string &path, int64_t vocabulary);

  /// Of every n-gram in `source`; ascending, each once.
  std::vector<int64_t> candidates(Span<const int64_t> source) const;

private:
  std::map<std::vector<int64_t>, std::vector<int32_t>> entries_;
  size_t longest_ = 0; // n-gram that has an entry
};

} // namespace transept::search

#endif
