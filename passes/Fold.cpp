//===- Fold.cpp - the fold phase -------------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Fold.h"
#include "ir/NarrowTypes.h"
#include "mlir/IR/Iterators.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace mlir;
using namespace mlir::transept;

namespace {
constexpr StringLiteral reportAttr = "transept.folding";

//===- Evaluation of constants ------------------------------------------------------------------------------------===//

bool isConstant(Operation *op) { return isa_and_nonnull<ConstantOp, WeightOp>(op); }

/// More than this is never held in memory here, whatever the budget.
constexpr int64_t maxBytes = int64_t{1} << 40;

/// At most maxBytes; empty axes count as one, so that no partial product is larger.
int64_t byteSize(Type type) {
  auto ranked = cast<RankedTensorType>(type);
  uint64_t bytes = byteWidth(ranked.getElementType());
  for (int64_t size : ranked.getShape())
    bytes = llvm::SaturatingMultiply<uint64_t>(bytes, std::max<int64_t>(size, 1));
  return std::min<uint64_t>(bytes, maxBytes);
}

HostTensor constantOf(Operation *op) {
  SmallVector<HostTensor> results(1);
  return succeeded(cast<GraphOp>(op).evaluate({}, results)) ? results[0] : HostTensor();
}

bool isPlainTranspose(TransposeOp op) { return op.getPermutation() == ArrayRef<int64_t>{1, 0}; }

/// A large matrix whose products can take it transposed as it is: folding would store it a second time.
bool staysTransposed(Operation *op, const FoldOptions &options) {
  auto transpose = dyn_cast<TransposeOp>(op);
  if (!transpose || !isPlainTranspose(transpose) || transpose->use_empty())
    return false;
  auto type = cast<RankedTensorType>(transpose.getType());
  return isa<FloatType>(type.getElementType()) && type.getNumElements() >= options.minSharedElements &&
         llvm::all_of(transpose->getUses(), acceptsTransposed);
}

bool hasSymbols(Operation *op) {
  bool found = false;
  AttrTypeWalker walker;
  walker.addWalk([&](DimAttr dim) { found |= !constantValue(dim); });
  walker.walk(op->getAttrDictionary());
  return found;
}

bool canFold(Operation *op, const FoldOptions &options) {
  if (isConstant(op) || !isa<GraphOp>(op) || !isPure(op) || op->getNumRegions() != 0 || op->getNumResults() == 0)
    return false;
  for (Type type : op->getResultTypes()) {
    auto ranked = dyn_cast<RankedTensorType>(type);
    if (!ranked || !ranked.hasStaticShape() || byteWidth(ranked.getElementType()) == 0)
      return false;
  }
  int64_t operandBytes = 0, resultBytes = 0;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    if (!isConstant(operand.getDefiningOp()))
      return false;
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || !type.hasStaticShape() || byteSize(type) == maxBytes)
      return false;
    if (!llvm::is_contained(op->getOperands().take_front(index), operand))
      operandBytes += byteSize(type);
  }
  for (Type type : op->getResultTypes()) {
    if (byteSize(type) == maxBytes)
      return false;
    resultBytes += byteSize(type);
  }
  if (resultBytes - operandBytes > options.maxGrowthBytes && !isa<CastOp, TransposeOp>(op))
    return false;
  return !staysTransposed(op, options) && !hasSymbols(op);
}

/// The constant operand's name, for the report and dumps: a cast or transposed weight is still that weight.
StringAttr weightName(Operation *op) {
  for (Value operand : op->getOperands())
    if (auto weight = operand.getDefiningOp<WeightOp>())
      return weight.getNameAttr();
  return {};
}

bool fold(Operation *op, const FoldOptions &options) {
  SmallVector<HostTensor> operands, results;
  for (Value operand : op->getOperands())
    operands.push_back(constantOf(operand.getDefiningOp()));
  if (!llvm::all_of(operands, [](const HostTensor &tensor) { return static_cast<bool>(tensor); }))
    return false;
  for (Type type : op->getResultTypes())
    results.push_back(HostTensor::make(cast<RankedTensorType>(type)));
  // What fails here fails the same way at run time, and only there it is an error: the op may never run.
  if (failed(cast<GraphOp>(op).evaluate(operands, results)))
    return false;
  OpBuilder builder(op);
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results)) {
    Value constant;
    if (value.numElements() <= options.maxWrittenElements && !isNarrow(value.elementType())) {
      constant = builder.create<ConstantOp>(op->getLoc(), result.getType(), value.toElements());
    } else {
      std::string key = WeightStore::of(op->getContext()).add(value.getType(), value.bytes());
      constant = builder.create<WeightOp>(op->getLoc(), result.getType(), builder.getStringAttr(key), weightName(op));
    }
    result.replaceAllUsesWith(constant);
  }
  op->erase();
  return true;
}

