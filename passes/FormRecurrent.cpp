//===- FormRecurrent.cpp - recurrent layers
//-----------------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of the batch are items: each walks its positions with its state in memory. What the positions contribute to the
// gates was a product over all of them, so that one product of the hidden state with the weight is left per position.

#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// One of ONNX's activation functions with its parameters.
Value activate(Body &b, StringRef name, float alpha, float beta, Value x) {
  Type type = x.getType();
  auto number = [&](double value) { return b.number(type, value); };
  Value zero = number(0), one = number(1), scale = number(alpha), shift = number(beta);
  auto exp = [&](Value of) -> Value { return b.create<math::ExpOp>(of); };
  auto tanh = [&](Value of) -> Value { return b.create<math::TanhOp>(of); };
  auto divide = [&](Value above, Value below) -> Value { return b.create<arith::DivFOp>(above, below); };
  if (name == "Tanh")
    return tanh(x);
  if (name == "Sigmoid")
    return divide(one, b.add(one, exp(b.sub(zero, x))));
  if (name == "Relu")
    return b.select(b.less(x, zero), zero, x);
  if (name == "Affine")
    return b.add(b.mul(scale, x), shift);
  if (name == "LeakyRelu")
    return b.select(b.less(x, zero), b.mul(scale, x), x);
  if (name == "ThresholdedRelu")
    return b.select(b.less(scale, x), x, zero);
  if (name == "ScaledTanh")
    return b.mul(scale, tanh(b.mul(shift, x)));
  if (name == "HardSigmoid") {
    Value line = b.add(b.mul(scale, x), shift);
    return b.create<arith::MaximumFOp>(zero, b.create<arith::MinimumFOp>(one, line));
  }
  if (name == "Elu")
    return b.select(b.less(x, zero), b.mul(scale, b.sub(exp(x), one)), x);
  if (name == "Softsign")
    return divide(x, b.add(one, b.create<math::AbsFOp>(x)));
  // Softplus: log(1 + exp(x)) without overflow.
  Value size = b.create<math::AbsFOp>(x), rest = b.create<math::LogOp>(b.add(one, exp(b.sub(zero, size))));
  return b.add(b.create<arith::MaximumFOp>(x, zero), rest);
}

class Recurrence {
public:
  Recurrence(FormContext &f, RecurrentOp op)
      : f(f), op(op), dims(shapeOf(f.tensor(op.getInput())).getDims()),
        size(shapeOf(f.tensor(op.getWeight())).getDims().front()), type(graphElementType(op.getInput())) {}

  void form();

private:
  /// The body's argument of an operand of the op, or null.
  Value source(Value operand) const {
    return operand ? sources[llvm::find(operands, operand) - operands.begin()] : Value();
  }
  Value load(Body &b, Value operand, ValueRange at) { return b.loadWide(source(operand), at); }
  /// Element `j` of gate `gate` in the scratch memory, or of a vector of such parts.
  Value part(Body &b, int64_t gate, Value j) const {
    return gate ? b.add(b.size(dimMul(size, f.constant(gate))), j) : j;
  }
  Value sum(Body &b, int64_t gate, Value j) { return b.load(gates, {item, part(b, gate, j)}); }
  Value given(Body &b, int64_t gate, Value j) { return load(b, op.getInput(), {time, item, part(b, gate, j)}); }
  Value hidden(Body &b, Value j) { return b.loadWide(lastHidden, {item, j}); }
  Value apply(Body &b, size_t function, Value x);

  void start(Body &b);
  void visit(Body &b);
  /// Gates from `first` on: what the position gives (or `bias`, where there is one) plus the product of `state`
  /// and the weight.
  void multiply(Body &b, int64_t first, int64_t count, function_ref<Value(Body &, Value)> initial,
                function_ref<Value(Body &, Value)> state);
  void visitSimple(Body &b);
  void visitGru(Body &b);
  void visitLstm(Body &b);
  void put(Body &b, Value j, Value value) {
    b.store(value, result, {time, item, j});
    b.store(value, lastHidden, {item, j});
  }

