//===- ReadSizes.cpp - sizes that only data says ---------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ONNX says of a shape, of amounts or of axes is computed by graph ops, on vectors with one element per axis. Axes
// that only data names are looked up in tables: element [i, a] of `named` is whether entry i names axis a.

#include "passes/ReadSizes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Shapes.h"
#include "passes/SizeMath.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

Dims dims(Value value) { return dimsOf(cast<RankedTensorType>(value.getType())); }
bool isRanked(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && !llvm::is_contained(dimsOf(type), DimAttr());
}

/// Rewrites one op.
class OpReader {
public:
  OpReader(Operation *op, llvm::StringSet<> &names) : m(op), op(op), names(names) {
    if (auto own = op->getAttrOfType<ArrayAttr>(symbolsAttrName))
      for (Attribute name : own)
        symbols.insert(cast<StringAttr>(name).getValue());
  }

  void rewrite(ReshapeOp op);
  void rewrite(BroadcastOp op);
  void rewrite(TileOp op);
  void rewrite(SqueezeOp op);
  void rewrite(UnsqueezeOp op);
  void rewrite(SliceOp op);
  void rewrite(PadOp op);
  void rewrite(RangeOp op);
  void rewrite(FillOp op);
  void rewrite(ReduceOp op);
  void rewrite(CumSumOp op);
  void rewrite(TriluOp op);
  void rewrite(TopKOp op);
  void rewrite(NonZeroOp op);

private:
  /// An operand as a vector of i64, [length].
  Value vectorOf(Value operand);
  int64_t lengthOf(Value vector) { return cast<RankedTensorType>(vector.getType()).getDimSize(0); }
  /// Whether a size of the result is one that this op introduced.
  bool isOwn(DimAttr dim) { return symbols.contains(symbolName(dim)); }
  /// Elements of `vector`, parallel to `wanted`, become the values of those of `wanted` that are the op's own symbols.
  void read(Value vector, ArrayRef<DimAttr> wanted);
  void readAll(Value vector, ArrayRef<StringRef> wanted);
  /// A symbol for a size that is no axis of the result.
  DimAttr fresh(StringRef hint);
  void guard(DimAttr lhs, GuardRelation relation, DimAttr rhs, const Twine &what);
  void replaceBy(Value value) {
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }

  /// [n, rank] of i1; negative axes count from the end.
  Value named(Value axes, int64_t rank);
  /// [rank]: the value that entry i gives the axis it names, `otherwise` elsewhere.
  Value spread(Value table, Value values, Value otherwise);
  /// [rank] of i1: whether any entry names the axis.
  Value isNamed(Value table);
  Value ones(int64_t count) { return m.vector(SmallVector<int64_t>(count, 1)); }
  Value constants(int64_t count, int64_t value) { return m.vector(SmallVector<int64_t>(count, value)); }
  /// `vector` with `count` ones before it.
  Value padFront(Value vector, int64_t count);

  SizeMath m;
  Operation *op;
  llvm::StringSet<> &names;
  llvm::StringSet<> symbols;
};

Value OpReader::vectorOf(Value operand) {
  auto type = cast<RankedTensorType>(operand.getType());
  if (!type.getElementType().isSignlessInteger(64))
    operand = m.castTo(operand, m.builder.getI64Type());
  return type.getRank() == 1 ? operand : m.reshape(operand, {type.getNumElements()});
}

void OpReader::readAll(Value vector, ArrayRef<StringRef> wanted) {
  if (!wanted.empty())
    m.builder.create<ReadSizesOp>(m.loc, vector, m.builder.getStrArrayAttr(wanted));
}

void OpReader::read(Value vector, ArrayRef<DimAttr> wanted) {
  SmallVector<int64_t> places;
  SmallVector<StringRef> list;
  for (auto [i, dim] : llvm::enumerate(wanted))
    if (isOwn(dim)) {
      places.push_back(i);
      list.push_back(symbolName(dim));
    }
  if (places.size() != wanted.size() && !places.empty())
    vector = m.pick(vector, places);
  readAll(vector, list);
}

DimAttr OpReader::fresh(StringRef hint) {
  for (unsigned number = 0;; ++number)
    if (std::string name = (hint + "." + Twine(number)).str(); names.insert(name).second)
      return dimSymbol(m.context(), name);
}

