//===- FormMovement.cpp - ops that move elements, as views and maps
//---------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

/// A map whose element at `indices` is the input's element at `indexMap(indices)`.
static Value formIndexed(FormContext &f, Operation *op, Value input,
                         function_ref<SmallVector<Value>(Body &, ValueRange)> indexMap) {
  Value result = op->getResult(0);
  return f.map(
      op->getLoc(), graphDims(result), input, graphElementType(result),
      [&](Body &b, ValueRange indices, ValueRange sources) { return b.loadWide(sources[0], indexMap(b, indices)); });
}

LogicalResult transept::form(FormContext &f, ReshapeOp op) {
  if (op.getShape())
    return emitUnresolved(op);
  f.define(op, f.view(op.getLoc(), f.tensor(op.getInput()), graphDims(op)));
  return success();
}

Value transept::formTranspose(FormContext &f, Location loc, Value tensor, ArrayRef<int64_t> permutation) {
  ArrayRef<DimAttr> dims = shapeOf(tensor).getDims();
  SmallVector<DimAttr> result;
  for (int64_t axis : permutation)
    result.push_back(dims[axis]);
  return f.map(loc, result, {tensor}, kernel::elementTypeOf(tensor.getType()),
               [&](Body &b, ValueRange indices, ValueRange sources) {
                 SmallVector<Value> at(indices.size());
                 for (auto [axis, source] : llvm::enumerate(permutation))
                   at[source] = indices[axis];
                 return b.loadWide(sources[0], at);
               });
}

LogicalResult transept::form(FormContext &f, TransposeOp op) {
  f.define(op, formTranspose(f, op.getLoc(), f.tensor(op.getInput()), op.getPermutation()));
  return success();
}

LogicalResult transept::form(FormContext &f, BroadcastOp op) {
  if (op.getShape())
    return emitUnresolved(op);
  Value input = f.tensor(op.getInput());
  SmallVector<DimAttr> result = graphDims(op);
  f.define(op, formIndexed(f, op, input, [&](Body &b, ValueRange indices) {
             return broadcastIndices(b, indices, shapeOf(input).getDims(), result);
           }));
  return success();
}

LogicalResult transept::form(FormContext &f, TileOp op) {
  if (op.getRepeats())
    return emitUnresolved(op);
  Value input = f.tensor(op.getInput());
  SmallVector<DimAttr> result = graphDims(op);
  f.define(op, formIndexed(f, op, input, [&](Body &b, ValueRange indices) {
             SmallVector<Value> at;
             for (auto [index, dim, full] : llvm::zip(indices, shapeOf(input).getDims(), result)) {
               if (constantValue(dim) == 1)
                 at.push_back(b.index(0));
               else
                 at.push_back(dim == full ? index : b.create<arith::RemUIOp>(index, b.size(dim)).getResult());
             }
             return at;
           }));
  return success();
}

LogicalResult transept::form(FormContext &f, SliceOp op) {
  if (!op.getStarts() || !op.getSteps())
    return emitUnresolved(op);
  f.define(op, formIndexed(f, op, f.tensor(op.getInput()), [&](Body &b, ValueRange indices) {
             SmallVector<Value> at;
             for (auto [index, start, step] : llvm::zip(indices, *op.getStarts(), *op.getSteps())) {
               Value scaled = step == 1 ? Value(index) : b.mul(index, b.index(step));
               auto first = cast<DimAttr>(start);
               at.push_back(constantValue(first) == 0 ? scaled : b.add(scaled, b.size(first)));
             }
             return at;
           }));
  return success();
}

LogicalResult transept::form(FormContext &f, ConcatOp op) {
  SmallVector<Value> inputs;
  for (Value input : op.getInputs())
    inputs.push_back(f.tensor(input));
  SmallVector<DimAttr> result = graphDims(op);
  int64_t axis = axisFromFront(op.getAxis(), result.size());
  // The branch that holds the element; no other input is read.
  std::function<Value(Body &, ValueRange, ValueRange, size_t, DimAttr)> pick =
      [&](Body &b, ValueRange indices, ValueRange sources, size_t i, DimAttr offset) {
        DimAttr end = dimAdd(offset, shapeOf(inputs[i]).getDims()[axis]);
        auto element = [&](Body &inner) {
          SmallVector<Value> at(indices);
          at[axis] = constantValue(offset) == 0 ? indices[axis] : inner.sub(indices[axis], inner.size(offset));
          return inner.loadWide(sources[i], at);
        };
        if (i + 1 == inputs.size())
          return element(b);
        return b.choose(b.less(indices[axis], b.size(end)), element,
                        [&](Body &inner) { return pick(inner, indices, sources, i + 1, end); });
      };
  f.define(op, f.map(op.getLoc(), result, inputs, graphElementType(op),
                     [&](Body &b, ValueRange indices, ValueRange sources) {
                       return pick(b, indices, sources, 0, f.constant(0));
                     }));
  return success();
}

