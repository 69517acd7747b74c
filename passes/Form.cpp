//===- Form.cpp - graph ops become kernels
//-----------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Form.h"
#include "ir/Guard.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/FormFusion.h"
#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

SmallVector<DimAttr> transept::graphDims(Value value) { return dimsOf(cast<RankedTensorType>(value.getType())); }

Type transept::graphElementType(Value value) { return cast<TensorType>(value.getType()).getElementType(); }

LogicalResult transept::emitUnresolved(Operation *op) {
  return emitUnsupported(op) << "has a result whose shape only its data says";
}

LogicalResult transept::formOp(FormContext &f, Operation *op) {
  for (Value value : llvm::concat<Value>(SmallVector<Value>(op->getOperands()), SmallVector<Value>(op->getResults()))) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || llvm::is_contained(dimsOf(type), DimAttr()))
      return emitUnsupported(op) << "has an operand or result of unknown shape, " << value.getType();
    if (byteWidth(type.getElementType()) == 0)
      return emitUnsupported(op) << "has elements of type " << type.getElementType();
  }
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<ConstantOp, WeightOp, FillOp, RangeOp, DimValueOp, LinearOp, MatMulOp, MatMulIntegerOp, ConvOp, DetOp,
            ReduceOp, ArgMaxOp, CumSumOp, TopKOp, RecurrentOp, SoftmaxOp, LayerNormOp, ReshapeOp, TransposeOp,
            BroadcastOp, TileOp, SliceOp, ConcatOp, PadOp, TriluOp, WindowsOp, GatherOp, GatherElementsOp, GatherNDOp,
            ScatterElementsOp, ScatterNDOp, AttentionOp, StateOp, ExportOp, CacheAppendOp, CacheAttentionOp,
            CrossAttentionOp, SearchHeadOp, ReadSizesOp, IfOp, LoopOp>([&](auto typed) { return form(f, typed); })
      .Default([&](Operation *other) -> LogicalResult {
        if (other->hasTrait<transept::Elementwise>())
          return formElementwise(f, other);
        return emitUnsupported(other) << "has no kernel";
      });
}

//===- Entries
//------------------------------------------------------------------------------------------------------------===//

/// The name a value has in the model, from an argument or result attribute.
static StringRef nameOf(DictionaryAttr attributes) {
  auto name = attributes ? attributes.getAs<StringAttr>("transept.name") : StringAttr();
  return name ? name.getValue() : "";
}

static FailureOr<DimsAttr> dimsOfInterface(func::FuncOp function, Type type, StringRef name) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked || llvm::is_contained(dimsOf(ranked), DimAttr()))
    return emitError(function.getLoc()) << "'" << name << "' of entry '" << function.getName()
                                        << "' has no known shape: " << type;
  return DimsAttr::get(type.getContext(), dimsOf(ranked));
}

static FailureOr<kernel::EntryOp> makeEntry(func::FuncOp function) {
  OpBuilder builder(function);
  SmallVector<StringRef> inputNames, outputNames;
  SmallVector<Attribute> inputShapes, outputShapes, defaults;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    inputNames.push_back(nameOf(function.getArgAttrDict(i)));
    FailureOr<DimsAttr> dims = dimsOfInterface(function, function.getArgument(i).getType(), inputNames.back());
    if (failed(dims))
      return failure();
    inputShapes.push_back(*dims);
    Attribute value = function.getArgAttr(i, "transept.default");
    defaults.push_back(value ? value : builder.getUnitAttr());
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    outputNames.push_back(nameOf(function.getResultAttrDict(i)));
    FailureOr<DimsAttr> dims = dimsOfInterface(function, function.getResultTypes()[i], outputNames.back());
    if (failed(dims))
      return failure();
    outputShapes.push_back(*dims);
  }
  auto guards = function->getAttrOfType<ArrayAttr>(guardsAttrName);
  auto entry = builder.create<kernel::EntryOp>(
      function.getLoc(), function.getName(), builder.getStrArrayAttr(inputNames), builder.getArrayAttr(inputShapes),
      builder.getArrayAttr(defaults), builder.getStrArrayAttr(outputNames), builder.getArrayAttr(outputShapes),
      guards ? guards : builder.getArrayAttr({}));
  Block &block = entry.getBody().emplaceBlock();
  for (auto [argument, shape] : llvm::zip(function.getArguments(), inputShapes))
    block.addArgument(plainType(cast<DimsAttr>(shape).getDims(), graphElementType(argument)), argument.getLoc());
  return entry;
}

static LogicalResult formEntry(func::FuncOp function, const CacheLayout &cache) {
  FailureOr<kernel::EntryOp> entry = makeEntry(function);
  if (failed(entry))
    return failure();
  FormContext f(*entry, cache);
  for (auto [graph, tensor] : llvm::zip(function.getArguments(), entry->getBody().getArguments()))
    f.define(graph, tensor);
  for (Operation &op : function.getBody().front().without_terminator())
    if (failed(formOp(f, &op)))
      return failure();
  SmallVector<Value> results;
  for (Value result : function.getBody().front().getTerminator()->getOperands())
    results.push_back(f.tensor(result));
  f.builder.create<kernel::ReturnOp>(function.getLoc(), results);
  function.erase();
  fuseEntry(*entry);
  return success();
}

namespace {

struct FormPass : PassWrapper<FormPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FormPass)
  StringRef getArgument() const override { return "transept-form"; }
  StringRef getDescription() const override { return "Graph ops become kernels, fused and grouped"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<kernel::KernelDialect, TranseptDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect>();
  }

  void runOnOperation() override {
    FailureOr<CacheLayout> cache = CacheLayout::of(getOperation());
    if (failed(cache))
      return signalPassFailure();
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (failed(formEntry(function, *cache)))
        return signalPassFailure();
    readFromPanels(getOperation());
    for (auto entry : getOperation().getOps<kernel::EntryOp>())
      simplifyBodies(entry);
  }
};

} // namespace

std::unique_ptr<Pass> transept::createFormPass() { return std::make_unique<FormPass>(); }