void OpReader::guard(DimAttr lhs, GuardRelation relation, DimAttr rhs, const Twine &what) {
  if (lhs == rhs)
    return;
  // A function, or the yield of a branch, holds what its ops rely on.
  Operation *holder = isa<func::FuncOp>(op->getParentOp()) ? op->getParentOp() : op->getBlock()->getTerminator();
  SmallVector<Guard> guards = guardsFromAttr(holder->getAttrOfType<ArrayAttr>(guardsAttrName));
  guards.push_back({lhs, relation, rhs, nodeLabel(op) + " " + what.str()});
  holder->setAttr(guardsAttrName, guardsToAttr(m.context(), guards));
}

Value OpReader::named(Value axes, int64_t rank) {
  axes = m.where(m.less(axes, m.scalar(0)), m.add(axes, m.scalar(rank)), axes);
  return m.equal(m.reshape(axes, {lengthOf(axes), 1}), m.reshape(m.iota(dimConstant(m.context(), rank)), {1, rank}));
}

Value OpReader::spread(Value table, Value values, Value otherwise) {
  Value column = m.reshape(values, {lengthOf(values), 1});
  Value sum = m.reduce(ReduceKind::Sum, m.where(table, column, m.scalar(0)), 0);
  return m.where(isNamed(table), sum, otherwise);
}

Value OpReader::isNamed(Value table) {
  Value counts = m.reduce(ReduceKind::Sum, m.castTo(table, m.builder.getI64Type()), 0);
  return m.less(m.scalar(0), counts);
}

Value OpReader::padFront(Value vector, int64_t count) {
  return count <= 0 ? vector : m.make<ConcatOp>(ValueRange{ones(count), vector}, m.builder.getI64IntegerAttr(0));
}

//===- Shapes
//--------------------------------------------------------------------------------------------------------------===//

void OpReader::rewrite(ReshapeOp op) {
  Value shape = vectorOf(op.getShape());
  Dims input = dims(op.getInput()), wanted = dims(op.getResult());
  const int64_t rank = lengthOf(shape);
  if (!op.getAllowZero()) {
    Dims copied(ArrayRef(input).take_front(rank));
    copied.resize(rank, dimConstant(m.context(), 0));
    shape = m.where(m.equal(shape, m.scalar(0)), m.sizes(copied), shape);
  }
  Value open = m.equal(shape, m.scalar(-1));
  Value product = m.reduce(ReduceKind::Prod, m.where(open, m.scalar(1), shape), 0);
  DimAttr total = dimProduct(m.context(), input);
  read(m.where(open, m.div(m.sizes({total}), product), shape), wanted);
  guard(total, GuardRelation::Equal, dimProduct(m.context(), wanted),
        "cannot make " + toString(wanted) + " of " + toString(input));
  op.getShapeMutable().clear();
  op.setAllowZero(false);
}

void OpReader::rewrite(BroadcastOp op) {
  Value shape = vectorOf(op.getShape());
  Dims input = dims(op.getInput()), wanted = dims(op.getResult());
  const auto rank = static_cast<int64_t>(wanted.size());
  input.insert(input.begin(), wanted.size() - input.size(), dimConstant(m.context(), 1));
  shape = padFront(shape, rank - lengthOf(shape));
  // -1 is written for "as it is".
  Value one = m.scalar(1);
  Value same = m.make<OrOp>(m.equal(shape, one), m.equal(shape, m.scalar(-1)));
  shape = m.where(same, m.sizes(input), shape);
  read(shape, wanted);
  // What the operand says the shape must say as well.
  SmallVector<int64_t> places;
  SmallVector<StringRef> said;
  for (auto [axis, to] : llvm::enumerate(wanted))
    if (constantValue(to).value_or(1) != 1) {
      DimAttr asked = fresh("broadcast.asked");
      places.push_back(static_cast<int64_t>(axis));
      said.push_back(symbolName(asked));
      guard(asked, GuardRelation::Equal, to,
            "broadcasts axis " + Twine(axis) + " of size " + toString(to) + " to " + toString(asked));
    }
  if (!said.empty())
    readAll(m.pick(shape, places), said);
  DimAttr zero = dimConstant(m.context(), 0), minusOne = dimConstant(m.context(), -1);
  for (auto [axis, from, to] : llvm::enumerate(input, wanted))
    if (from != to && constantValue(from) != 1)
      guard(dimMul(dimAdd(from, minusOne), dimSub(to, from)), GuardRelation::Equal, zero,
            "broadcasts axis " + Twine(axis) + " of size " + toString(from) + " to " + toString(to));
  op.getShapeMutable().clear();
}

