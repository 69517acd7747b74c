//===- PackManifest.cpp - programs as the runtime's messages
//---------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/Pack.h"
#include "codegen/PickedInputs.h"
#include "ir/Guard.h"
#include "ir/HostTensor.h"
#include "ir/NarrowTypes.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kernel;
using mlir::transept::byteWidth;
using mlir::transept::DimAttr;
using mlir::transept::dimConstant;
using mlir::transept::DimKind;
using mlir::transept::dimSymbol;
using mlir::transept::ExitInternal;
using mlir::transept::Failure;
using mlir::transept::GuardRelation;
using mlir::transept::HostTensor;
using mlir::transept::narrowFormat;
using mlir::transept::NarrowFormat;
using mlir::transept::Outcome;
namespace program = ::transept::program;

//===- Expressions and types
//-------------------------------------------------------------------------------------------===//

static void appendTerm(program::Expr &expr, program::Expr::Op op, int64_t value = 0) {
  program::Expr::Term *term = expr.add_terms();
  term->set_op(op);
  term->set_value(value);
}

static void appendExpr(program::Expr &expr, DimAttr dim, ArrayRef<StringRef> symbols) {
  /// The operands, combined from the left.
  auto fold = [&](program::Expr::Op op) {
    for (auto [i, operand] : llvm::enumerate(dim.getOperands())) {
      appendExpr(expr, cast<DimAttr>(operand), symbols);
      if (i)
        appendTerm(expr, op);
    }
  };
  switch (static_cast<DimKind>(dim.getKind())) {
  case DimKind::Constant:
    return appendTerm(expr, program::Expr::CONST, dim.getValue());
  case DimKind::Symbol:
    return appendTerm(expr, program::Expr::SYMBOL, llvm::find(symbols, dim.getName()) - symbols.begin());
  case DimKind::Sum:
    return fold(program::Expr::ADD);
  case DimKind::Product:
    fold(program::Expr::MUL);
    if (dim.getValue() != 1) {
      appendTerm(expr, program::Expr::CONST, dim.getValue());
      appendTerm(expr, program::Expr::MUL);
    }
    return;
  case DimKind::FloorDiv:
    return fold(program::Expr::FLOORDIV);
  case DimKind::Mod:
    return fold(program::Expr::MOD);
  case DimKind::Min:
    return fold(program::Expr::MIN);
  case DimKind::Max:
    return fold(program::Expr::MAX);
  }
}

program::Expr kernel::makeExpr(DimAttr dim, ArrayRef<StringRef> symbols) {
  program::Expr expr;
  appendExpr(expr, dim, symbols);
  return expr;
}

/// DTYPE_NONE for types of whole bytes.
static program::DType narrowDtypeOf(Type type) {
  return llvm::TypeSwitch<Type, program::DType>(type)
      .Case([](Float8E4M3FNType) { return program::F8E4M3FN; })
      .Case([](Float8E4M3FNUZType) { return program::F8E4M3FNUZ; })
      .Case([](Float8E5M2Type) { return program::F8E5M2; })
      .Case([](Float8E5M2FNUZType) { return program::F8E5M2FNUZ; })
      .Case([](IntegerType integer) {
        if (integer.getWidth() == 4)
          return integer.isUnsigned() ? program::U4 : program::I4;
        if (integer.getWidth() == 2)
          return integer.isUnsigned() ? program::U2 : program::I2;
        return program::DTYPE_NONE;
      })
      .Default([](Type other) {
        std::optional<NarrowFormat> format = narrowFormat(other);
        return !format ? program::DTYPE_NONE : format->isScale ? program::F8E8M0 : program::F4E2M1;
      });
}

static program::DType dtypeOf(Type type) {
  if (type.isF32())
    return program::F32;
  if (type.isF64())
    return program::F64;
  if (type.isF16())
    return program::F16;
  if (type.isBF16())
    return program::BF16;
  if (type.isInteger(1))
    return program::BOOL;
  bool isUnsigned = type.isUnsignedInteger();
  if (program::DType narrow = narrowDtypeOf(type); narrow != program::DTYPE_NONE)
    return narrow;
  switch (type.getIntOrFloatBitWidth()) {
  case 8:
    return isUnsigned ? program::U8 : program::I8;
  case 16:
    return isUnsigned ? program::U16 : program::I16;
  case 32:
    return isUnsigned ? program::U32 : program::I32;
  default:
    return isUnsigned ? program::U64 : program::I64;
  }
}

