#include "runtime/text/Vocabulary.h"

#include <functional>

namespace transept::text {

size_t Vocabulary::slot(std::string_view token) const {
  size_t mask = slots_.size() - 1, at = std::hash<std::string_view>()(token) & mask;
  while (slots_[at] != 0 && text(entries_[slots_[at] - 1]) != token)
    at = (at + 1) & mask;
  return at;
}

void Vocabulary::grow(size_t slots) {
  slots_.assign(slots, 0);
  for (size_t i = 0; i < entries_.size(); ++i)
    slots_[slot(text(entries_[i]))] = static_cast<uint32_t>(i + 1);
}

void Vocabulary::reserve(size_t tokens, size_t bytes) {
  entries_.reserve(tokens);
  bytes_.reserve(bytes);
  size_t slots = 64;
  while (slots < 2 * tokens)
    slots *= 2;
  if (slots > slots_.size())
    grow(slots);
}

void Vocabulary::add(std::string_view token, int64_t id) {
  if (2 * (entries_.size() + 1) > slots_.size())
    grow(slots_.empty() ? 64 : 2 * slots_.size());
  size_t at = slot(token);
  if (slots_[at] == 0) {
    entries_.push_back({static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(token.size()), -1});
    bytes_.append(token);
    slots_[at] = static_cast<uint32_t>(entries_.size());
  }
  Entry &entry = entries_[slots_[at] - 1];
  if (entry.id >= 0 && entry.id != id && byId_[static_cast<size_t>(entry.id)] == slots_[at])
    byId_[static_cast<size_t>(entry.id)] = 0;
  entry.id = static_cast<int32_t>(id);
  if (static_cast<size_t>(id) >= byId_.size())
    byId_.resize(static_cast<size_t>(id) + 1, 0);
  byId_[static_cast<size_t>(id)] = slots_[at];
}

std::optional<int64_t> Vocabulary::find(std::string_view token) const {
  if (slots_.empty())
    return std::nullopt;
  uint32_t entry = slots_[slot(token)];
  return entry ? std::optional<int64_t>(entries_[entry - 1].id) : std::nullopt;
}

std::optional<std::string_view> Vocabulary::token(int64_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= byId_.size() || byId_[static_cast<size_t>(id)] == 0)
    return std::nullopt;
  return text(entries_[byId_[static_cast<size_t>(id)] - 1]);
}

} // namespace transept::text
