//===- Screen.cpp - a step that computes few logits ---------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Screen.h"
#include "passes/FormOps.h"
#include "passes/NarrowMatrix.h"
#include "passes/Stage.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

namespace {

/// Norms of columns, rounded up. Sums of squares in f64 are exact to far more than the margin.
struct ColumnNorms {
  std::vector<float> errors, values;

  ColumnNorms(ArrayRef<float> elements, const Int8Matrix &narrow, int64_t k, int64_t n, bool transposed) {
    std::vector<double> missed(n), kept(n);
    for (int64_t i = 0, end = elements.size(); i < end; ++i) {
      int64_t column = transposed ? i / k : i % n;
      double value = (static_cast<uint8_t>(narrow.elements[i]) - 128) * static_cast<double>(narrow.scales[column]);
      double error = elements[i] - value;
      missed[column] += error * error;
      kept[column] += value * value;
    }
    for (int64_t column = 0; column < n; ++column) {
      errors.push_back(roundUp(missed[column]));
      values.push_back(roundUp(kept[column]));
    }
  }

private:
  static float roundUp(double squares) {
    return std::nextafter(static_cast<float>(std::sqrt(squares) * (1 + 1e-9)), INFINITY);
  }
};

class Screener {
public:
  explicit Screener(ModuleOp module) : module(module), builder(module.getContext()) {}

  LogicalResult run() {
    auto step = module.lookupSymbol<func::FuncOp>(stepName);
    auto generation = module->getAttrOfType<DictionaryAttr>(generationAttrName);
    if (!step || !generation)
      return emitUnsupported(module) << "cannot screen its vocabulary: it generates nothing; leave out "
                                        "--two-stage-vocabulary";
    SearchHeadOp head;
    step.walk([&](SearchHeadOp op) { head = op; });
    LinearOp linear = head ? head.getLogits().getDefiningOp<LinearOp>() : LinearOp();
    std::optional<WeightMatrix> matrix = linear ? packedMatrix(linear) : std::nullopt;
    if (!matrix || module.lookupSymbol(greedyName))
      return emitUnsupported(head ? head.getOperation() : step.getOperation())
             << "cannot screen its vocabulary: logits are no product of one position with a constant fp32 matrix; "
                "leave "
                "out --two-stage-vocabulary";
    FailureOr<Attribute> screen = screenOf(*matrix);
    if (failed(screen))
      return emitUnsupported(linear)
             << "cannot screen its vocabulary: the matrix holds infinities or NaN, or sums over too many products; "
                "leave out --two-stage-vocabulary";
    builder.setInsertionPointAfter(step);
    auto greedy = cast<func::FuncOp>(builder.clone(*step));
    greedy.setName(greedyName);
    greedy.walk([&](SearchHeadOp op) { op->setAttr(screenAttrName, *screen); });
    NamedAttrList entries(generation);
    entries.set("step_greedy", builder.getStringAttr(greedyName));
    module->setAttr(generationAttrName, entries.getDictionary(module.getContext()));
    addNote(*matrix);
    return success();
  }

private:
  FailureOr<Attribute> screenOf(const WeightMatrix &matrix) {
    WeightStore &store = WeightStore::of(module.getContext());
    auto content = store.lookup(matrix.key);
    ArrayRef<float> elements(reinterpret_cast<const float *>(content.bytes.data()),
                             content.bytes.size() / sizeof(float));
    constexpr int64_t longest = 1 << 16; // sums of products of bytes fit into 32 bits
    if (matrix.k() > longest || !llvm::all_of(elements, [](float element) { return std::isfinite(element); }))
      return failure();
    Int8Matrix narrow = quantiseColumns(elements, matrix.k(), matrix.n(), matrix.transposed);
    ColumnNorms norms(elements, narrow, matrix.k(), matrix.n(), matrix.transposed);
    auto floats = [&](const std::vector<float> &values) {
      const char *bytes = reinterpret_cast<const char *>(values.data());
      return builder.getStringAttr(store.add(RankedTensorType::get({matrix.n()}, builder.getF32Type()),
                                             std::vector<char>(bytes, bytes + values.size() * sizeof(float))));
    };
    NamedAttrList attributes;
    attributes.set("scales", floats(narrow.scales));
    attributes.set("errors", floats(norms.errors));
    attributes.set("norms", floats(norms.values));
    attributes.set("weight", builder.getStringAttr(store.add(
                                 RankedTensorType::get(matrix.type.getShape(), builder.getIntegerType(8, false)),
                                 std::move(narrow.elements))));
    return attributes.getDictionary(module.getContext());
  }

  void addNote(const WeightMatrix &matrix) {
    SmallVector<Attribute> notes;
    if (auto known = module->getAttrOfType<ArrayAttr>(stagingNotesAttrName))
      llvm::append_range(notes, known);
    const int64_t elements = matrix.k() * matrix.n(), perColumn = 3 * sizeof(float);
    notes.push_back(builder.getStringAttr("two-stage vocabulary: a greedy step of a row reads " +
                                          Twine(elements + matrix.n() * perColumn) + " bytes in place of " +
                                          Twine(elements * int64_t(sizeof(float))) +
                                          " for the logits, and the columns that these leave in doubt"));
    module->setAttr(stagingNotesAttrName, builder.getArrayAttr(notes));
  }

  ModuleOp module;
  OpBuilder builder;
};

struct ScreenPass : PassWrapper<ScreenPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ScreenPass)
  ScreenPass() = default;
  ScreenPass(const ScreenPass &other) : PassWrapper(other) {}
  explicit ScreenPass(bool enabled) { this->enabled = enabled; }
  StringRef getArgument() const override { return "transept-screen"; }
  StringRef getDescription() const override { return "A step whose logits are approximated, and few of them computed"; }

  void runOnOperation() override {
    if (enabled && failed(Screener(getOperation()).run()))
      signalPassFailure();
  }

  Option<bool> enabled{*this, "enabled", llvm::cl::desc("Make it"), llvm::cl::init(false)};
};

} // namespace

std::unique_ptr<Pass> transept::createScreenPass(bool enabled) { return std::make_unique<ScreenPass>(enabled); }
