//===- ImportRecurrent.cpp - RNN, GRU and LSTM --------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each direction becomes one product of all positions with its weight, and a walk over the positions. What the two
// biases of a gate add is the same for all positions and goes into the first.

#include "frontend/NodeImport.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

namespace {
class RecurrentImport {
public:
  RecurrentImport(NodeImport &node, CellKind kind)
      : node(node), kind(kind), gates(kind == CellKind::Rnn   ? 1
                                      : kind == CellKind::Gru ? 3
                                                              : 4),
        functions(gates == 1 ? 1 : gates - 1), element(node.elementOf(node.input(0))) {}

  LogicalResult run() {
    if (failed(readAttributes()))
      return failure();
    input = batchFirst ? node.transpose(node.input(0), {1, 0, 2}) : node.input(0);
    SmallVector<Value> all[3];
    for (int64_t direction = 0; direction < directions; ++direction)
      importDirection(direction, all);
    // [T, B, H] of each direction become [T, D, B, H] or, batch first, [B, T, D, H]; states likewise.
    (void)node.result(0, stack(all[0], 1, {2, 0, 1, 3}));
    (void)node.result(1, stack(all[1], 0, {1, 0, 2}));
    if (kind == CellKind::Lstm)
      (void)node.result(2, stack(all[2], 0, {1, 0, 2}));
    return success();
  }

private:
  LogicalResult readAttributes() {
    std::string direction = node.text("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      return node.invalid("has the unknown direction " + quoted(direction));
    directions = direction == "bidirectional" ? 2 : 1;
    reversed = direction == "reverse";
    batchFirst = node.integer("layout", 0) != 0;
    node.ignore("hidden_size"); // the weights say it
    if (!node.has("clip"))
      clip = 0.0f;
    else if (clip = node.real("clip", 0.0f); !std::isfinite(clip) || clip <= 0)
      return node.invalid("has a clip that is not positive and finite");
    linearBeforeReset = kind == CellKind::Gru && node.integer("linear_before_reset", 0);
    coupled = kind == CellKind::Lstm && node.integer("input_forget", 0);
    if (node.integer("output_sequence", 1) == 0 && node.wants(0))
      return node.invalid("asks for the output sequence that its output_sequence leaves out");
    return readActivations();
  }

  LogicalResult readActivations() {
    struct Function {
      StringLiteral name;
      float alpha, beta;
      int parameters;
    };
    static constexpr Function known[] = {{"Relu", 0, 0, 0},
                                         {"Tanh", 0, 0, 0},
                                         {"Sigmoid", 0, 0, 0},
                                         {"Affine", 1, 0, 2},
                                         {"LeakyRelu", 0.01f, 0, 1},
                                         {"ScaledTanh", 1, 1, 2},
                                         {"ThresholdedRelu", 1, 0, 1},
                                         {"HardSigmoid", 0.2f, 0.5f, 2},
                                         {"Elu", 1, 0, 1},
                                         {"Softsign", 0, 0, 0},
                                         {"Softplus", 0, 0, 0}};
    static constexpr StringLiteral usual[][3] = {
        {"Tanh", "", ""}, {"Sigmoid", "Tanh", ""}, {"Sigmoid", "Tanh", "Tanh"}};
    const onnx::AttributeProto *given = node.find("activations");
    std::vector<std::string> wanted;
    for (int64_t direction = 0; direction < directions; ++direction)
      for (int64_t function = 0; function < functions; ++function)
        wanted.push_back(usual[functions - 1][function].str());
    if (given && given->strings_size() > 0) {
      if (given->strings_size() != static_cast<int>(wanted.size()))
        return node.invalid("has " + Twine(given->strings_size()) + " activations; it needs " + Twine(wanted.size()));
      wanted.assign(given->strings().begin(), given->strings().end());
    }
    // Parameters are listed in the order of the functions that take them.
    std::optional<SmallVector<float>> alphas = node.reals("activation_alpha"), betas = node.reals("activation_beta");
    size_t nextAlpha = 0, nextBeta = 0;
    auto take = [](const std::optional<SmallVector<float>> &list, size_t &next, float fallback) {
      return list && next < list->size() ? (*list)[next++] : fallback;
    };
    for (const std::string &name : wanted) {
      const Function *function =
          llvm::find_if(known, [&](const Function &each) { return each.name.equals_insensitive(name); });
      if (function == std::end(known))
        return node.invalid("has the unknown activation " + quoted(name));
      activations.push_back(function->name);
      alpha.push_back(function->parameters > 0 ? take(alphas, nextAlpha, function->alpha) : 0.0f);
      beta.push_back(function->parameters > 1 ? take(betas, nextBeta, function->beta) : 0.0f);
    }
    return success();
  }

  /// Part `direction` of an input whose leading axis is the direction.
  Value of(int64_t direction, size_t index) {
    Value all = node.input(index);
    if (!all)
      return {};
    return node.make<GatherOp>(node.elementOf(all), all, node.scalar(direction), uint64_t(0));
  }
  Value state(int64_t direction, size_t index) {
    Value all = node.input(index);
    if (!all)
      return {};
    return node.make<GatherOp>(element, all, node.scalar(direction), uint64_t(batchFirst ? 1 : 0));
  }
  /// Gates [first, last) of a vector of parts.
  Value parts(Value vector, int64_t count, int64_t first, int64_t last) {
    Value rows = node.reshape(vector, {count, -1});
    return node.reshape(node.slice(rows, node.constant({first}), node.constant({last}), 0), {-1});
  }

  void importDirection(int64_t direction, MutableArrayRef<SmallVector<Value>> all) {
    OpBuilder &builder = node.builder;
    Value contribution = node.make<MatMulOp>(element, input, node.transpose(of(direction, 1), {1, 0}));
    Value hiddenBias;
    if (Value bias = of(direction, 3)) {
      Value fromInput = parts(bias, 2 * gates, 0, gates), fromState = parts(bias, 2 * gates, gates, 2 * gates);
      if (linearBeforeReset) {
        hiddenBias = parts(fromState, gates, 2, 3);
        Value rest = parts(fromState, gates, 0, 2), none = node.make<SubOp>(element, hiddenBias, hiddenBias);
        fromState = node.make<ConcatOp>(element, ValueRange{rest, none}, uint64_t(0));
      }
      contribution = node.make<AddOp>(element, contribution, node.make<AddOp>(element, fromInput, fromState));
    }
    bool isLstm = kind == CellKind::Lstm;
    Type type = UnrankedTensorType::get(element);
    auto first = static_cast<size_t>(direction * functions), count = static_cast<size_t>(functions);
    auto unit = [&](bool set) { return set ? builder.getUnitAttr() : UnitAttr(); };
    auto op = builder.create<RecurrentOp>(
        node.loc, type, type, isLstm ? type : Type(), contribution, node.transpose(of(direction, 2), {1, 0}),
        node.input(4), state(direction, 5), isLstm ? state(direction, 6) : Value(), isLstm ? of(direction, 7) : Value(),
        hiddenBias, CellKindAttr::get(builder.getContext(), kind),
        builder.getStrArrayAttr(ArrayRef(activations).slice(first, count)),
        builder.getDenseF32ArrayAttr(ArrayRef(alpha).slice(first, count)),
        builder.getDenseF32ArrayAttr(ArrayRef(beta).slice(first, count)), builder.getF32FloatAttr(clip),
        unit(reversed || direction == 1), unit(linearBeforeReset), unit(coupled));
    for (auto [list, result] : llvm::zip(all, op.getResults()))
      list.push_back(result);
  }

  Value stack(ArrayRef<Value> values, int64_t axis, ArrayRef<int64_t> batchFirstOrder) {
    SmallVector<Value> slices;
    for (Value value : values)
      slices.push_back(node.make<UnsqueezeOp>(element, value, Value(), node.builder.getDenseI64ArrayAttr({axis})));
    Value stacked = slices.front();
    if (slices.size() > 1)
      stacked = node.make<ConcatOp>(element, slices, static_cast<uint64_t>(axis));
    return batchFirst ? node.transpose(stacked, batchFirstOrder) : stacked;
  }

  NodeImport &node;
  const CellKind kind;
  const int64_t gates, functions;
  const Type element;
  int64_t directions = 1;
  bool reversed = false, batchFirst = false, linearBeforeReset = false, coupled = false;
  float clip = 0.0f;
  SmallVector<StringRef> activations;
  SmallVector<float> alpha, beta;
  Value input;
};

template <CellKind kind> LogicalResult importRecurrent(NodeImport &node) { return RecurrentImport(node, kind).run(); }
} // namespace

void mlir::transept::addRecurrentImports(ImportTable &table) {
  table.add("RNN", importRecurrent<CellKind::Rnn>);
  table.add("GRU", importRecurrent<CellKind::Gru>);
  table.add("LSTM", importRecurrent<CellKind::Lstm>);
}