void OpReader::rewrite(TileOp op) {
  read(m.mul(m.sizes(dims(op.getInput())), vectorOf(op.getRepeats())), dims(op.getResult()));
  op.getRepeatsMutable().clear();
}

void OpReader::rewrite(FillOp op) {
  read(vectorOf(op.getShape()), dims(op.getResult()));
  op.getShapeMutable().clear();
}

void OpReader::rewrite(UnsqueezeOp op) {
  Dims input = dims(op.getInput()), wanted = dims(op.getResult());
  const auto rank = static_cast<int64_t>(wanted.size());
  Value isNew = isNamed(named(vectorOf(op.getAxesValue()), rank));
  Value old = m.where(isNew, m.scalar(0), m.scalar(1));
  Value sizes = m.sizes(input);
  if (!input.empty()) {
    // The place among the operand's axes.
    Value place = m.min(m.sumBefore(old), m.scalar(static_cast<int64_t>(input.size()) - 1));
    read(m.where(isNew, m.scalar(1), m.make<GatherOp>(sizes, place, m.builder.getI64IntegerAttr(0))), wanted);
  } else {
    read(ones(rank), wanted);
  }
  guard(dimProduct(m.context(), input), GuardRelation::Equal, dimProduct(m.context(), wanted), "inserts an axis twice");
  replaceBy(m.reshape(op.getInput(), wanted));
}

void OpReader::rewrite(SqueezeOp op) {
  Dims input = dims(op.getInput()), wanted = dims(op.getResult());
  const auto rank = static_cast<int64_t>(input.size()), kept = static_cast<int64_t>(wanted.size());
  Value dropped = isNamed(named(vectorOf(op.getAxesValue()), rank));
  Value stays = m.where(dropped, m.scalar(0), m.scalar(1));
  if (kept != 0) {
    Value place = m.where(dropped, m.scalar(-1), m.sumBefore(stays));
    Value table = m.equal(m.reshape(place, {rank, 1}), m.reshape(m.iota(dimConstant(m.context(), kept)), {1, kept}));
    read(spread(table, m.sizes(input), m.scalar(0)), wanted);
  }
  guard(dimProduct(m.context(), input), GuardRelation::Equal, dimProduct(m.context(), wanted),
        "drops an axis whose size is not 1");
  replaceBy(m.reshape(op.getInput(), wanted));
}

//===- Amounts
//-------------------------------------------------------------------------------------------------------------===//

void OpReader::rewrite(SliceOp op) {
  Dims input = dims(op.getInput()), wanted = dims(op.getResult());
  const auto rank = static_cast<int64_t>(input.size());
  Value starts = vectorOf(op.getStartsValue()), ends = vectorOf(op.getEndsValue());
  const int64_t count = lengthOf(starts);
  Value axes =
      op.getAxesValue() ? vectorOf(op.getAxesValue()) : m.vector(llvm::to_vector(llvm::seq<int64_t>(0, count)));
  Value steps = op.getStepsValue() ? vectorOf(op.getStepsValue()) : ones(count);
  Value table = named(axes, rank), sizes = m.sizes(input), zero = m.scalar(0), one = m.scalar(1);
  starts = spread(table, starts, zero);
  ends = spread(table, ends, sizes);
  steps = spread(table, steps, one);
  Value forward = m.less(zero, steps);
  auto fromFront = [&](Value bound) { return m.where(m.less(bound, zero), m.add(bound, sizes), bound); };
  Value last = m.sub(sizes, one);
  starts = m.clamp(fromFront(starts), zero, m.where(forward, sizes, last));
  ends = m.clamp(fromFront(ends), m.where(forward, zero, m.scalar(-1)), m.where(forward, sizes, last));
  Value distance = m.where(forward, m.sub(ends, starts), m.sub(starts, ends));
  Value stride = m.where(forward, steps, m.sub(zero, steps));
  Value counts = m.div(m.max(m.sub(m.add(distance, stride), one), zero), stride);
  // A step of zero is an error: no size is negative.
  counts = m.where(m.equal(steps, zero), m.scalar(-1), counts);
  read(counts, wanted);
  Value value = op.getInput();
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (!isOwn(wanted[axis]))
      continue;
    Value places = m.add(m.pick(starts, axis), m.mul(m.iota(wanted[axis]), m.pick(steps, axis)));
    value = m.make<GatherOp>(value, places, m.builder.getI64IntegerAttr(axis));
  }
  replaceBy(value);
}

