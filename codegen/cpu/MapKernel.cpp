//===- MapKernel.cpp - kernel.map ---------------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/cpu/Kernels.h"
#include "codegen/cpu/Schedule.h"
#include "codegen/emit/Body.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;

namespace {

/// An item is a range of at most `chunk` positions of the innermost dimension, for one index of the leading ones.
class MapEmitter {
public:
  MapEmitter(Emitter &emitter, MapOp op) : e(emitter), op(op) {
    for (Attribute dim : op.getDomain())
      domain.push_back(cast<DimAttr>(dim));
    Body::addInputs(e, buffers, cast<KernelOp>(op.getOperation()),
                    op.getBody().getArguments().drop_front(domain.size()));
  }

  LogicalResult emit() {
    LogicalResult result = success();
    KernelOp kernel = cast<KernelOp>(op.getOperation());
    auto emitItems = [&](Value item) {
      Value leading = item, from = e.index(0), to = e.index(1);
      if (!domain.empty()) {
        DimAttr inner = domain.back();
        int64_t chunk = mapChunk(op);
        Value chunks = e.dim(chunksOf(inner, chunk));
        leading = e.div(item, chunks);
        from = e.mul(e.rem(item, chunks), e.index(chunk));
        to = e.minimum(e.add(from, e.index(chunk)), e.dim(inner));
      }
      SmallVector<Value> indices(domain.size());
      for (unsigned i = domain.size(); i-- > 1;) {
        Value size = e.dim(i > 1 ? domain[i - 1] : domain[0]);
        indices[i - 1] = i > 1 ? e.rem(leading, size) : leading;
        if (i > 1)
          leading = e.div(leading, size);
      }
      if (op.getLiveRows() && domain.size() == 1)
        to = e.minimum(to, e.liveRows(kernel, domain[0]));
      result = emitItem(indices, from, to);
    };
    auto [begin, end] = shareOf(kernel);
    e.forLoop(begin, end, 1, emitItems);
    return result;
  }

private:
  /// What falls to this call. A single dimension is cut into chunks, others begin with rows.
  std::pair<Value, Value> shareOf(KernelOp kernel) {
    if (!op.getLiveRows())
      return {e.begin, e.end};
    Value live = e.liveRows(kernel, domain[0]), all = e.dim(domain[0]);
    auto itemsOf = [&](Value size) {
      if (domain.size() == 1)
        return e.ceilDiv(size, mapChunk(op));
      for (DimAttr dim : ArrayRef(domain).drop_front().drop_back())
        size = e.mul(size, e.dim(dim));
      return e.mul(size, e.dim(chunksOf(domain.back(), mapChunk(op))));
    };
    return e.shareOf(itemsOf(live), itemsOf(all));
  }

  LogicalResult emitItem(ArrayRef<Value> indices, Value from, Value to) {
    Block &block = op.getBody().front();
    IRMapping outer;
    unsigned rank = domain.size();
    for (unsigned i = 0; i + 1 < rank; ++i)
      outer.map(block.getArgument(i), indices[i]);
    Value inner = rank ? Value(block.getArgument(rank - 1)) : Value();
    Body body(e, block, inner, {}, buffers, outer);
    if (failed(body.emitUniform()))
      return failure();
    Value row = e.index(0);
    for (unsigned i = 0; i + 1 < rank; ++i)
      row = e.add(e.mul(row, e.dim(domain[i])), indices[i]);
    if (rank)
      row = e.mul(row, e.dim(domain[rank - 1]));
    LogicalResult result = success();
    bool vector = rank && body.vectorizable() && transept::constantValue(domain[rank - 1]) != 1;
    if (!vector) {
      e.forLoop(from, to, 1, [&](Value position) {
        auto yielded = body.emitScalar(position, {});
        result = yielded;
        if (succeeded(yielded))
          storeAll(*yielded, e.add(row, position), Value());
      });
      return result;
    }
    e.forLaneGroups(from, to, [&](Value position, Value count) {
      auto yielded = body.emitVector(position, {});
      if (failed(yielded))
        result = failure();
      else
        storeAll(*yielded, e.add(row, position), count);
    });
    return result;
  }

  void storeAll(ArrayRef<Value> values, Value position, Value count) {
    Value mask = count ? e.lanesBelow(count) : Value();
    for (auto [value, output] : llvm::zip(values, op.getOutputs())) {
      Value pointer = e.pointer(e.buffer(output), position, elementTypeOf(output.getType()));
      if (mask)
        e.maskedStore(value, pointer, mask);
      else
        e.store(value, pointer);
    }
  }

  Emitter &e;
  MapOp op;
  SmallVector<DimAttr> domain;
  Body::Buffers buffers;
};

} // namespace

LogicalResult cpu::emitMap(Emitter &emitter, MapOp op) { return MapEmitter(emitter, op).emit(); }
