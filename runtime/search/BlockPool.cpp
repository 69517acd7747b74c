#include "runtime/search/BlockPool.h"

#include <algorithm>
#include <string>

namespace transept::search {

BlockPool::BlockPool(int64_t rows, int64_t capacity, int64_t blocks)
    : rows_(rows), capacity_(capacity), blocks_(blocks), references_(blocks * blockPositions), occupied_(blocks),
      listed_(blocks, 1), children_(rows) {
  for (std::vector<int32_t> &table : tables_)
    table.resize(rows * capacity);
  for (std::vector<int64_t> &lengths : lengths_)
    lengths.resize(rows);
  empty_.reserve(blocks);
  for (int64_t block = blocks; block-- > 0;) // the lowest is taken first
    empty_.push_back(static_cast<int32_t>(block));
}

void BlockPool::change(int32_t block, int64_t place, int32_t by) {
  int32_t &references = references_[block * blockPositions + place];
  bool was = references > 0;
  references += by;
  bool is = references > 0;
  if (was == is)
    return;
  occupied_[block] += is ? 1 : -1;
  if (is && occupied_[block] == 1)
    ++used_;
  if (!is && occupied_[block] == 0) {
    --used_;
    if (!listed_[block]) {
      listed_[block] = 1;
      empty_.push_back(block);
    }
  }
}

int32_t BlockPool::place(int32_t preferred, int64_t place) {
  auto isFree = [&](int32_t block) { return references_[block * blockPositions + place] == 0; };
  // Neighbouring positions in one block are neighbours in memory.
  if (preferred >= 0 && isFree(preferred))
    return preferred;
  while (!empty_.empty()) {
    int32_t block = empty_.back();
    empty_.pop_back();
    listed_[block] = 0;
    if (occupied_[block] == 0)
      return block;
  }
  for (int64_t tried = 0; tried < blocks_; ++tried) {
    cursor_ = cursor_ + 1 < blocks_ ? cursor_ + 1 : 0;
    if (isFree(static_cast<int32_t>(cursor_)))
      return static_cast<int32_t>(cursor_);
  }
  return -1;
}

int32_t BlockPool::reserve(int64_t position, int32_t preferred) {
  int32_t block = place(position % blockPositions != 0 ? preferred : -1, position % blockPositions);
  if (block >= 0)
    change(block, position % blockPositions, 1);
  return block;
}

Status BlockPool::advance(Span<const Move> moves, Span<const int32_t> reserved) {
  const std::vector<int32_t> &from = tables_[current_];
  const std::vector<int64_t> &lengths = lengths_[current_];
  std::vector<int32_t> &to = tables_[1 - current_];
  if (static_cast<int64_t>(moves.size()) > rows_)
    return {Code::Internal, "more rows than the cache has"};
  std::fill_n(children_.begin(), live_, 0);
  for (const Move &move : moves) {
    if (move.parent >= live_ || move.position >= capacity_ || move.position < 0 ||
        (move.parent >= 0 && move.position != lengths[move.parent]) ||
        (!reserved.empty() && (move.parent < 0 || reserved.size() != moves.size())))
      return {Code::Internal, "a cache row does not continue its parent"};
    if (move.parent >= 0)
      ++children_[move.parent];
  }
  for (int64_t row = 0; row < live_; ++row)
    if (int32_t by = children_[row] - 1; by != 0)
      for (int64_t position = 0; position < lengths[row]; ++position)
        change(from[row * capacity_ + position], position % blockPositions, by);

  for (size_t row = 0; row < moves.size(); ++row) {
    const Move &move = moves[row];
    int32_t *own = to.data() + row * capacity_;
    if (move.parent >= 0)
      std::copy_n(from.data() + move.parent * capacity_, move.position, own);
    lengths_[1 - current_][row] = move.position + 1;
    if (!reserved.empty()) {
      own[move.position] = reserved[row];
      continue;
    }
    for (int64_t position = move.parent < 0 ? 0 : move.position; position <= move.position; ++position) {
      int32_t block = reserve(position, position > 0 ? own[position - 1] : -1);
      if (block < 0)
        return {Code::Internal, "no free place in a cache of " + std::to_string(blocks_) + " blocks"};
      own[position] = block;
    }
  }
  live_ = static_cast<int64_t>(moves.size());
  current_ = 1 - current_;
  return Status::success();
}

void BlockPool::show(int32_t *table) const {
  for (int64_t row = 0; row < live_; ++row)
    std::copy_n(tables_[current_].begin() + row * capacity_, lengths_[current_][row], table + row * capacity_);
}

} // namespace transept::search
