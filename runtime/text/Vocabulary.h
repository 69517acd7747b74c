// Tokens and their ids, both ways.
#ifndef TRANSEPT_RUNTIME_TEXT_VOCABULARY_H
#define TRANSEPT_RUNTIME_TEXT_VOCABULARY_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace transept::text {

/// Ids are below maxId. Looking up is for any number of threads.
class Vocabulary {
public:
  static constexpr int64_t maxId = int64_t(1) << 24;

  void reserve(size_t tokens, size_t bytes);
  /// A token that is there already gets the new id. `id` must be in [0, maxId).
  void add(std::string_view token, int64_t id);

  std::optional<int64_t> find(std::string_view token) const;
  /// Nothing for an id without a token.
  std::optional<std::string_view> token(int64_t id) const;
  /// Number of different tokens.
  size_t size() const { return entries_.size(); }

private:
  struct Entry {
    uint32_t begin, length;
    int32_t id;
  };
  std::string_view text(const Entry &entry) const { return {bytes_.data() + entry.begin, entry.length}; }
  size_t slot(std::string_view token) const;
  void grow(size_t slots);

  std::string bytes_; // all tokens, one behind the other
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_; // open addressing: entry + 1; 0 is free
  std::vector<uint32_t> byId_;  // entry + 1
};

} // namespace transept::text

#endif