  FormContext &f;
  RecurrentOp op;
  ArrayRef<DimAttr> dims; // positions, batch, gates
  DimAttr size;           // of the hidden state
  Type type;
  SmallVector<Value> operands;
  ValueRange sources;
  Value item, time, result, lastHidden, lastCell, gates;
};

Value Recurrence::apply(Body &b, size_t function, Value x) {
  // The cell, which goes into the third function, is no gate.
  if (float clip = op.getClip().convertToFloat(); clip != 0 && function < 2) {
    Value low = b.number(x.getType(), -clip), high = b.number(x.getType(), clip);
    x = b.create<arith::MaximumFOp>(low, b.create<arith::MinimumFOp>(x, high));
  }
  return activate(b, cast<StringAttr>(op.getActivations()[function]), op.getAlpha()[function], op.getBeta()[function],
                  x);
}

void Recurrence::start(Body &b) {
  auto fill = [&](Value target, Value initial) {
    if (!target)
      return;
    b.repeat(b.size(size), [&](Body &inner, Value j) {
      Value value = initial ? load(inner, initial, {item, j}) : inner.number(computeType(type), 0);
      inner.store(value, target, {item, j});
    });
  };
  fill(lastHidden, op.getHidden());
  fill(lastCell, op.getCell());
}

void Recurrence::multiply(Body &b, int64_t first, int64_t count, function_ref<Value(Body &, Value)> initial,
                          function_ref<Value(Body &, Value)> state) {
  Value columns = b.size(dimMul(size, f.constant(count)));
  b.repeat(columns, [&](Body &inner, Value j) {
    Value at = part(inner, first, j);
    inner.store(initial(inner, at), gates, {item, at});
  });
  b.repeat(b.size(size), [&](Body &inner, Value k) {
    Value factor = state(inner, k);
    inner.repeat(columns, [&](Body &deeper, Value j) {
      Value at = part(deeper, first, j);
      Value product = deeper.mul(factor, load(deeper, op.getWeight(), {k, at}));
      deeper.store(deeper.add(deeper.load(gates, {item, at}), product), gates, {item, at});
    });
  });
}

void Recurrence::visitSimple(Body &b) {
  auto state = [&](Body &inner, Value k) { return hidden(inner, k); };
  multiply(b, 0, 1, [&](Body &inner, Value at) { return given(inner, 0, at); }, state);
  b.repeat(b.size(size), [&](Body &inner, Value j) { put(inner, j, apply(inner, 0, sum(inner, 0, j))); });
}

void Recurrence::visitGru(Body &b) {
  auto state = [&](Body &inner, Value k) { return hidden(inner, k); };
  auto input = [&](Body &inner, Value at) { return given(inner, 0, at); };
  multiply(b, 0, 2, input, state);
  // A fourth part of the scratch memory holds the reset state, from which the candidate is computed.
  auto reset = [&](Body &inner, Value j) { return apply(inner, 0, sum(inner, 1, j)); };
  if (op.getLinearBeforeReset()) {
    auto bias = [&](Body &inner, Value at) {
      if (!op.getHiddenBias())
        return inner.number(computeType(type), 0);
      return load(inner, op.getHiddenBias(), {inner.sub(at, inner.size(dimMul(size, f.constant(2))))});
    };
    multiply(b, 2, 1, bias, state);
  } else {
    b.repeat(b.size(size), [&](Body &inner, Value j) {
      inner.store(inner.mul(reset(inner, j), hidden(inner, j)), gates, {item, part(inner, 3, j)});
    });
    multiply(b, 2, 1, input, [&](Body &inner, Value k) { return sum(inner, 3, k); });
  }
  b.repeat(b.size(size), [&](Body &inner, Value j) {
    Value candidate = sum(inner, 2, j);
    if (op.getLinearBeforeReset())
      candidate = inner.add(given(inner, 2, j), inner.mul(reset(inner, j), candidate));
    candidate = apply(inner, 1, candidate);
    Value update = apply(inner, 0, sum(inner, 0, j)), one = inner.number(update.getType(), 1);
    put(inner, j, inner.add(inner.mul(inner.sub(one, update), candidate), inner.mul(update, hidden(inner, j))));
  });
}

