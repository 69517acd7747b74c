//===- NarrowWeights.cpp - weights that a model holds as integers and scales --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/NarrowWeights.h"
#include "ir/HostTensor.h"
#include "ir/Transept.h"
#include "ir/WeightStore.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::transept;

static constexpr StringLiteral originsAttrName = "transept.narrow_weights";

namespace {

/// Smaller ones are not worth a kernel of their own.
constexpr int64_t minElements = 1024;
/// What kernels take apart at once.
constexpr int64_t group = 4;
/// Evaluates what only constants decide. Bytes may be unpacked; nothing becomes much larger than the constants are.
class Evaluator {
public:
  /// Null where that is not the case.
  HostTensor value(Value value) {
    collect(value);
    return evaluate(value);
  }

  /// Of the largest constant: what is made of a weight is still that weight.
  StringAttr name() const { return largestName; }

private:
  static constexpr uint64_t maxUnpacked = 8;

  static bool isLeaf(Operation *op) { return isa<ConstantOp, WeightOp>(op); }
  static uint64_t elementCount(Type type) {
    uint64_t count = 1;
    for (int64_t size : cast<ShapedType>(type).getShape())
      count = llvm::SaturatingMultiply<uint64_t>(count, static_cast<uint64_t>(size));
    return count;
  }

  /// Finds the largest constant, and what is no constant.
  void collect(Value root) {
    SmallVector<Value> pending = {root};
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      if (!known.try_emplace(value).second)
        continue;
      auto type = dyn_cast<RankedTensorType>(value.getType());
      Operation *op = value.getDefiningOp();
      if (!op || !type || !type.hasStaticShape() || byteWidth(type.getElementType()) == 0 || !isa<GraphOp>(op) ||
          !isPure(op) || op->getNumRegions() != 0 || op->getNumResults() != 1) {
        varies = true;
        return;
      }
      order.push_back(value);
      if (isLeaf(op) && elementCount(type) > largest) {
        largest = elementCount(type);
        if (auto weight = dyn_cast<WeightOp>(op))
          largestName = weight.getNameAttr();
      }
      llvm::append_range(pending, op->getOperands());
    }
  }

  HostTensor evaluate(Value root) {
    if (varies)
      return {};
    // Operands come before their users in a block.
    llvm::sort(order, [](Value a, Value b) {
      Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
      return first->getBlock() == second->getBlock() ? first->isBeforeInBlock(second)
                                                     : first->getBlock()->getParentOp()->isAncestor(second);
    });
    for (Value value : order) {
      HostTensor &result = known[value];
      if (result)
        continue;
      Operation *op = value.getDefiningOp();
      if (elementCount(value.getType()) / maxUnpacked > largest)
        return {};
      SmallVector<HostTensor> operands, results(1);
      for (Value operand : op->getOperands())
        operands.push_back(known.lookup(operand));
      if (!isLeaf(op))
        results[0] = HostTensor::make(cast<RankedTensorType>(value.getType()));
      if (!llvm::all_of(operands, [](const HostTensor &tensor) { return static_cast<bool>(tensor); }) ||
          failed(cast<GraphOp>(op).evaluate(operands, results)))
        return {};
      result = results[0];
    }
    return known.lookup(root);
  }

  DenseMap<Value, HostTensor> known;
  SmallVector<Value> order;
  uint64_t largest = 0;
  StringAttr largestName;
  bool varies = false;
};

/// An element of a matrix, or of what broadcasts to it.
float elementAt(const HostTensor &tensor, int64_t row, int64_t column) {
  ArrayRef<int64_t> shape = tensor.shape();
  auto sizeOf = [&](size_t fromEnd) { return shape.size() >= fromEnd ? shape[shape.size() - fromEnd] : 1; };
  int64_t rows = sizeOf(2), columns = sizeOf(1);
  return tensor.data<float>()[(rows == 1 ? 0 : row) * columns + (columns == 1 ? 0 : column)];
}

/// integers [K, N] (stored [N, K] where `transposed`) times scales.
struct Origin {
  HostTensor integers, scales;
  bool transposed;

  RankedTensorType type() const { return integers.getType(); }
  int64_t k() const { return type().getDimSize(transposed ? 1 : 0); }
  int64_t n() const { return type().getDimSize(transposed ? 0 : 1); }
  float scale(int64_t row, int64_t column) const {
    return transposed ? elementAt(scales, column, row) : elementAt(scales, row, column);
  }
  bool isByte() const;
  /// Rows that have the same scales are the multiples of this; 0 where kernels do not take such blocks.
  int64_t block() const;
};

bool Origin::isByte() const {
  ArrayRef<float> elements(integers.data<float>(), type().getNumElements());
  return llvm::all_of(
      elements, [](float x) { return x >= -128 && x <= 127 && x == std::trunc(x) && !(x == 0 && std::signbit(x)); });
}

int64_t Origin::block() const {
  int64_t common = 0;
  for (int64_t row = 1; row < k(); ++row)
    for (int64_t column = 0; column < n(); ++column)
      if (float now = scale(row, column), before = scale(row - 1, column); !(now == before)) {
        common = std::gcd(common, row);
        break;
      }
  if (common % group != 0)
    return 0;
  return common ? common : (k() + group - 1) / group * group;
}

