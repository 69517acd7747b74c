//===- Quantise.cpp - products with narrow weights ----------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Quantise.h"
#include "passes/FormOps.h"
#include "passes/NarrowMatrix.h"
#include "passes/NarrowWeights.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace mlir::transept;

static constexpr StringLiteral reportAttrName = "transept.quantisation";

namespace {

/// One content that products pack, in all its uses. Which way round it lies makes another packed matrix of it, not
/// another decision.
struct PackedWeight {
  SmallVector<std::pair<Operation *, WeightMatrix>> products;
  llvm::SetVector<StringRef> names; // of nodes and of the weight
  StringRef node() const { return names.empty() ? "" : names.front(); }
};

class Quantiser {
public:
  /// `globs` outlive it.
  Quantiser(ModuleOp module, StringRef precision, ArrayRef<std::string> globs)
      : module(module), precision(precision), globs(globs) {}

  LogicalResult compileGlobs();
  void collect();
  LogicalResult checkGlobs();
  void run();

private:
  bool matches(const llvm::GlobPattern &pattern, const PackedWeight &weight);
  /// Why the weight stays in f32; empty: it does not.
  std::string reasonToKeep(const PackedWeight &weight);
  void narrow(PackedWeight &weight);
  Attribute narrowed(const WeightMatrix &matrix);
  Attribute counted(DictionaryAttr origin);
  void writeReport();

