//===- SearchHead.cpp - block maxima, sums and candidates of logits as a shader -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A workgroup takes a block of a row's logits. Candidates are found one after another: the best of those that come
// after the last one found, larger logits first, then lower tokens.

#include "codegen/emit/Math.h"
#include "codegen/emit/RowStages.h"
#include "codegen/vulkan/Kernels.h"
#include <limits>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using namespace mlir::transept;
using emit::Emitter;

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {

class SearchHeadEmitter {
public:
  SearchHeadEmitter(Shader &shader, SearchHeadOp op)
      : shader(shader), e(shader.e), op(op), kernel(cast<KernelOp>(op.getOperation())), f32(e.f32()),
        i32(e.b.getI32Type()), specials(e.dim(shapeOf(1)[1])), topk(e.dim(shapeOf(op.getInputs().size() + 2)[2])) {
    maxima = shader.sharedArrayPerInvocation(f32);
    sums = shader.sharedArrayPerInvocation(f32);
    values = shader.sharedArrayPerInvocation(f32);
    tokens = shader.sharedArrayPerInvocation(i32);
  }

  LogicalResult emit() {
    int64_t blockSize = op.getBlockSize(), blocks = (op.getVocabulary() + blockSize - 1) / blockSize;
    DimAttr items = dimMul(shapeOf(0)[0], dimConstant(op.getContext(), blocks));
    shader.forGroupItem(e.liveRows(kernel, items), [&](Value item) {
      row = e.div(item, e.index(blocks));
      from = e.mul(e.rem(item, e.index(blocks)), e.index(blockSize));
      to = e.minimum(e.add(from, e.index(blockSize)), e.index(op.getVocabulary()));
      logits = e.pointer(e.buffer(op.getInputs()[0]), e.mul(row, e.index(op.getVocabulary())), f32);
      emitSums(item);
      moveSpecials();
      shader.barrier();
      emitCandidates(item);
    });
    return success();
  }

private:
  ArrayRef<DimAttr> shapeOf(unsigned operand) { return cast<DimsAttr>(kernel.getShapes()[operand]).getDims(); }
  Value output(unsigned i) { return e.buffer(op.getOutputs()[i]); }
  Value logitAt(Value token) { return e.load(e.pointer(logits, token, f32), f32); }
  Value number(double value) { return e.number(f32, value); }
  Value both(Value x, Value y) { return e.b.create<arith::AndIOp>(e.loc, x, y); }
  Value either(Value x, Value y) { return e.b.create<arith::OrIOp>(e.loc, x, y); }
  Value isFirst() { return e.compare(arith::CmpIPredicate::eq, shader.local, e.index(0)); }

  /// Combines `valueAt` over the tokens of the block.
  Value overBlock(StringRef kind, double neutral, Value slots, llvm::function_ref<Value(Value)> valueAt) {
    Value mine = shader.forShare(from, to, ValueRange{number(neutral)}, [&](Value token, ValueRange sofar) {
      return Emitter::Carried{emit::combined(e, kind, sofar[0], valueAt(token))};
    })[0];
    return shader.combineAll(kind, mine, slots);
  }

  void emitSums(Value item) {
    Value maximum = overBlock("max", -infinity, maxima, [&](Value token) { return logitAt(token); });
    // A block of -inf only has the sum 0, not NaN.
    Value none = e.compare(arith::CmpFPredicate::OEQ, maximum, number(-infinity));
    Value shift = e.select(none, number(0), maximum);
    Value sum = overBlock("add", 0, sums, [&](Value token) { return emit::emitExp(e, e.sub(logitAt(token), shift)); });
    e.ifThen(isFirst(), [&] {
      e.store(maximum, e.pointer(output(0), item, f32));
      e.store(sum, e.pointer(output(1), item, f32));
    });
  }

  /// Special tokens of this block: their logits are kept, then they are out of the race.
  void moveSpecials() {
    shader.forShare(e.index(0), specials, [&](Value s) {
      Value place = e.add(e.mul(row, specials), s);
      Value token = e.castIndex(e.load(e.pointer(e.buffer(op.getInputs()[1]), place, i32), i32), e.b.getIndexType());
      e.ifThen(both(e.compare(arith::CmpIPredicate::sge, token, from), e.less(token, to)), [&] {
        e.store(logitAt(token), e.pointer(output(4), place, f32));
        e.store(number(-infinity), e.pointer(logits, token, f32));
      });
    });
  }

  /// Whether candidate x comes before candidate y. NaN comes nowhere.
  Value before(Value xLogit, Value xToken, Value yLogit, Value yToken) {
    Value larger = e.compare(arith::CmpFPredicate::OGT, xLogit, yLogit);
    Value equal = e.compare(arith::CmpFPredicate::OEQ, xLogit, yLogit);
    return either(larger, both(equal, e.less(xToken, yToken)));
  }

  void emitCandidates(Value item) {
    Value nobody = e.integer(i32, std::numeric_limits<int32_t>::max());
    Value bestValues = e.pointer(output(2), e.mul(item, topk), f32),
          bestTokens = e.pointer(output(3), e.mul(item, topk), i32);
    e.forLoop(e.index(0), topk, 1, ValueRange{number(infinity), e.integer(i32, -1)}, [&](Value k, ValueRange last) {
      // The best of this invocation's tokens that come after the last one.
      Emitter::Carried mine =
          shader.forShare(from, to, ValueRange{number(-infinity), nobody}, [&](Value position, ValueRange best) {
            Value logit = logitAt(position), token = e.castIndex(position, i32);
            Value better = both(before(last[0], last[1], logit, token), before(logit, token, best[0], best[1]));
            return Emitter::Carried{e.select(better, logit, best[0]), e.select(better, token, best[1])};
          });
      Value largest = shader.combineAll("max", mine[0], values);
      Value isBest = e.compare(arith::CmpFPredicate::OEQ, mine[0], largest);
      Emitter::Carried best = {largest, shader.combineAll("min", e.select(isBest, mine[1], nobody), tokens)};
      Value none = e.compare(arith::CmpFPredicate::OEQ, best[0], number(-infinity));
      e.ifThen(isFirst(), [&] {
        e.store(best[0], e.pointer(bestValues, k, f32));
        e.store(e.select(none, e.integer(i32, -1), best[1]), e.pointer(bestTokens, k, i32));
      });
      return best;
    });
  }

  Shader &shader;
  Emitter &e;
  SearchHeadOp op;
  KernelOp kernel;
  Type f32, i32;
  Value specials, topk;
  Value maxima, sums, values, tokens; // shared arrays
  Value row, from, to, logits;        // of the item: its row, its tokens, the logits of the row
};

} // namespace

LogicalResult vulkan::emitSearchHead(Shader &shader, SearchHeadOp op) { return SearchHeadEmitter(shader, op).emit(); }