void eraseUnused(Operation *root) {
  // Users come after what they use: backwards, one sweep suffices.
  root->walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (isOpTriviallyDead(op))
      op->erase();
  });
}

//===- The pass
//-----------------------------------------------------------------------------------------------------===//

/// Adds up the weights of different content in `count` and `bytes`, and further uses in the other two.
void countWeights(Operation *root, int64_t &count, int64_t &bytes, int64_t &repeated, int64_t &repeatedBytes) {
  std::set<std::string, std::less<>> keys;
  root->walk([&](WeightOp op) {
    const bool first = keys.insert(op.getKey().str()).second;
    ++(first ? count : repeated);
    (first ? bytes : repeatedBytes) += byteSize(op.getType());
  });
}

/// The fields of the report and their names in the attribute.
constexpr std::pair<StringLiteral, int64_t FoldReport::*> fields[] = {
    {"folded_ops", &FoldReport::foldedOps},
    {"weights", &FoldReport::weights},
    {"weight_bytes", &FoldReport::weightBytes},
    {"shared_equal", &FoldReport::sharedEqual},
    {"shared_equal_bytes", &FoldReport::sharedEqualBytes},
    {"shared_transposed", &FoldReport::sharedTransposed},
    {"shared_transposed_bytes", &FoldReport::sharedTransposedBytes},
};

class FoldPass : public PassWrapper<FoldPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FoldPass)
  explicit FoldPass(const FoldOptions &options) : options(options) {}
  FoldPass(const FoldPass &other) : PassWrapper(other), options(other.options) {}
  StringRef getArgument() const override { return "transept-fold"; }
  StringRef getDescription() const override { return "What constants alone decide, and every weight once"; }

  void runOnOperation() override {
    FoldOptions effective = options;
    if (maxGrowthBytes.hasValue())
      effective.maxGrowthBytes = maxGrowthBytes;
    FoldReport report;
    foldConstants(getOperation(), effective, report);
    // Equal contents are counted before transposed ones become equal, too.
    int64_t before = 0, bytesBefore = 0, after = 0, bytesAfter = 0;
    countWeights(getOperation(), before, bytesBefore, report.sharedEqual, report.sharedEqualBytes);
    shareTransposedWeights(getOperation(), effective, report);
    countWeights(getOperation(), report.weights, report.weightBytes, after, bytesAfter);
    Builder builder(&getContext());
    SmallVector<NamedAttribute> entries;
    for (auto [name, field] : fields)
      entries.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(report.*field)));
    getOperation()->setAttr(reportAttr, builder.getDictionaryAttr(entries));
  }

private:
  FoldOptions options;
  Option<int64_t> maxGrowthBytes{*this, "max-growth-bytes",
                                 llvm::cl::desc("How many bytes a result may be larger than its constant operands")};
};
} // namespace

void transept::foldConstants(Operation *root, const FoldOptions &options, FoldReport &report) {
  ScopedDiagnosticHandler silence(root->getContext(), [](Diagnostic &) { return success(); });
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) { ops.push_back(op); });
  // In program order, operands are folded before their users.
  for (Operation *op : ops)
    if (canFold(op, options) && fold(op, options))
      ++report.foldedOps;
  eraseUnused(root);
}

std::unique_ptr<Pass> transept::createFoldPass(const FoldOptions &options) {
  return std::make_unique<FoldPass>(options);
}

FoldReport transept::foldReport(ModuleOp module) {
  FoldReport report;
  if (auto attr = module->getAttrOfType<DictionaryAttr>(reportAttr))
    for (auto [name, field] : fields)
      if (auto value = attr.getAs<IntegerAttr>(name))
        report.*field = value.getInt();
  return report;
}
