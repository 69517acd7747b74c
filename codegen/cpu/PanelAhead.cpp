//===- PanelAhead.cpp - the next panel of weights on its way while one is multiplied ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/cpu/PanelAhead.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;

constexpr int64_t lineBytes = 64, stepLines = panelColumns * 4 / lineBytes;

AheadPanel cpu::aheadOf(Emitter &e, Value rows, int64_t highest) {
  AheadPanel ahead;
  ahead.tiles = e.maximum(e.ceilDiv(rows, highest), e.index(1));
  ahead.tallest = e.maximum(e.div(e.sub(e.add(rows, ahead.tiles), e.index(1)), ahead.tiles), e.index(1));
  ahead.idle = e.scratch;
  return ahead;
}

PanelAhead::PanelAhead(Emitter &emitter, const AheadPanel &ahead, Value column, int64_t columns, Value steps)
    : e(emitter) {
  if (!ahead.panel)
    return;
  Type byte = e.b.getI8Type();
  const int64_t perTile = panelColumns / columns;
  Value passes = e.mul(ahead.tiles, e.index(perTile));
  Value tile = e.div(e.sub(e.add(ahead.row, ahead.tallest), e.index(1)), ahead.tallest);
  Value pass = e.add(e.mul(tile, e.index(perTile)), e.div(column, e.index(columns)));
  auto fewerThan = [&](int64_t count) { return e.less(passes, e.index(count)); };
  // One line per step takes as many passes as a step has lines; fewer passes fetch two. One pass alone reads its panel
  // as a stream, which processors follow by themselves.
  Value few = fewerThan(stepLines);
  Value perStep = e.select(few, e.index(2 * lineBytes), e.index(lineBytes));
  Value fetching = e.select(few, e.index(stepLines / 2), e.index(stepLines));
  Value fetches = e.less(pass, e.select(fewerThan(2), e.index(0), fetching));
  Value start = e.pointer(ahead.panel, e.mul(e.mul(steps, pass), perStep), byte);
  auto stream = [&](Value condition, Value start) {
    streams.push_back({e.select(condition, start, ahead.idle), e.select(condition, perStep, e.index(0))});
  };
  stream(fetches, start);
  if (perTile < stepLines)
    stream(e.b.createOrFold<arith::AndIOp>(e.loc, fetches, few), e.pointer(start, lineBytes, byte));
}

void PanelAhead::fetch(Value step) {
  constexpr int32_t read = 0, secondLevel = 2, data = 1;
  for (const Stream &stream : streams)
    e.b.create<LLVM::Prefetch>(e.loc, e.pointer(stream.start, e.mul(step, stream.perStep), e.b.getI8Type()), read,
                               secondLevel, data);
}