void OpReader::rewrite(PadOp op) {
  Dims input = dims(op.getInput()), wanted = dims(op.getResult());
  const auto rank = static_cast<int64_t>(input.size());
  Value pads = vectorOf(op.getPadsValue());
  const int64_t count = lengthOf(pads) / 2;
  Value axes =
      op.getAxesValue() ? vectorOf(op.getAxesValue()) : m.vector(llvm::to_vector(llvm::seq<int64_t>(0, count)));
  Value table = named(axes, rank), sizes = m.sizes(input), zero = m.scalar(0);
  auto half = [&](int64_t first) {
    return spread(table, m.pick(pads, llvm::to_vector(llvm::seq<int64_t>(first, first + count))), zero);
  };
  Value low = half(0);
  read(m.add(m.add(sizes, low), half(count)), wanted);
  // Sizes are not negative, pads may be: low + size is read, which is negative only where more than all is removed.
  SmallVector<Attribute> lows;
  SmallVector<StringRef> shifted;
  for (DimAttr size : input) {
    DimAttr symbol = fresh("padded.low");
    shifted.push_back(symbolName(symbol));
    lows.push_back(dimSub(symbol, size));
  }
  readAll(m.add(low, sizes), shifted);
  op.setLowAttr(m.builder.getArrayAttr(lows));
  op.getPadsValueMutable().clear();
  op.getAxesValueMutable().clear();
}

void OpReader::rewrite(RangeOp op) {
  Type element = cast<TensorType>(op.getType()).getElementType();
  auto scalarOf = [&](Value operand) { return m.reshape(operand, ArrayRef<int64_t>()); };
  Value start = scalarOf(op.getStart()), limit = scalarOf(op.getLimit()), delta = scalarOf(op.getDelta());
  Value zero = m.scalar(0), count;
  if (isa<FloatType>(element)) {
    Type f64 = m.builder.getF64Type();
    Value steps = m.div(m.castTo(m.sub(limit, start), f64), m.castTo(delta, f64));
    count = m.castTo(m.make<CeilOp>(steps), m.builder.getI64Type());
  } else {
    Type i64 = m.builder.getI64Type();
    Value distance = m.sub(m.castTo(limit, i64), m.castTo(start, i64)), step = m.castTo(delta, i64);
    Value forward = m.less(zero, step);
    Value stride = m.where(forward, step, m.sub(zero, step));
    distance = m.where(forward, distance, m.sub(zero, distance));
    count = m.div(m.sub(m.add(distance, stride), m.scalar(1)), stride);
    count = m.where(m.equal(step, zero), m.scalar(-1), m.max(count, zero));
  }
  Dims wanted = dims(op.getResult());
  read(m.reshape(m.max(count, isa<FloatType>(element) ? zero : m.scalar(-1)), {1}), wanted);
  Value places = m.castTo(m.iota(wanted.front()), element);
  replaceBy(m.add(start, m.mul(places, delta)));
}

//===- Axes
//----------------------------------------------------------------------------------------------------------------===//

