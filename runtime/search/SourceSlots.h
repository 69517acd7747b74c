// What the encoder leaves for each source, as slots of states that can be moved.
#ifndef TRANSEPT_RUNTIME_SEARCH_SOURCESLOTS_H
#define TRANSEPT_RUNTIME_SEARCH_SOURCESLOTS_H

#include "runtime/Session.h"
#include "runtime/program.pb.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace transept::search {

/// A source of a call of the encoder, and its slot in the session.
struct SlotMove {
  int64_t from = 0, to = 0;
};

/// The states that the encoder writes: [batch, .., source, ..], one slot per source. Refers to the manifest.
class SourceSlots {
public:
  /// Nothing where the slots of a state are not ranges of their own: a batch that is fixed or not the first axis, or a
  /// value that all sources share.
  static std::optional<SourceSlots> create(const program::Manifest &manifest);

  /// Appends what brings slots from where a call over `batch` sources of `length` positions has left them, at the
  /// beginning of each state, to those of a session with the given generation symbols. Behind the positions of the
  /// call, states with few bytes for a position, among them all masks, repeat its last one; for larger ones, which are
  /// read under a mask, what is there stays.
  Status appendCopies(Span<const SlotMove> moves, int64_t batch, int64_t length, Span<const int64_t> symbols,
                      std::vector<StateCopy> &copies) const;

private:
  struct Slots {
    int state = 0;
    int batchAxis = 0;
    int sourceAxis = -1; // -1: none
  };
  Status appendCopy(const Slots &slots, const SlotMove &move, Span<const int64_t> from, Span<const int64_t> to,
                    std::vector<StateCopy> &copies) const;

  const program::Manifest *manifest_ = nullptr;
  int64_t batch_ = -1, source_ = -1; // generation symbols
  std::vector<Slots> slots_;
};

} // namespace transept::search

#endif