/// The index in [0, size) that an index outside of it stands for.
static Value paddedIndex(Body &b, PadMode mode, Value index, Value size) {
  if (mode == PadMode::Wrap) {
    Value rest = b.create<arith::RemSIOp>(index, size);
    return b.select(b.less(rest, b.index(0)), b.add(rest, size), rest);
  }
  if (mode == PadMode::Reflect) {
    Value last = b.sub(size, b.index(1));
    Value mirrored = b.select(b.less(index, b.index(0)), b.sub(b.index(0), index), index);
    index = b.select(b.less(last, mirrored), b.sub(b.mul(last, b.index(2)), mirrored), mirrored);
  }
  return b.clampIndex(index, size);
}

LogicalResult transept::form(FormContext &f, PadOp op) {
  if (!op.getLow())
    return emitUnresolved(op);
  Value input = f.tensor(op.getInput());
  SmallVector<Value> inputs = {input};
  if (op.getFill())
    inputs.push_back(f.tensor(op.getFill()));
  ArrayRef<DimAttr> dims = shapeOf(input).getDims();
  SmallVector<DimAttr> result = graphDims(op);
  Type type = graphElementType(op);
  f.define(op, f.map(op.getLoc(), result, inputs, type, [&](Body &b, ValueRange indices, ValueRange sources) {
    SmallVector<Value> at;
    Value isInside;
    for (auto [index, low, dim, full] : llvm::zip(indices, *op.getLow(), dims, result)) {
      auto offset = cast<DimAttr>(low);
      if (constantValue(offset) == 0 && dim == full) {
        at.push_back(index);
        continue;
      }
      Value shifted = b.sub(index, b.size(offset)), size = b.size(dim);
      if (op.getMode() != PadMode::Constant) {
        at.push_back(paddedIndex(b, op.getMode(), shifted, size));
        continue;
      }
      // One comparison: below zero is large without sign.
      Value inside = b.less(shifted, size, /*isUnsigned=*/true);
      isInside = isInside ? b.both(isInside, inside) : inside;
      at.push_back(shifted);
    }
    auto element = [&](Body &inner) { return inner.loadWide(sources[0], at); };
    if (!isInside)
      return element(b);
    return b.choose(isInside, element, [&](Body &inner) {
      if (sources.size() == 1)
        return inner.number(computeType(type), 0);
      // A scalar, or a vector of one element.
      SmallVector<Value> zero(shapeOf(inputs[1]).getDims().size(), inner.index(0));
      return inner.loadWide(sources[1], zero);
    });
  }));
  return success();
}

/// A diagonal that is data is read where it is compared; beyond any matrix it may as well be nearer.
LogicalResult transept::form(FormContext &f, TriluOp op) {
  SmallVector<DimAttr> domain = graphDims(op);
  Type type = graphElementType(op);
  SmallVector<Value> inputs = {f.tensor(op.getInput())};
  size_t diagonalRank = 0;
  if (op.getKValue()) {
    inputs.push_back(f.tensor(op.getKValue()));
    diagonalRank = shapeOf(inputs.back()).getDims().size();
  }
  auto body = [&](Body &b, ValueRange indices, ValueRange sources) {
    Value column = indices.back(), diagonal = b.index(op.getK().value_or(0));
    if (op.getKValue()) {
      Value k = b.load(sources[1], SmallVector<Value>(diagonalRank, b.index(0)));
      constexpr int64_t far = int64_t(1) << 40;
      diagonal = b.toIndex(k, graphElementType(op.getKValue()));
      diagonal = b.create<arith::MaxSIOp>(b.create<arith::MinSIOp>(diagonal, b.index(far)), b.index(-far));
    }
    Value limit = b.add(indices[indices.size() - 2], diagonal);
    Value kept = op.getUpper() ? b.lessOrEqual(limit, column) : b.lessOrEqual(column, limit);
    return b.select(kept, b.loadWide(sources[0], indices), b.number(computeType(type), 0));
  };
  f.define(op, f.map(op.getLoc(), domain, inputs, type, body));
  return success();
}

LogicalResult transept::form(FormContext &f, WindowsOp op) {
  size_t spatial = op.getKernel().size(), leading = graphDims(op).size() - 2 * spatial;
  f.define(op, formIndexed(f, op, f.tensor(op.getInput()), [&](Body &b, ValueRange indices) {
             SmallVector<Value> at(indices.take_front(leading));
             for (size_t i = 0; i < spatial; ++i) {
               Value first = b.mul(indices[leading + i], b.index(op.getStrides()[i]));
               at.push_back(b.add(first, b.mul(indices[leading + spatial + i], b.index(op.getDilations()[i]))));
             }
             return at;
           }));
  return success();
}