void OpReader::rewrite(ReduceOp op) {
  Dims input = dims(op.getInput()), wanted = dims(op.getResult());
  const auto rank = static_cast<int64_t>(input.size());
  Value axes = vectorOf(op.getAxesValue());
  const int64_t kept = rank - lengthOf(axes);
  Value reduced = isNamed(named(axes, rank));
  Value one = m.scalar(1), zero = m.scalar(0), sizes = m.sizes(input);
  // Axes that stay go to the front: the place of each, and what is at each place.
  Value flags = m.where(reduced, one, zero), others = m.sub(one, flags);
  Value place = m.where(reduced, m.add(m.scalar(kept), m.sumBefore(flags)), m.sumBefore(others));
  Value table = m.equal(m.reshape(place, {rank, 1}), m.reshape(m.iota(dimConstant(m.context(), rank)), {1, rank}));
  Dims strides(rank, dimConstant(m.context(), 1));
  for (int64_t axis = rank - 1; axis > 0; --axis)
    strides[axis - 1] = dimMul(strides[axis], input[axis]);
  Value moved = spread(table, sizes, zero), steps = spread(table, m.sizes(strides), zero);
  Dims order;
  SmallVector<StringRef> list;
  for (int64_t i = 0; i < rank; ++i) {
    order.push_back(fresh("reduced.order"));
    list.push_back(symbolName(order.back()));
  }
  readAll(moved, list);
  if (op.getKeepdims())
    read(m.where(reduced, one, sizes), wanted);
  else if (kept > 0)
    read(m.pick(moved, llvm::to_vector(llvm::seq<int64_t>(0, kept))), wanted);
  // Where each element comes from, in the operand's row-major order.
  Value source;
  for (int64_t i = 0; i < rank; ++i) {
    Dims shape(rank, dimConstant(m.context(), 1));
    shape[i] = order[i];
    Value part = m.reshape(m.mul(m.iota(order[i]), m.pick(steps, i)), shape);
    source = source ? m.add(source, part) : part;
  }
  Value flat = m.reshape(op.getInput(), ArrayRef<DimAttr>{dimProduct(m.context(), input)});
  Value value = m.make<GatherOp>(flat, source, m.builder.getI64IntegerAttr(0));
  SmallVector<int64_t> last = llvm::to_vector(llvm::seq<int64_t>(kept, rank));
  value = m.make<ReduceOp>(value, Value(), op.getKindAttr(), m.builder.getDenseI64ArrayAttr(last),
                           m.builder.getBoolAttr(false), m.builder.getBoolAttr(true));
  replaceBy(m.reshape(value, wanted));
}

void OpReader::rewrite(CumSumOp op) {
  const auto rank = static_cast<int64_t>(dims(op.getInput()).size());
  Value axis = m.reshape(m.castTo(op.getAxisValue(), m.builder.getI64Type()), ArrayRef<int64_t>());
  axis = m.where(m.less(axis, m.scalar(0)), m.add(axis, m.scalar(rank)), axis);
  Value value;
  for (int64_t i = 0; i < rank; ++i) {
    Value along = m.make<CumSumOp>(op.getInput(), Value(), m.builder.getI64IntegerAttr(i), op.getExclusiveAttr(),
                                   op.getReverseAttr(), op.getProductAttr());
    value = value ? m.where(m.equal(axis, m.scalar(i)), along, value) : along;
  }
  replaceBy(value);
}

void OpReader::rewrite(TriluOp op) {
  Dims input = dims(op.getInput());
  const DimAttr one = dimConstant(m.context(), 1);
  Value row = m.reshape(m.iota(input[input.size() - 2]), ArrayRef<DimAttr>{input[input.size() - 2], one});
  Value column = m.reshape(m.iota(input.back()), ArrayRef<DimAttr>{one, input.back()});
  Value diagonal = m.add(row, m.reshape(op.getKValue(), ArrayRef<int64_t>()));
  Value kept = op.getUpper() ? m.make<LessOrEqualOp>(diagonal, column) : m.make<LessOrEqualOp>(column, diagonal);
  Value zero = m.castTo(m.scalar(0), cast<TensorType>(op.getType()).getElementType());
  replaceBy(m.where(kept, op.getInput(), zero));
}

void OpReader::rewrite(TopKOp op) {
  Dims wanted = dims(op.getValues());
  const int64_t axis = op.getAxis();
  DimAttr count = wanted[axis < 0 ? axis + static_cast<int64_t>(wanted.size()) : axis];
  read(vectorOf(op.getKValue()), count);
  op.setKAttr(count);
  op.getKValueMutable().clear();
}

//===- Counts
//--------------------------------------------------------------------------------------------------------------===//

