#include "runtime/text/Trie.h"

#include <algorithm>
#include <cstring>

namespace transept::text {

namespace {
struct Key {
  uint64_t head; // the first eight bytes, so that most comparisons look no further
  std::string_view text;
  int32_t value;
};

uint64_t headOf(std::string_view text) {
  uint64_t head = 0;
  for (size_t i = 0; i < 8; ++i)
    head = head << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0);
  return head;
}
} // namespace

Trie::Trie(std::vector<std::pair<std::string_view, int32_t>> strings) {
  std::vector<Key> keys;
  keys.reserve(strings.size());
  for (const auto &[text, value] : strings)
    if (!text.empty())
      keys.push_back({headOf(text), text, value});
  std::stable_sort(keys.begin(), keys.end(),
                   [](const Key &a, const Key &b) { return a.head != b.head ? a.head < b.head : a.text < b.text; });

  // Breadth first, so that the children of a node get numbers in a row.
  struct Span {
    size_t begin, end, depth; // keys that share their first `depth` bytes
  };
  std::vector<Span> spans = {{0, keys.size(), 0}};
  labels_.push_back(0);
  values_.push_back(-1);
  firsts_.push_back(1);
  for (size_t node = 0; node < spans.size(); ++node) {
    Span span = spans[node];
    size_t at = span.begin;
    while (at < span.end && keys[at].text.size() == span.depth)
      values_[node] = keys[at++].value;
    while (at < span.end) {
      char label = keys[at].text[span.depth];
      size_t end = at + 1;
      while (end < span.end && keys[end].text[span.depth] == label)
        ++end;
      spans.push_back({at, end, span.depth + 1});
      labels_.push_back(label);
      values_.push_back(-1);
      if (node == 0)
        root_[static_cast<unsigned char>(label)] = static_cast<uint32_t>(labels_.size() - 1);
      at = end;
    }
    firsts_.push_back(static_cast<uint32_t>(labels_.size()));
  }
}

uint32_t Trie::child(uint32_t node, char byte) const {
  uint32_t first = firsts_[node], count = firsts_[node + 1] - first;
  if (count == 0)
    return 0;
  const void *found = std::memchr(labels_.data() + first, byte, count);
  return found ? static_cast<uint32_t>(static_cast<const char *>(found) - labels_.data()) : 0;
}

} // namespace transept::text