void Recurrence::visitLstm(Body &b) {
  multiply(
      b, 0, 4, [&](Body &inner, Value at) { return given(inner, 0, at); },
      [&](Body &inner, Value k) { return hidden(inner, k); });
  // Gates are stored as i, o, f, c; peepholes as i, o, f.
  b.repeat(b.size(size), [&](Body &inner, Value j) {
    Value cell = inner.loadWide(lastCell, {item, j});
    auto gate = [&](int64_t number, Value seen) {
      Value total = sum(inner, number, j);
      if (op.getPeephole())
        total = inner.add(total, inner.mul(load(inner, op.getPeephole(), {part(inner, number, j)}), seen));
      return apply(inner, 0, total);
    };
    Value input = gate(0, cell);
    Value forget = op.getCoupled() ? inner.sub(inner.number(input.getType(), 1), input) : gate(2, cell);
    Value candidate = apply(inner, 1, sum(inner, 3, j));
    cell = inner.add(inner.mul(forget, cell), inner.mul(input, candidate));
    inner.store(cell, lastCell, {item, j});
    put(inner, j, inner.mul(gate(1, cell), apply(inner, 2, cell)));
  });
}

void Recurrence::visit(Body &b) {
  switch (op.getKind()) {
  case CellKind::Rnn:
    return visitSimple(b);
  case CellKind::Gru:
    return visitGru(b);
  case CellKind::Lstm:
    return visitLstm(b);
  }
}

void Recurrence::form() {
  SmallVector<Value> inputs;
  for (Value operand : op->getOperands())
    if (!llvm::is_contained(operands, operand)) {
      operands.push_back(operand);
      inputs.push_back(f.tensor(operand));
    }
  SmallVector<DimAttr> state = {dims[1], size};
  SmallVector<FormContext::Output> outputs = {{{dims[0], dims[1], size}, type}, {state, type}};
  if (op.getLastCell())
    outputs.push_back({state, type});
  int64_t parts = op.getKind() == CellKind::Rnn ? 1 : 4;
  outputs.push_back({{dims[1], dimMul(size, f.constant(parts))}, computeType(type)});
  auto body = [&](Body &b, Value row, ValueRange targets, ValueRange arguments) {
    item = row;
    sources = arguments;
    result = targets[0];
    lastHidden = targets[1];
    lastCell = op.getLastCell() ? targets[2] : Value();
    gates = targets.back();
    start(b);
    Value positions = b.size(dims[0]), count = positions;
    if (Value lengths = op.getLengths()) {
      Value length = b.toIndex(b.load(source(lengths), {row}), graphElementType(lengths));
      count = b.create<arith::MaxSIOp>(b.create<arith::MinSIOp>(length, positions), b.index(0));
    }
    b.repeat(count, [&](Body &inner, Value i) {
      time = op.getReverse() ? inner.sub(inner.sub(count, inner.index(1)), i) : i;
      visit(inner);
    });
    if (op.getLengths())
      b.repeat(b.sub(positions, count), [&](Body &inner, Value i) {
        inner.repeat(inner.size(size), [&](Body &deeper, Value j) {
          deeper.store(deeper.number(computeType(type), 0), result, {deeper.add(count, i), row, j});
        });
      });
  };
  SmallVector<Value> values = f.serial(op.getLoc(), dims[1], inputs, outputs, body);
  for (auto [graphValue, value] : llvm::zip(op.getResults(), values))
    f.define(graphValue, value);
}

} // namespace

LogicalResult transept::form(FormContext &f, RecurrentOp op) {
  if (!isa<FloatType>(graphElementType(op.getInput())))
    return emitUnsupported(op) << "has elements of type " << graphElementType(op.getInput());
  Recurrence(f, op).form();
  return success();
}