  ModuleOp module;
  StringRef precision;
  ArrayRef<std::string> globs;
  std::vector<std::pair<StringRef, llvm::GlobPattern>> patterns; // refer to `globs`
  llvm::MapVector<StringAttr, PackedWeight> weights;             // by key
  QuantiseReport report;
};

LogicalResult Quantiser::compileGlobs() {
  for (const std::string &glob : globs) {
    auto pattern = llvm::GlobPattern::create(glob);
    if (!pattern)
      return module.emitError("the pattern '") << glob << "' is malformed: " << llvm::toString(pattern.takeError());
    patterns.push_back({glob, std::move(*pattern)});
  }
  return success();
}

void Quantiser::collect() {
  module.walk([&](Operation *op) {
    Value operand = packedOperand(op);
    std::optional<WeightMatrix> matrix = packedMatrix(op);
    if (!matrix)
      return;
    PackedWeight &weight = weights[StringAttr::get(op->getContext(), matrix->key)];
    weight.products.push_back({op, *matrix});
    for (StringRef node : sourceNodesOf(op->getLoc()))
      weight.names.insert(node);
    if (auto transpose = operand.getDefiningOp<TransposeOp>())
      operand = transpose.getInput();
    if (auto source = operand.getDefiningOp<WeightOp>(); source && source.getName())
      weight.names.insert(*source.getName());
  });
}

/// Names of nodes begin with that of their file; a pattern may leave it out.
bool Quantiser::matches(const llvm::GlobPattern &pattern, const PackedWeight &weight) {
  return llvm::any_of(weight.names, [&](StringRef name) {
    return pattern.match(name) || (name.contains(':') && pattern.match(name.split(':').second));
  });
}

LogicalResult Quantiser::checkGlobs() {
  for (const auto &[glob, pattern] : patterns)
    if (llvm::none_of(weights, [&, &known = pattern](const auto &entry) { return matches(known, entry.second); }))
      return module.emitError("no product with a constant matrix is named '") << glob << "'";
  return success();
}

std::string Quantiser::reasonToKeep(const PackedWeight &weight) {
  for (const auto &[glob, pattern] : patterns)
    if (matches(pattern, weight))
      return ("named by '" + glob + "'").str();
  const WeightMatrix &matrix = weight.products.front().second;
  auto content = WeightStore::of(module.getContext()).lookup(matrix.key);
  ArrayRef<float> elements(reinterpret_cast<const float *>(content.bytes.data()), content.bytes.size() / sizeof(float));
  if (!llvm::all_of(elements, [](float element) { return std::isfinite(element); }))
    return "it holds infinities or NaN";
  // Sums of 2^17 products of two numbers up to 127 fit into 32 bits.
  constexpr int64_t longest = 1 << 17;
  for (const auto &[op, product] : weight.products)
    if (precision != "bf16" && product.k() > longest)
      return "it sums over " + std::to_string(product.k()) + " products, at most " + std::to_string(longest) +
             " are exact";
  return "";
}

/// What the model itself made the weight of.
Attribute Quantiser::counted(DictionaryAttr origin) {
  for (StringRef name : {"weight", "scales"})
    report.narrowBytes +=
        WeightStore::of(module.getContext()).lookup(origin.getAs<StringAttr>(name).getValue()).bytes.size();
  return origin;
}

Attribute Quantiser::narrowed(const WeightMatrix &matrix) {
  if (DictionaryAttr origin = narrowOrigin(module, matrix.key, matrix.transposed);
      origin && precision == "int8-weights")
    return counted(origin);
  Builder builder(module.getContext());
  WeightStore &store = WeightStore::of(module.getContext());
  auto content = store.lookup(matrix.key);
  ArrayRef<float> elements(reinterpret_cast<const float *>(content.bytes.data()), content.bytes.size() / sizeof(float));
  auto add = [&](Type element, ArrayRef<int64_t> shape, std::vector<char> bytes) {
    report.narrowBytes += bytes.size();
    return builder.getStringAttr(store.add(RankedTensorType::get(shape, element), std::move(bytes)));
  };
  NamedAttrList attributes;
  if (precision == "bf16") {
    attributes.set("weight", add(builder.getBF16Type(), matrix.type.getShape(), roundToBf16(elements)));
    return attributes.getDictionary(module.getContext());
  }
  Int8Matrix quantised = quantiseColumns(elements, matrix.k(), matrix.n(), matrix.transposed);
  const char *scales = reinterpret_cast<const char *>(quantised.scales.data());
  attributes.set("weight", add(builder.getIntegerType(8, /*isSigned=*/false), matrix.type.getShape(),
                               std::move(quantised.elements)));
  attributes.set("scales", add(builder.getF32Type(), {matrix.n()},
                               std::vector<char>(scales, scales + quantised.scales.size() * sizeof(float))));
  if (precision == "int8")
    attributes.set("activations", builder.getStringAttr("int8"));
  return attributes.getDictionary(module.getContext());
}

void Quantiser::narrow(PackedWeight &weight) {
  std::map<std::pair<std::string, bool>, Attribute> known;
  for (auto &[op, matrix] : weight.products) {
    Attribute &attribute = known[{matrix.key, matrix.transposed}];
    if (!attribute)
      attribute = narrowed(matrix);
    op->setAttr(narrowAttrName, attribute);
  }
}

/// Whether something else than a product takes the weight.
static bool isReadElsewhere(Operation *product) {
  Value operand = packedOperand(product);
  if (auto transpose = operand.getDefiningOp<TransposeOp>())
    operand = transpose.getInput();
  auto weight = operand.getDefiningOp<WeightOp>();
  return weight && llvm::any_of(weight->getUses(), [](OpOperand &use) {
           Operation *user = use.getOwner();
           return isa<TransposeOp>(user) ? false : packedOperand(user) != use.get() || !packedMatrix(user);
         });
}

void Quantiser::run() {
  report.precision = precision.str();
  for (auto &[key, weight] : weights) {
    ++report.weights;
    const int64_t bytes = WeightStore::of(module.getContext()).lookup(key).bytes.size();
    if (std::string reason = reasonToKeep(weight); !reason.empty()) {
      report.kept.push_back({weight.node().str(), reason});
      continue;
    }
    ++report.narrow;
    report.bytes += bytes;
    narrow(weight);
    if (llvm::any_of(weight.products, [](const auto &product) { return isReadElsewhere(product.first); })) {
      ++report.alsoRead;
      report.alsoReadBytes += bytes;
    }
  }
  writeReport();
}

void Quantiser::writeReport() {
  Builder builder(module.getContext());
  SmallVector<Attribute> kept;
  for (const QuantiseReport::Kept &entry : report.kept)
    kept.push_back(builder.getDictionaryAttr({builder.getNamedAttr("node", builder.getStringAttr(entry.node)),
                                              builder.getNamedAttr("reason", builder.getStringAttr(entry.reason))}));
  NamedAttrList attributes;
  attributes.set("precision", builder.getStringAttr(report.precision));
  attributes.set("kept", builder.getArrayAttr(kept));
  for (auto [name, value] : {std::pair("weights", report.weights),
                             {"narrow", report.narrow},
                             {"bytes", report.bytes},
                             {"narrow_bytes", report.narrowBytes},
                             {"also_read", report.alsoRead},
                             {"also_read_bytes", report.alsoReadBytes}})
    attributes.set(name, builder.getI64IntegerAttr(value));
  module->setAttr(reportAttrName, attributes.getDictionary(module.getContext()));
}

/// In fp32, products take the integers that the model has: their floats are the same ones.
void keepNarrow(ModuleOp module) {
  module.walk([&](Operation *op) {
    if (!isa<MatMulOp, LinearOp>(op))
      return;
    if (std::optional<WeightMatrix> matrix = packedMatrix(op))
      if (DictionaryAttr origin = narrowOrigin(module, matrix->key, matrix->transposed))
        op->setAttr(narrowAttrName, origin);
  });
}

struct QuantisePass : PassWrapper<QuantisePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(QuantisePass)
  QuantisePass() = default;
  QuantisePass(const QuantisePass &other) : PassWrapper(other) {}
  explicit QuantisePass(const QuantiseOptions &options) {
    precision = options.precision;
    for (const std::string &glob : options.keepFp32)
      keepFp32.addValue(glob);
  }
  StringRef getArgument() const override { return "transept-quantise"; }
  StringRef getDescription() const override { return "Weights of products become bf16 or 8-bit integers"; }