void OpReader::rewrite(NonZeroOp op) {
  Dims input = dims(op.getInput()), wanted = dims(op.getResult());
  DimAttr total = dimProduct(m.context(), input), one = dimConstant(m.context(), 1);
  DimAttr count = wanted.back();
  Value flat = m.reshape(op.getInput(), ArrayRef<DimAttr>{total});
  Value found = m.castTo(flat, m.builder.getI1Type());
  Value flags = m.castTo(found, m.builder.getI64Type());
  read(m.reshape(m.reduce(ReduceKind::Sum, flags, 0), {1}), count);
  // The i-th element found goes to place i, all others to a place behind them.
  Value target = m.where(found, m.sumBefore(flags), m.sizes({count}));
  Value places = m.make<ScatterNDOp>(m.zeros({dimAdd(count, one)}), m.reshape(target, ArrayRef<DimAttr>{total, one}),
                                     m.iota(total), ScatterKindAttr::get(m.context(), ScatterKind::Replace));
  places = m.builder.create<SliceOp>(m.loc, makeType({count}, m.builder.getI64Type()), places, Value(), Value(),
                                     Value(), Value(), m.builder.getArrayAttr({dimConstant(m.context(), 0)}),
                                     m.builder.getDenseI64ArrayAttr({1}));
  SmallVector<Value> coordinates;
  DimAttr stride = one;
  for (DimAttr size : llvm::reverse(input)) {
    Value index = m.make<ModOp>(m.div(places, m.sizes({stride})), m.sizes({size}), m.builder.getI64IntegerAttr(0));
    coordinates.insert(coordinates.begin(), m.reshape(index, ArrayRef<DimAttr>{one, count}));
    stride = dimMul(stride, size);
  }
  replaceBy(coordinates.empty() ? m.reshape(places, ArrayRef<DimAttr>{one, count})
                                : m.make<ConcatOp>(coordinates, m.builder.getI64IntegerAttr(0)));
}

/// Whether the op still has operands that say its result's shape, or its axes, of which there is a known number.
bool isOpen(Operation *op) {
  if (!llvm::all_of(op->getOperands(), isRanked) || !llvm::all_of(op->getResults(), isRanked))
    return false;
  auto isCounted = [](Value operand) { return operand && cast<RankedTensorType>(operand.getType()).hasStaticShape(); };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<ReshapeOp, BroadcastOp, FillOp>([&](auto op) { return isCounted(op.getShape()); })
      .Case<SqueezeOp, UnsqueezeOp>([&](auto op) { return isCounted(op.getAxesValue()); })
      .Case([&](ReduceOp op) { return isCounted(op.getAxesValue()); })
      .Case([&](TileOp op) { return isCounted(op.getRepeats()); })
      .Case([&](SliceOp op) { return isCounted(op.getStartsValue()) && isCounted(op.getEndsValue()); })
      .Case([&](PadOp op) { return isCounted(op.getPadsValue()); })
      .Case(
          [&](RangeOp op) { return isCounted(op.getStart()) && isCounted(op.getLimit()) && isCounted(op.getDelta()); })
      .Case([&](CumSumOp op) { return isCounted(op.getAxisValue()); })
      .Case([&](TriluOp op) { return isCounted(op.getKValue()); })
      .Case([&](TopKOp op) { return isCounted(op.getKValue()); })
      .Case([](NonZeroOp) { return true; })
      .Default(false);
}

struct ReadSizesPass : PassWrapper<ReadSizesPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReadSizesPass)
  StringRef getArgument() const override { return "transept-read-sizes"; }
  StringRef getDescription() const override { return "Sizes that only data says are computed and read back"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<TranseptDialect>(); }

  void runOnOperation() override {
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        runOnFunction(function);
  }

  static void runOnFunction(func::FuncOp function) {
    SmallVector<Operation *> open;
    function.walk([&](Operation *op) {
      if (isOpen(op))
        open.push_back(op);
    });
    if (open.empty())
      return;
    llvm::StringSet<> names = symbolNamesOf(function);
    for (Operation *op : open) {
      OpReader reader(op, names);
      llvm::TypeSwitch<Operation *>(op)
          .Case<ReshapeOp, BroadcastOp, FillOp, SqueezeOp, UnsqueezeOp, ReduceOp, TileOp, SliceOp, PadOp, RangeOp,
                CumSumOp, TriluOp, TopKOp, NonZeroOp>([&](auto typed) { reader.rewrite(typed); });
    }
    eraseDeadOps(function);
  }
};

} // namespace

std::unique_ptr<Pass> transept::createReadSizesPass() { return std::make_unique<ReadSizesPass>(); }
