// Where the self cache keeps each position of each live row. Beam search moves these indices, never the cache.
#ifndef TRANSEPT_RUNTIME_SEARCH_BLOCKPOOL_H
#define TRANSEPT_RUNTIME_SEARCH_BLOCKPOOL_H

#include "runtime/Span.h"
#include "runtime/Status.h"

#include <cstdint>
#include <vector>

namespace transept::search {

/// A pool of blocks of 16 places. Position p of a row lives at place p % 16 of the block table[p]; siblings share the
/// places of their common beginning. A place is free when no live row refers to it, so rows * ceil(capacity / 16)
/// blocks always suffice. All memory is allocated by the constructor.
class BlockPool {
public:
  static constexpr int64_t blockPositions = 16;

  BlockPool(int64_t rows, int64_t capacity, int64_t blocks);

  /// Blocks that suffice for `rows` rows of `capacity` positions.
  static constexpr int64_t blocksFor(int64_t rows, int64_t capacity) {
    return rows * ((capacity + blockPositions - 1) / blockPositions);
  }

  struct Move {
    int32_t parent;   // row of the previous call that the row continues, -1: a new hypothesis
    int64_t position; // the last position to be computed: the number of positions the parent has; any for a new one
  };

  /// Gives row i the positions of moves[i].parent and a place of its own for moves[i].position, a new hypothesis for
  /// all positions up to that. Rows that no move names as parent are forgotten. With `reserved`, the last position of
  /// row i, which continues a parent, takes reserved[i], and that place is reserved no more.
  Status advance(Span<const Move> moves, Span<const int32_t> reserved = {});
  /// Writes the blocks of all live rows to `table`, row-major [rows][capacity].
  void show(int32_t *table) const;

  /// A free place for a position that a row will have, near that of the position before it in block `preferred` (-1:
  /// anywhere); -1: none is left. Nobody gets it until it is released or taken by advance(). A row and what is reserved
  /// for it have at most `capacity` positions.
  int32_t reserve(int64_t position, int32_t preferred);
  void release(int32_t block, int64_t position) { change(block, position % blockPositions, -1); }

  /// Blocks with a place in use.
  int64_t used() const { return used_; }
  /// Rows referring to a place.
  int32_t references(int32_t block, int64_t place) const { return references_[block * blockPositions + place]; }

private:
  void change(int32_t block, int64_t place, int32_t by);
  int32_t place(int32_t preferred, int64_t place);

  int64_t rows_, capacity_, blocks_, used_ = 0;
  std::vector<int32_t> references_; // [blocks][16]
  std::vector<int32_t> occupied_;   // places in use, by block
  std::vector<int32_t> empty_;      // blocks without a place in use; may hold others, which are skipped
  std::vector<uint8_t> listed_;     // block is in empty_
  std::vector<int32_t> tables_[2];  // [rows][capacity]
  std::vector<int64_t> lengths_[2]; // positions of each row
  std::vector<int32_t> children_;
  int64_t live_ = 0, cursor_ = 0;
  int current_ = 0;
};

} // namespace transept::search

#endif