  void runOnOperation() override {
    quantise();
    forgetNarrowOrigins(getOperation());
  }

private:
  void quantise() {
    if (precision == precisionNames[0])
      return keepNarrow(getOperation());
    if (!llvm::is_contained(precisionNames, precision)) {
      getOperation().emitError("there is no precision '") << precision << "'";
      return signalPassFailure();
    }
    const std::vector<std::string> globs(keepFp32.begin(), keepFp32.end());
    Quantiser quantiser(getOperation(), precision, globs);
    if (failed(quantiser.compileGlobs()))
      return signalPassFailure();
    quantiser.collect();
    if (failed(quantiser.checkGlobs()))
      return signalPassFailure();
    quantiser.run();
  }

  Option<std::string> precision{*this, "precision", llvm::cl::desc("fp32, bf16, int8 or int8-weights"),
                                llvm::cl::init(precisionNames[0].str())};
  ListOption<std::string> keepFp32{*this, "keep-fp32", llvm::cl::desc("Globs over products that stay as they are")};
};

} // namespace

std::unique_ptr<Pass> transept::createQuantisePass(const QuantiseOptions &options) {
  return std::make_unique<QuantisePass>(options);
}

QuantiseReport transept::quantiseReport(ModuleOp module) {
  QuantiseReport report;
  auto attributes = module->getAttrOfType<DictionaryAttr>(reportAttrName);
  if (!attributes)
    return report;
  auto number = [&](StringRef name, int64_t &value) {
    if (auto integer = attributes.getAs<IntegerAttr>(name))
      value = integer.getInt();
  };
  if (auto precision = attributes.getAs<StringAttr>("precision"))
    report.precision = precision.str();
  number("weights", report.weights);
  number("narrow", report.narrow);
  number("bytes", report.bytes);
  number("narrow_bytes", report.narrowBytes);
  number("also_read", report.alsoRead);
  number("also_read_bytes", report.alsoReadBytes);
  if (auto kept = attributes.getAs<ArrayAttr>("kept"))
    for (auto entry : kept.getAsRange<DictionaryAttr>())
      if (auto node = entry.getAs<StringAttr>("node"), reason = entry.getAs<StringAttr>("reason"); node && reason)
        report.kept.push_back({node.str(), reason.str()});
  return report;
}
