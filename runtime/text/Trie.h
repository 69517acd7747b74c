// Strings that a text may begin with, found in one walk.
#ifndef TRANSEPT_RUNTIME_TEXT_TRIE_H
#define TRANSEPT_RUNTIME_TEXT_TRIE_H

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace transept::text {

/// Immutable after construction. Values are not negative; of equal strings the last one counts, empty ones are left
/// out.
class Trie {
public:
  Trie() = default;
  explicit Trie(std::vector<std::pair<std::string_view, int32_t>> strings);

  bool empty() const { return values_.size() <= 1; }
  /// Whether a string begins with this byte.
  bool begins(char byte) const { return root_[static_cast<unsigned char>(byte)] != 0; }

  /// Calls `found(length, value)` for each string that `text` begins with, shortest first.
  template <typename Found> void prefixes(std::string_view text, Found &&found) const {
    if (text.empty())
      return;
    uint32_t node = root_[static_cast<unsigned char>(text[0])];
    for (size_t length = 1; node != 0; ++length) {
      if (values_[node] >= 0)
        found(length, values_[node]);
      if (length >= text.size())
        return;
      node = child(node, text[length]);
    }
  }

  /// Length and value of the longest string that `text` begins with; {0, -1} where there is none.
  std::pair<size_t, int32_t> longest(std::string_view text) const {
    std::pair<size_t, int32_t> best(0, -1);
    prefixes(text, [&](size_t length, int32_t value) { best = {length, value}; });
    return best;
  }

private:
  uint32_t child(uint32_t node, char byte) const;

  // Children of a node lie one behind the other, from firsts_[node] to firsts_[node + 1]. Node 0 is none.
  uint32_t root_[256] = {};
  std::vector<uint32_t> firsts_;
  std::vector<char> labels_; // the byte that leads to a node
  std::vector<int32_t> values_;
};

} // namespace transept::text

#endif
