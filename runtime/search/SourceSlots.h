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
  int64_t positions = 0; // of the source; those of the call behind them are padding
};

/// The states that the encoder writes: [batch, .., source, ..], one slot per source. Refers to the manifest.
class SourceSlots {
public:
  /// Nothing where the slots of a state are not ranges of their own: a batch that is fixed or not the first axis, or a
  /// value that all sources share.
  static std::optional<SourceSlots> create(const program::Manifest &manifest);

  /// Appends what brings slots from where a call over `batch` sources of `length` positions has left them, at the
  /// beginning of each state, to those of a session with the given generation symbols. Behind the positions of the
  /// call, states with few bytes for a position, among them all masks, repeat padding: the call's last position, or
  /// for a source without padding the first one of slot `padding`; less than 0: its own last position. For larger
  /// states, which are read under a mask, what is there stays.
  Status appendCopies(Span<const SlotMove> moves, int64_t batch, int64_t length, int64_t padding,
                      Span<const int64_t> symbols, std::vector<StateCopy> &copies) const;

  /// Appends what brings the last position of the call for `move`, which is padding, to the first one of its slot.
  Status appendPadding(const SlotMove &move, int64_t batch, int64_t length, Span<const int64_t> symbols,
                       std::vector<StateCopy> &copies) const;

private:
  struct Slots {
    int state = 0;
    int batchAxis = 0;
    int sourceAxis = -1; // -1: none
  };
  /// A state as [sources][outer][positions][element bytes] in a call, and as [slots][outer][room][element bytes] in the
  /// session.
  struct Shape {
    int64_t sources = 1, slots = 1, outer = 1, positions = 1, room = 1, element = 1;

    bool repeats() const { return element <= repeatedBytes; }
    bool holds(const SlotMove &move) const {
      return positions >= 1 && positions <= room && move.from < sources && move.to < slots;
    }
    int64_t inCall(int64_t source, int64_t i, int64_t position) const {
      return ((source * outer + i) * positions + position) * element;
    }
    int64_t inSession(int64_t slot, int64_t i, int64_t position) const {
      return ((slot * outer + i) * room + position) * element;
    }
  };
  /// Most bytes of a position that is repeated; a mask has one element, or one per head.
  static constexpr int64_t repeatedBytes = 128;

  Result<Shape> shapeOf(const Slots &slots, int64_t batch, int64_t length, Span<const int64_t> symbols) const;

  const program::Manifest *manifest_ = nullptr;
  int64_t batch_ = -1, source_ = -1; // generation symbols
  std::vector<Slots> slots_;
};

} // namespace transept::search

#endif