static program::Storage storageOf(StringRef name) {
  return llvm::StringSwitch<program::Storage>(name)
      .Case("input", program::INPUT)
      .Case("output", program::OUTPUT)
      .Case("arena", program::ARENA)
      .Case("constant", program::CONSTANT)
      .Case("state", program::STATE)
      .Default(program::STORAGE_NONE);
}

static SmallVector<StringRef> stringsOf(ArrayAttr array) {
  SmallVector<StringRef> strings;
  for (Attribute element : array)
    strings.push_back(cast<StringAttr>(element).getValue());
  return strings;
}

static StringRef text(DictionaryAttr dictionary, StringRef name) {
  auto value = dictionary ? dictionary.getAs<StringAttr>(name) : StringAttr();
  return value ? value.getValue() : StringRef();
}
static int64_t number(DictionaryAttr dictionary, StringRef name) {
  auto value = dictionary ? dictionary.getAs<IntegerAttr>(name) : IntegerAttr();
  return value ? value.getInt() : 0;
}
static bool flag(DictionaryAttr dictionary, StringRef name) {
  auto value = dictionary ? dictionary.getAs<BoolAttr>(name) : BoolAttr();
  return value && value.getValue();
}

//===- The manifest
//-------------------------------------------------------------------------------------------------------===//

namespace {

class ManifestBuilder {
public:
  ManifestBuilder(ModuleOp module, const PackedWeights &weights, const ManifestInputs &inputs)
      : module(module), weights(weights), inputs(inputs),
        generation(module->getAttrOfType<DictionaryAttr>("transept.generation")),
        exported(module->getAttrOfType<DictionaryAttr>("transept.export")) {}

  Outcome<program::Manifest> run();

private:
  void addKernels();
  void addStates();
  void addEntry(ProgramOp op);
  void addBuffer(program::Entry &entry, BufferOp op, ArrayRef<StringRef> symbols);
  void addSegment(program::Entry &entry, SegmentOp op, ArrayRef<StringRef> symbols);
  void addDispatch(program::Entry &entry, DispatchOp op, ArrayRef<StringRef> symbols);
  void addGuard(program::Entry &entry, DictionaryAttr guard, ArrayRef<StringRef> symbols);
  void addGeneration();
  void addShaders(program::CodeObject &object, ArrayRef<VulkanCode::Shader> shaders);
  void addDescription();
  void setSymbol(program::Symbol &symbol, StringRef name);
  /// Every symbol of `dim` is one of `symbols`.
  bool accept(DimAttr dim, ArrayRef<StringRef> symbols, const Twine &owner);
  void fail(const Twine &what) {
    if (!failure)
      failure = Failure{ExitInternal, ("internal error: phase pack: " + what).str(), {}};
  }
  program::Expr expr(DimAttr dim, ArrayRef<StringRef> symbols, const Twine &owner) {
    return dim && accept(dim, symbols, owner) ? makeExpr(dim, symbols) : program::Expr();
  }

