#include "runtime/text/TokenModel.h"
#include "runtime/text/Unicode.h"

#include <queue>

namespace transept::text {

namespace {

/// Pairs of ids and what they become: open addressing.
class MergeTable {
public:
  struct Merge {
    uint64_t pair = free;
    int32_t rank = 0, id = 0;
  };

  /// A pair that is there already gets the new merge.
  void add(int64_t left, int64_t right, int32_t rank, int64_t id) {
    if (2 * (count_ + 1) > slots_.size())
      grow();
    Merge &slot = slots_[find(key(left, right))];
    count_ += slot.pair == free;
    slot = {key(left, right), rank, static_cast<int32_t>(id)};
  }
  const Merge *get(int64_t left, int64_t right) const {
    if (slots_.empty())
      return nullptr;
    const Merge &slot = slots_[find(key(left, right))];
    return slot.pair == free ? nullptr : &slot;
  }

private:
  static constexpr uint64_t free = ~uint64_t(0);
  static uint64_t key(int64_t left, int64_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
  }
  size_t find(uint64_t pair) const {
    size_t mask = slots_.size() - 1, at = (pair * 0x9E3779B97F4A7C15u >> 29) & mask;
    while (slots_[at].pair != free && slots_[at].pair != pair)
      at = (at + 1) & mask;
    return at;
  }
  void grow() {
    std::vector<Merge> old(slots_.empty() ? 1024 : 2 * slots_.size());
    old.swap(slots_);
    for (const Merge &merge : old)
      if (merge.pair != free)
        slots_[find(merge.pair)] = merge;
  }

