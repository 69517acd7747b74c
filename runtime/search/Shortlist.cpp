#include "runtime/search/Shortlist.h"

#include "runtime/ByteSource.h"

#include <algorithm>
#include <charconv>

namespace transept::search {

namespace {

/// Ids with one space between two of them; false where `text` is anything else.
bool readIds(std::string_view text, std::vector<int64_t> &ids) {
  ids.clear();
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    int64_t id = 0;
    auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || id < 0 || (next != end && *next != ' ') || next + 1 == end)
      return false;
    ids.push_back(id);
    at = next == end ? end : next + 1;
  }
  return true;
}

} // namespace

Result<std::shared_ptr<const Shortlist>> Shortlist::parse(std::string_view text, int64_t vocabulary,
                                                          const std::string &name) {
  auto shortlist = std::make_shared<Shortlist>();
  std::vector<int64_t> source, targets;
  for (int64_t line = 1; !text.empty(); ++line) {
    std::string_view entry = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    if (!entry.empty() && entry.back() == '\r')
      entry.remove_suffix(1);
    auto refuse = [&](const std::string &why) {
      return Status(Code::InvalidInput, name + ": line " + std::to_string(line) + " " + why);
    };
    const size_t tab = entry.find('\t');
    if (tab == std::string_view::npos || !readIds(entry.substr(0, tab), source) ||
        !readIds(entry.substr(tab + 1), targets))
      return refuse("is '" + printable(std::string(entry.substr(0, 200)), 60) +
                    "', not ids of source tokens, a tab and ids of target tokens, with one space between two ids");
    if (source.size() > longest)
      return refuse("has " + std::to_string(source.size()) + " source tokens, at most " + std::to_string(longest) +
                    " are looked for together");
    for (int64_t target : targets)
      if (target >= vocabulary)
        return refuse("has target token " + std::to_string(target) + ", the vocabulary has " +
                      std::to_string(vocabulary));
    std::vector<int32_t> &known = shortlist->entries_[source];
    known.insert(known.end(), targets.begin(), targets.end());
    shortlist->longest_ = std::max(shortlist->longest_, source.size());
  }
  return std::shared_ptr<const Shortlist>(std::move(shortlist));
}

Result<std::shared_ptr<const Shortlist>> Shortlist::read(const std::string &path, int64_t vocabulary) {
  constexpr uint64_t mostBytes = uint64_t(1) << 32;
  Result<std::unique_ptr<ByteSource>> opened = openFile(path);
  if (!opened.ok())
    return opened.status().withContext(path);
  std::unique_ptr<ByteSource> file = opened.take();
  if (file->size() > mostBytes)
    return Status(Code::LimitExceeded, path + ": has " + std::to_string(file->size()) + " bytes, a shortlist at most " +
                                           std::to_string(mostBytes));
  std::string text(file->size(), '\0');
  if (Status status = file->read(0, text.data(), text.size()); !status.ok())
    return status.withContext(path);
  return parse(text, vocabulary, path);
}

std::vector<int64_t> Shortlist::candidates(Span<const int64_t> source) const {
  std::vector<int64_t> candidates;
  auto add = [&](const std::vector<int64_t> &ngram) {
    if (auto found = entries_.find(ngram); found != entries_.end())
      candidates.insert(candidates.end(), found->second.begin(), found->second.end());
  };
  add({});
  for (size_t from = 0; from < source.size(); ++from)
    for (size_t size = 1; size <= std::min(longest_, source.size() - from); ++size)
      add({source.begin() + from, source.begin() + from + size});
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  return candidates;
}

} // namespace transept::search
