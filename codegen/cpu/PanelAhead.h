//===- PanelAhead.h - the next panel of weights on its way while one is multiplied --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_CPU_PANELAHEAD_H
#define TRANSEPT_CODEGEN_CPU_PANELAHEAD_H

#include "codegen/emit/Emitter.h"

namespace mlir::kernel::cpu {

/// The panel that follows the one which tiles of rows are multiplied with. Whoever goes through a panel first fetches
/// the next one: else the first pass would wait for memory, and memory for all others.
struct AheadPanel {
  Value panel;   // null: nothing to fetch
  Value tiles;   // of all rows
  Value tallest; // rows of the first tile; others have as many or one less
  Value row;     // the first row of the tile
  Value idle;    // what is fetched instead where there is nothing to fetch: memory that is close anyway
};

/// For `rows` rows in tiles of at most `highest`. `panel` and `row` are left to be set.
AheadPanel aheadOf(emit::Emitter &emitter, Value rows, int64_t highest);

/// The prefetches of one register tile. They change no result.
class PanelAhead {
public:
  /// The tile has `columns` columns from `column` on, and reads four bytes of each in every one of `steps` steps.
  PanelAhead(emit::Emitter &emitter, const AheadPanel &ahead, Value column, int64_t columns, Value steps);
  void fetch(Value step);

private:
  struct Stream {
    Value start, perStep; // bytes
  };
  emit::Emitter &e;
  SmallVector<Stream> streams;
};

} // namespace mlir::kernel::cpu

#endif // TRANSEPT_CODEGEN_CPU_PANELAHEAD_H