  std::vector<Merge> slots_;
  size_t count_ = 0;
};

/// A piece as a list of symbols; those that were merged away have id -1.
struct Symbol {
  int64_t id;
  int32_t previous, next; // -1: none
};

struct Candidate {
  int32_t rank, position, id;
  bool operator<(const Candidate &other) const { // the first one in a priority queue is the greatest
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

class Bpe final : public TokenModel {
public:
  Bpe(Vocabulary vocabulary, BpeOptions options) : options_(std::move(options)) {
    vocabulary_ = std::move(vocabulary);
    if (options_.byteFallback)
      for (unsigned byte = 0; byte < 256; ++byte)
        bytes_.push_back(vocabulary_.find(byteToken(static_cast<unsigned char>(byte))).value_or(-1));
    if (options_.unknown)
      unknown_ = vocabulary_.find(*options_.unknown).value_or(-1);
  }

  Status addMerges(const NextMerge &next);
  Status encode(std::string_view piece, std::vector<int64_t> &ids) const override;

private:
  Status symbolsOf(std::string_view piece, std::vector<int64_t> &symbols) const;
  void mergeFew(std::vector<int64_t> &symbols) const;
  void mergeMany(std::vector<int64_t> &symbols) const;

  BpeOptions options_;
  MergeTable merges_;
  std::vector<int64_t> bytes_; // tokens of bytes, -1: none
  int64_t unknown_ = -1;
};

Status Bpe::addMerges(const NextMerge &next) {
  std::string left, right;
  for (int32_t rank = 0;; ++rank) {
    TRANSEPT_ASSIGN(bool more, next(left, right));
    if (!more)
      return {};
    std::optional<int64_t> first = vocabulary_.find(left), second = vocabulary_.find(right);
    if (right.size() < options_.prefix.size())
      return {Code::ArtifactRefused, "the merge token '" + printable(right, 60) + "' is shorter than its prefix"};
    std::string joined = left + right.substr(options_.prefix.size());
    std::optional<int64_t> both = vocabulary_.find(joined);
    if (!first || !second || !both)
      return {Code::ArtifactRefused, "the merge token '" +
                                         printable(!first    ? left
                                                   : !second ? right
                                                             : joined,
                                                   60) +
                                         "' is not in the vocabulary"};
    merges_.add(*first, *second, rank, *both);
  }
}

/// The piece by characters: their tokens, those of their bytes, or the unknown one.
Status Bpe::symbolsOf(std::string_view piece, std::vector<int64_t> &symbols) const {
  bool pending = false; // an unknown character waits, so that others may be fused with it
  auto flush = [&] {
    if (pending)
      symbols.push_back(unknown_);
    pending = false;
  };
  std::string extended;
  for (size_t begin = 0, at = 0; begin < piece.size(); begin = at) {
    nextChar(piece, at);
    std::string_view symbol = piece.substr(begin, at - begin);
    bool prefixed = begin > 0 && !options_.prefix.empty(), last = at == piece.size() && !options_.suffix.empty();
    if (prefixed || last) {
      extended = (prefixed ? options_.prefix : "") + std::string(symbol) + (last ? options_.suffix : "");
      symbol = extended;
    }
    if (std::optional<int64_t> id = vocabulary_.find(symbol)) {
      flush();
      symbols.push_back(*id);
      continue;
    }
    if (options_.byteFallback) {
      size_t before = symbols.size();
      for (char byte : symbol)
        if (int64_t id = bytes_[static_cast<unsigned char>(byte)]; id >= 0)
          symbols.push_back(id);
      if (symbols.size() - before == symbol.size())
        continue;
      symbols.resize(before);
    }
    if (!options_.unknown)
      continue; // as the tokenizers library does, a character without any token leaves nothing
    if (unknown_ < 0)
      return {Code::ArtifactRefused,
              "the unknown token '" + printable(*options_.unknown, 60) + "' is not in the vocabulary"};
    if (!options_.fuseUnknown)
      flush();
    pending = true;
  }
  flush();
  return {};
}

/// The merge of the lowest rank, of those the leftmost, until there is none; quadratic.
void Bpe::mergeFew(std::vector<int64_t> &symbols) const {
  while (symbols.size() > 1) {
    const MergeTable::Merge *best = nullptr;
    size_t position = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i)
      if (const MergeTable::Merge *merge = merges_.get(symbols[i], symbols[i + 1]))
        if (!best || merge->rank < best->rank) {
          best = merge;
          position = i;
        }
    if (!best)
      return;
    symbols[position] = best->id;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(position) + 1);
  }
}

/// The same with a queue, n log n.
void Bpe::mergeMany(std::vector<int64_t> &ids) const {
  std::vector<Symbol> symbols;
  symbols.reserve(ids.size());
  auto count = static_cast<int32_t>(ids.size());
  for (int32_t i = 0; i < count; ++i)
    symbols.push_back({ids[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  auto at = [&](int32_t i) -> Symbol & { return symbols[static_cast<size_t>(i)]; };
  std::vector<Candidate> initial;
  for (int32_t i = 0; i + 1 < count; ++i)
    if (const MergeTable::Merge *merge = merges_.get(at(i).id, at(i + 1).id))
      initial.push_back({merge->rank, i, merge->id});
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(initial));
  auto propose = [&](int32_t left, int32_t right) {
    if (const MergeTable::Merge *merge = merges_.get(at(left).id, at(right).id))
      queue.push({merge->rank, left, merge->id});
  };
  while (!queue.empty()) {
    Candidate top = queue.top();
    queue.pop();
    Symbol &left = at(top.position);
    if (left.id < 0 || left.next < 0)
      continue;
    int32_t position = left.next;
    Symbol &right = at(position);
    const MergeTable::Merge *merge = merges_.get(left.id, right.id);
    if (!merge || merge->id != top.id) // what stood here was merged with something else
      continue;
    left.id = top.id;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) {
      at(left.next).previous = top.position;
      propose(top.position, left.next);
    }
    if (left.previous >= 0)
      propose(left.previous, top.position);
  }
  ids.clear();
  for (const Symbol &symbol : symbols)
    if (symbol.id >= 0)
      ids.push_back(symbol.id);
}

Status Bpe::encode(std::string_view piece, std::vector<int64_t> &ids) const {
  constexpr size_t few = 24;
  if (options_.ignoreMerges)
    if (std::optional<int64_t> id = vocabulary_.find(piece)) {
      ids.push_back(*id);
      return {};
    }
  std::vector<int64_t> symbols;
  symbols.reserve(piece.size());
  TRANSEPT_TRY(symbolsOf(piece, symbols));
  if (symbols.size() <= few)
    mergeFew(symbols);
  else
    mergeMany(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
  return {};
}

} // namespace

Result<std::shared_ptr<const TokenModel>> makeBpe(Vocabulary vocabulary, const BpeOptions &options,
                                                  const NextMerge &merges) {
  auto model = std::make_shared<Bpe>(std::move(vocabulary), options);
  TRANSEPT_TRY(model->addMerges(merges));
  return std::shared_ptr<const TokenModel>(std::move(model));
}

} // namespace transept::text