  ModuleOp module;
  const PackedWeights &weights;
  const ManifestInputs &inputs;
  DictionaryAttr generation, exported;
  program::Manifest manifest;
  llvm::StringMap<std::pair<unsigned, FuncOp>> kernels;
  DenseMap<Value, uint32_t> buffers;
  std::optional<Failure> failure;
};

bool ManifestBuilder::accept(DimAttr dim, ArrayRef<StringRef> symbols, const Twine &owner) {
  SmallVector<StringRef> used;
  collectSymbols(dim, used);
  for (StringRef symbol : used)
    if (!llvm::is_contained(symbols, symbol)) {
      fail(owner + " depends on '" + symbol + "', which is none of its symbols");
      return false;
    }
  return true;
}

void ManifestBuilder::setSymbol(program::Symbol &symbol, StringRef name) {
  symbol.set_name(name.str());
  if (!generation)
    return;
  symbol.set_min(1);
  if (name == "source")
    symbol.set_max(number(generation, "source_limit"));
  if (name == "target" || name == "prompt")
    symbol.set_max(number(generation, "position_limit"));
}

void ManifestBuilder::addKernels() {
  for (auto function : module.getOps<FuncOp>()) {
    kernels[function.getSymName()] = {manifest.kernels_size(), function};
    program::Kernel *kernel = manifest.add_kernels();
    kernel->set_name(function.getSymName().str());
    kernel->set_source(function.getSourceNodes().str());
    SmallVector<StringRef> symbols = stringsOf(function.getSymbols());
    if (DimAttr scratch = function.getScratchAttr())
      *kernel->mutable_scratch_bytes() = expr(scratch, symbols, "scratch of kernel " + function.getSymName());
    for (unsigned input : pickedInputs(function))
      kernel->add_picked(input);
    if (!function.getItemsAttr())
      fail("kernel " + function.getSymName() + " was not scheduled");
  }
}

void ManifestBuilder::addStates() {
  llvm::SetVector<StringRef> symbols;
  SmallVector<BufferOp> states;
  llvm::StringMap<BufferOp> known;
  module.walk([&](BufferOp buffer) {
    if (buffer.getStorage() != "state")
      return;
    auto [entry, isNew] = known.try_emplace(buffer.getName(), buffer);
    if (!isNew) {
      if (entry->second.getShape() != buffer.getShape() || entry->second.getType() != buffer.getType())
        fail("state '" + buffer.getName() + "' has two shapes or element types");
      return;
    }
    states.push_back(buffer);
    SmallVector<StringRef> used;
    for (DimAttr dim : buffer.getShape().getDims())
      collectSymbols(dim, used);
    symbols.insert(used.begin(), used.end());
  });
  for (StringRef symbol : symbols)
    setSymbol(*manifest.add_generation_symbols(), symbol);
  for (BufferOp buffer : states) {
    program::State *state = manifest.add_states();
    state->set_name(buffer.getName().str());
    state->set_dtype(dtypeOf(buffer.getType().getElementType()));
    state->set_role(buffer.getRole().value_or("").str());
    for (DimAttr dim : buffer.getShape().getDims())
      *state->add_dims() = expr(dim, symbols.getArrayRef(), "state '" + buffer.getName() + "'");
  }
}

void ManifestBuilder::addBuffer(program::Entry &entry, BufferOp op, ArrayRef<StringRef> symbols) {
  MLIRContext *context = module.getContext();
  std::string owner = ("buffer '" + op.getName() + "' of entry '" + entry.name() + "'").str();
  buffers[op] = entry.buffers_size();
  program::Buffer *buffer = entry.add_buffers();
  buffer->set_name(op.getName().str());
  buffer->set_storage(storageOf(op.getStorage()));
  Type type = op.getType().getElementType();
  buffer->set_dtype(dtypeOf(type));
  for (DimAttr dim : op.getShape().getDims())
    *buffer->add_dims() = expr(dim, symbols, owner);
  DimAttr bytes = dimMul(dimProduct(context, op.getShape().getDims()), dimConstant(context, byteWidth(type)));
  if (op.getStorage() == "constant") {
    *buffer->mutable_offset() = makeExpr(dimConstant(context, weights.offsetOf(op)), {});
    bytes = dimConstant(context, weights.bytesOf(op));
  }
  if (op.getStorage() == "arena")
    *buffer->mutable_offset() = expr(op.getOffsetAttr(), symbols, owner);
  *buffer->mutable_bytes() = expr(bytes, symbols, owner);
  buffer->set_arena(op.getArena().value_or(0));
  if (std::optional<ElementsAttr> value = op.getDefaultValue()) {
    HostTensor tensor = HostTensor::fromElements(*value);
    if (!tensor)
      return fail(owner + " has a default that cannot be read");
    buffer->set_has_default(true);
    buffer->set_default_value(std::string(tensor.bytes().begin(), tensor.bytes().end()));
  }
}

void ManifestBuilder::addSegment(program::Entry &entry, SegmentOp op, ArrayRef<StringRef> symbols) {
  std::string owner = "a segment of entry '" + entry.name() + "'";
  program::Segment *segment = entry.add_segments();
  segment->set_arena(op.getArena());
  *segment->mutable_arena_bytes() = expr(op.getArenaBytesAttr(), symbols, owner);
  if (ArrayAttr sets = op.getSetsAttr())
    for (auto [symbol, value] : llvm::zip(stringsOf(sets), op.getSetValuesAttr())) {
      program::Assignment *assignment = segment->add_assignments();
      assignment->set_symbol(llvm::find(symbols, symbol) - symbols.begin());
      *assignment->mutable_value() = expr(cast<DimAttr>(value), symbols, owner);
    }
  uint32_t dispatches = 0;
  for (Operation &inner : op.getBody().front()) {
    if (auto dispatch = dyn_cast<DispatchOp>(inner)) {
      addDispatch(entry, dispatch, symbols);
      ++dispatches;
    } else if (auto read = dyn_cast<ReadBackOp>(inner)) {
      program::ReadBack *back = segment->add_read_backs();
      back->set_buffer(buffers.lookup(read.getBuffer()));
      for (StringRef symbol : stringsOf(read.getSymbols()))
        back->add_symbols(llvm::find(symbols, symbol) - symbols.begin());
      back->set_source(read.getSourceNodes().str());
    }
  }
  segment->set_dispatches(dispatches);
  segment->set_next(op.getNext());
  if (Value condition = op.getCondition()) {
    segment->set_branches(true);
    segment->set_condition(buffers.lookup(condition));
    segment->set_otherwise(op.getOtherwise().value_or(0));
  }
}

void ManifestBuilder::addDispatch(program::Entry &entry, DispatchOp op, ArrayRef<StringRef> symbols) {
  auto found = kernels.find(op.getCallee());
  if (found == kernels.end())
    return fail("entry '" + entry.name() + "' calls '" + op.getCallee() + "', which does not exist");
  auto [index, callee] = found->second;
  program::Dispatch *dispatch = entry.add_dispatches();
  dispatch->set_kernel(index);
  dispatch->set_barrier(op.getBarrier());
  *dispatch->mutable_items() = expr(callee.getItemsAttr(), symbols, "items of kernel " + callee.getSymName());
  for (Value buffer : op.getBuffers())
    dispatch->add_buffers(buffers.lookup(buffer));
  for (StringRef symbol : stringsOf(callee.getSymbols()))
    *dispatch->add_sizes() =
        expr(dimSymbol(module.getContext(), symbol), symbols, "a size of kernel " + callee.getSymName());
}

static program::Guard::Relation relationOf(GuardRelation relation) {
  switch (relation) {
  case GuardRelation::Equal:
    return program::Guard::EQ;
  case GuardRelation::LessOrEqual:
    return program::Guard::LE;
  case GuardRelation::GreaterOrEqual:
    return program::Guard::GE;
  case GuardRelation::NotEqual:
    return program::Guard::NE;
  }
  llvm_unreachable("a relation that is none");
}

void ManifestBuilder::addGuard(program::Entry &entry, DictionaryAttr guard, ArrayRef<StringRef> symbols) {
  std::string owner = "a guard of entry '" + entry.name() + "'";
  std::optional<mlir::transept::Guard> parsed = mlir::transept::parseGuard(guard);
  if (!parsed)
    return fail(owner + " is malformed");
  program::Guard *message = entry.add_guards();
  *message->mutable_left() = expr(parsed->lhs, symbols, owner);
  *message->mutable_right() = expr(parsed->rhs, symbols, owner);
  message->set_message(parsed->message);
  message->set_segment(number(guard, "segment"));
  message->set_relation(relationOf(parsed->relation));
}

void ManifestBuilder::addEntry(ProgramOp op) {
  program::Entry *entry = manifest.add_entries();
  entry->set_name(op.getSymName().str());
  SmallVector<StringRef> symbols = stringsOf(op.getSymbols());
  for (StringRef symbol : symbols)
    setSymbol(*entry->add_symbols(), symbol);
  if (ArrayAttr runTime = op.getRunTimeSymbolsAttr())
    for (StringRef symbol : stringsOf(runTime)) {
      program::Symbol *message = entry->add_symbols();
      message->set_name(symbol.str());
      message->set_at_run_time(true);
      symbols.push_back(symbol);
    }
  for (Operation &inner : op.getBody().front()) {
    if (auto buffer = dyn_cast<BufferOp>(inner))
      addBuffer(*entry, buffer, symbols);
    else if (auto segment = dyn_cast<SegmentOp>(inner))
      addSegment(*entry, segment, symbols);
  }
  for (Attribute guard : op.getGuards())
    addGuard(*entry, cast<DictionaryAttr>(guard), symbols);
}

void ManifestBuilder::addGeneration() {
  program::Generation *message = manifest.mutable_generation();
  message->set_kind(text(generation, "kind").str());
  message->set_encode(text(generation, "encode").str());
  message->set_step(text(generation, "step").str());
  message->set_score(text(generation, "score").str());
  message->set_strategy(text(generation, "strategy").str());
  message->set_encoder_input(text(generation, "encoder_input").str());
  message->set_encoder_mask(text(generation, "encoder_mask").str());
  message->set_encoder_lengths(text(generation, "encoder_lengths").str());
  message->set_prefill(text(generation, "prefill").str());
  message->set_advance(text(generation, "advance").str());
  message->set_advance_beams(text(generation, "advance_beams").str());
  message->set_step_greedy(text(generation, "step_greedy").str());
  message->set_step_alignments(text(generation, "step_alignments").str());
  message->set_encoder_mask_marks_padding(flag(generation, "mask_marks_padding"));
  message->set_encoder_pad_id(number(generation, "pad_id"));
  message->set_equal_lengths(flag(generation, "equal_lengths"));
  message->set_vocabulary(number(generation, "vocabulary"));
  message->set_position_limit(number(generation, "position_limit"));
  message->set_source_limit(number(generation, "source_limit"));
  message->set_layers(number(generation, "layers"));
  message->set_settings_json(text(exported, "settings").str());
  if (auto refused = exported ? exported.getAs<ArrayAttr>("refused") : ArrayAttr())
    for (StringRef setting : stringsOf(refused))
      message->add_refused_settings(setting.str());
}

void ManifestBuilder::addShaders(program::CodeObject &object, ArrayRef<VulkanCode::Shader> shaders) {
  auto functions = module.getOps<FuncOp>();
  if (static_cast<size_t>(llvm::range_size(functions)) != shaders.size())
    return fail("there are not as many shaders as kernels");
  for (auto [function, variants] : llvm::zip(functions, shaders)) {
    std::string owner = ("the shader of kernel " + function.getSymName()).str();
    std::optional<ShaderWork> work = ShaderWork::fromAttribute(function->getAttr(shaderAttrName));
    if (!work)
      return fail(owner + " was not scheduled");
    program::Shader *shader = object.add_shaders();
    for (const VulkanCode::Variant &of : variants) {
      program::Shader::Variant *variant = shader->add_variants();
      variant->set_offset(of.offset);
      variant->set_bytes(of.bytes);
      for (const std::string &feature : of.features)
        variant->add_features(feature);
      variant->set_shared_bytes(of.sharedBytes);
      variant->set_shared_bytes_per_invocation(of.sharedBytesPerInvocation);
      if (!llvm::is_contained(of.features, matrixFeature))
        continue;
      if (!work->tiles)
        return fail(owner + " has no tiles");
      program::Shader::Tile *tile = variant->mutable_tile();
      tile->set_rows(matrixTileRows);
      tile->set_columns(panelColumns);
      tile->set_depth(matrixTileDepth);
      tile->set_matrices(matricesPerSubgroup);
      *tile->mutable_items() = expr(work->tiles, stringsOf(function.getSymbols()), owner);
    }
    shader->set_group_size(work->groupSize);
    shader->set_group_step(work->groupStep);
    shader->set_items_per_group(work->perGroup);
    *shader->mutable_items() = expr(work->items, stringsOf(function.getSymbols()), owner);
  }
}

void ManifestBuilder::addDescription() {
  manifest.set_producer(inputs.producer);
  manifest.set_precision(inputs.precision);
  manifest.set_source_hash(text(exported, "source_hash").str());
  manifest.set_licence(text(exported, "licence").str());
  if (weights.bytes())
    manifest.set_weights_section(inputs.weightsSection);
  manifest.set_unique_weight_bytes(weights.uniqueBytes());
  for (const ManifestInputs::Code &code : inputs.code) {
    program::CodeObject *object = manifest.add_code();
    object->set_target(code.target);
    object->set_level(code.level);
    for (const std::string &feature : code.features)
      object->add_features(feature);
    object->set_section(code.section);
    if (!code.shaders.empty())
      addShaders(*object, code.shaders);
  }
  program::Tokenizer *tokenizer = manifest.mutable_tokenizer();
  tokenizer->set_kind(inputs.tokenizerKind);
  for (const std::string &file : inputs.tokenizerFiles)
    tokenizer->add_files(file);
  tokenizer->set_config_json(text(exported, "config").str());
}

Outcome<program::Manifest> ManifestBuilder::run() {
  addDescription();
  addKernels();
  addStates();
  if (auto checks = module->getAttrOfType<ArrayAttr>("kernel.checks"))
    for (StringRef check : stringsOf(checks))
      manifest.add_checks()->set_message(check.str());
  for (auto op : module.getOps<ProgramOp>())
    addEntry(op);
  if (generation)
    addGeneration();
  if (failure)
    return std::move(*failure);
  return std::move(manifest);
}

} // namespace

Outcome<program::Manifest> kernel::makeManifest(ModuleOp module, const PackedWeights &weights,
                                                const ManifestInputs &inputs) {
  return ManifestBuilder(module, weights, inputs).run();
}