/// What multiplies with the result of `product`, and whether it takes it transposed; nullopt where that differs.
std::optional<bool> multipliesTransposed(MulOp product) {
  std::optional<bool> transposed;
  for (OpOperand &use : product->getUses()) {
    auto transpose = dyn_cast<TransposeOp>(use.getOwner());
    bool isPlain = transpose && transpose.getPermutation() == ArrayRef<int64_t>{1, 0};
    auto isFactor = [](OpOperand &operand) {
      return isa<MatMulOp>(operand.getOwner()) && operand.getOperandNumber() == 1;
    };
    bool multiplies = isPlain ? llvm::all_of(transpose->getUses(), isFactor) : isFactor(use);
    if (!multiplies || (transposed && *transposed != isPlain))
      return std::nullopt;
    transposed = isPlain;
  }
  return transposed;
}

class Finder {
public:
  explicit Finder(ModuleOp module) : module(module), store(WeightStore::of(module.getContext())) {}

  void run() {
    if (auto known = module->getAttrOfType<DictionaryAttr>(originsAttrName))
      origins = NamedAttrList(known);
    SmallVector<MulOp> products;
    module.walk([&](MulOp product) { products.push_back(product); });
    for (MulOp product : products)
      find(product);
    if (!origins.empty())
      module->setAttr(originsAttrName, origins.getDictionary(module.getContext()));
  }

private:
  void find(MulOp product) {
    auto type = dyn_cast<RankedTensorType>(product.getType());
    if (!type || !type.hasStaticShape() || type.getRank() != 2 || !type.getElementType().isF32() ||
        type.getNumElements() < minElements || product.getLhs().getType() != type)
      return;
    std::optional<bool> transposed = multipliesTransposed(product);
    if (!transposed)
      return;
    Evaluator evaluator;
    Origin origin{evaluator.value(product.getLhs()), HostTensor(), *transposed};
    if (!origin.integers || !(origin.scales = evaluator.value(product.getRhs())))
      return;
    if (int64_t block = origin.isByte() ? origin.block() : 0)
      return replace(product, origin, block, evaluator.name());
    // Folding would leave what grows much: products want constants.
    if (HostTensor floats = evaluator.value(product.getResult()))
      replaceBy(product, store.add(floats.getType(), floats.bytes()), evaluator.name());
  }

  void replaceBy(MulOp product, StringRef key, StringAttr name) {
    OpBuilder builder(product);
    auto weight = builder.create<WeightOp>(product.getLoc(), product.getType(), builder.getStringAttr(key), name);
    product.replaceAllUsesWith(weight.getResult());
    product.erase();
  }

  void replace(MulOp product, const Origin &origin, int64_t block, StringAttr name) {
    const int64_t k = origin.k(), n = origin.n(), blocks = (k + block - 1) / block;
    MLIRContext *context = module.getContext();
    Builder attributes(context);
    HostTensor floats = HostTensor::make(origin.type());
    HostTensor bytes = HostTensor::make(
        RankedTensorType::get(origin.type().getShape(), IntegerType::get(context, 8, IntegerType::Unsigned)));
    HostTensor scales = HostTensor::make(
        RankedTensorType::get(origin.transposed ? ArrayRef{n, blocks} : ArrayRef{blocks, n}, attributes.getF32Type()));
    for (int64_t row = 0; row < k; ++row)
      for (int64_t column = 0; column < n; ++column) {
        int64_t at = origin.transposed ? column * k + row : row * n + column;
        float integer = origin.integers.data<float>()[at], scale = origin.scale(row, column);
        floats.data<float>()[at] = integer * scale;
        bytes.data<uint8_t>()[at] = static_cast<uint8_t>(static_cast<int>(integer) + 128);
        int64_t place = row / block;
        scales.data<float>()[origin.transposed ? column * blocks + place : place * n + column] = scale;
      }
    auto add = [&](const HostTensor &tensor) {
      return attributes.getStringAttr(store.add(tensor.getType(), tensor.bytes()));
    };
    StringAttr key = add(floats);
    origins.set(key, attributes.getDictionaryAttr(
                         {attributes.getNamedAttr("block", attributes.getI64IntegerAttr(block)),
                          attributes.getNamedAttr("scales", add(scales)), attributes.getNamedAttr("weight", add(bytes)),
                          attributes.getNamedAttr("transposed", attributes.getBoolAttr(origin.transposed))}));
    replaceBy(product, key.getValue(), name);
  }

  ModuleOp module;
  WeightStore &store;
  NamedAttrList origins; // by key of the floats
};

class NarrowWeightsPass : public PassWrapper<NarrowWeightsPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NarrowWeightsPass)
  StringRef getArgument() const override { return "transept-narrow-weights"; }
  StringRef getDescription() const override { return "Weights that are integers times scales stay known as such"; }
  void runOnOperation() override {
    ScopedDiagnosticHandler silence(&getContext(), [](Diagnostic &) { return success(); });
    Finder(getOperation()).run();
  }
};

} // namespace

std::unique_ptr<Pass> transept::createNarrowWeightsPass() { return std::make_unique<NarrowWeightsPass>(); }

DictionaryAttr transept::narrowOrigin(ModuleOp module, StringRef key, bool transposed) {
  auto origins = module->getAttrOfType<DictionaryAttr>(originsAttrName);
  auto origin = origins ? origins.getAs<DictionaryAttr>(key) : DictionaryAttr();
  auto stored = origin ? origin.getAs<BoolAttr>("transposed") : BoolAttr();
  if (!stored || stored.getValue() != transposed)
    return {};
  NamedAttrList kept(origin);
  kept.erase("transposed");
  return kept.getDictionary(module.getContext());
}

void transept::forgetNarrowOrigins(ModuleOp module) { module->removeAttr(originsAttrName); }
