#include "TinyModel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace transept::tests {

namespace {

template <typename T> T *buffer(const transept_dispatch *dispatch, int index) {
  return static_cast<T *>(dispatch->buffers[index]);
}

/// t = x * factor; one item is one row of sizes[0] elements.
void scaleRows(const transept_dispatch *dispatch, int64_t begin, int64_t end, void *) {
  int64_t width = dispatch->sizes[0];
  for (int64_t i = begin * width; i < end * width; ++i)
    buffer<float>(dispatch, 2)[i] = buffer<float>(dispatch, 0)[i] * *buffer<float>(dispatch, 1);
}

/// y = t + bias[ids], through scratch.
void addBias(const transept_dispatch *dispatch, int64_t begin, int64_t end, void *scratch) {
  int64_t width = dispatch->sizes[0], entries = dispatch->sizes[1];
  for (int64_t row = begin; row < end; ++row) {
    int64_t id = buffer<int64_t>(dispatch, 1)[row];
    if (id < 0 || id >= entries) {
      int32_t none = 0;
      if (__atomic_compare_exchange_n(&dispatch->error->id, &none, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        dispatch->error->value = id;
      id = std::clamp<int64_t>(id, 0, entries - 1);
    }
    std::memcpy(scratch, buffer<float>(dispatch, 2) + id * width, static_cast<size_t>(width) * sizeof(float));
    for (int64_t i = 0; i < width; ++i)
      buffer<float>(dispatch, 3)[row * width + i] =
          buffer<float>(dispatch, 0)[row * width + i] + static_cast<float *>(scratch)[i];
  }
}

void copyIds(const transept_dispatch *dispatch, int64_t begin, int64_t end, void *) {
  for (int64_t i = begin * dispatch->sizes[0]; i < end * dispatch->sizes[0]; ++i)
    buffer<float>(dispatch, 1)[i] = static_cast<float>(buffer<int64_t>(dispatch, 0)[i]);
}

void addTokens(const transept_dispatch *dispatch, int64_t begin, int64_t end, void *) {
  for (int64_t row = begin; row < std::min<int64_t>(end, *buffer<int32_t>(dispatch, 0)); ++row)
    buffer<float>(dispatch, 2)[row] += static_cast<float>(buffer<int64_t>(dispatch, 1)[row]);
}

void addSymbol(google::protobuf::RepeatedPtrField<program::Symbol> *symbols, const std::string &name, int64_t min,
               int64_t max) {
  program::Symbol *symbol = symbols->Add();
  symbol->set_name(name);
  symbol->set_min(min);
  symbol->set_max(max);
}

using Names = std::vector<std::string>;

program::Buffer *addBuffer(program::Entry *entry, const std::string &name, program::Storage storage, DType dtype,
                           const Names &dims, const Names &symbols) {
  program::Buffer *buffer = entry->add_buffers();
  buffer->set_name(name);
  buffer->set_storage(storage);
  buffer->set_dtype(dtype);
  for (const std::string &dim : dims)
    *buffer->add_dims() = postfix(dim, symbols);
  return buffer;
}

program::Dispatch *addDispatch(program::Entry *entry, uint32_t kernel, const std::string &items,
                               const std::vector<uint32_t> &buffers, const Names &sizes, const Names &symbols,
                               bool barrier) {
  program::Dispatch *dispatch = entry->add_dispatches();
  dispatch->set_kernel(kernel);
  *dispatch->mutable_items() = postfix(items, symbols);
  for (uint32_t buffer : buffers)
    dispatch->add_buffers(buffer);
  for (const std::string &size : sizes)
    *dispatch->add_sizes() = postfix(size, symbols);
  dispatch->set_barrier(barrier);
  return dispatch;
}

/// The only segment: it owns all dispatches so far.
program::Segment *addSegment(program::Entry *entry) {
  program::Segment *segment = entry->add_segments();
  segment->set_dispatches(static_cast<uint32_t>(entry->dispatches_size()));
  segment->set_next(1);
  return segment;
}

void addState(program::Manifest *manifest, const std::string &name, DType dtype, const Names &dims,
              const Names &symbols, const std::string &role) {
  program::State *state = manifest->add_states();
  state->set_name(name);
  state->set_dtype(dtype);
  for (const std::string &dim : dims)
    *state->add_dims() = postfix(dim, symbols);
  state->set_role(role);
}

void addMain(program::Manifest *manifest) {
  const Names n = {"n"};
  program::Entry *entry = manifest->add_entries();
  entry->set_name("main");
  addSymbol(entry->mutable_symbols(), "n", 0, 1000);
  addBuffer(entry, "x", program::INPUT, program::F32, {"n", "4"}, n);
  program::Buffer *factor = addBuffer(entry, "factor", program::INPUT, program::F32, {"1"}, n);
  const float two = 2;
  factor->set_default_value(std::string(reinterpret_cast<const char *>(&two), sizeof two));
  factor->set_has_default(true);
  addBuffer(entry, "ids", program::INPUT, program::I64, {"n"}, n);
  program::Buffer *scaled = addBuffer(entry, "scaled", program::ARENA, program::F32, {"n", "4"}, n);
  *scaled->mutable_offset() = postfix("256");
  *scaled->mutable_bytes() = postfix("n 16 *", n);
  program::Buffer *bias = addBuffer(entry, "bias", program::CONSTANT, program::F32, {"3", "4"}, n);
  *bias->mutable_offset() = postfix("0");
  *bias->mutable_bytes() = postfix("48");
  addBuffer(entry, "y", program::OUTPUT, program::F32, {"n", "4"}, n);
  addDispatch(entry, 0, "n", {0, 1, 3}, {"4"}, n, false);
  addDispatch(entry, 1, "n", {3, 2, 4, 5}, {"4", "3"}, n, true);
  *addSegment(entry)->mutable_arena_bytes() = postfix("n 16 * 256 +", n);
  program::Guard *guard = entry->add_guards();
  *guard->mutable_left() = postfix("n", n);
  guard->set_relation(program::Guard::NE);
  *guard->mutable_right() = postfix("13");
  guard->set_message("Reshape node 'unlucky' cannot split its input");
}

void addGeneration(program::Manifest *manifest) {
  for (const char *name : {"batch", "source", "rows"})
    addSymbol(manifest->mutable_generation_symbols(), name, 1, 64);
  const Names all = {"batch", "source", "rows"}, encodeSymbols = {"batch", "source"}, stepSymbols = {"rows"};
  addState(manifest, "memory", program::F32, {"batch", "source"}, all, "cross-cache");
  addState(manifest, "sum", program::F32, {"rows"}, all, "step");
  addState(manifest, "token", program::I64, {"rows"}, all, "step");
  addState(manifest, "live", program::I32, {"1"}, all, "step");

  program::Entry *encode = manifest->add_entries();
  encode->set_name("encode");
  for (const std::string &name : encodeSymbols)
    addSymbol(encode->mutable_symbols(), name, 1, 64);
  addBuffer(encode, "source_ids", program::INPUT, program::I64, {"batch", "source"}, encodeSymbols);
  addBuffer(encode, "memory", program::STATE, program::F32, {"batch", "source"}, encodeSymbols);
  addDispatch(encode, 2, "batch", {0, 1}, {"source"}, encodeSymbols, false);
  addSegment(encode);

  program::Entry *step = manifest->add_entries();
  step->set_name("step");
  addSymbol(step->mutable_symbols(), "rows", 1, 64);
  addBuffer(step, "live", program::STATE, program::I32, {"1"}, stepSymbols);
  addBuffer(step, "token", program::STATE, program::I64, {"rows"}, stepSymbols);
  addBuffer(step, "sum", program::STATE, program::F32, {"rows"}, stepSymbols);
  addDispatch(step, 3, "rows", {0, 1, 2}, {}, stepSymbols, false);
  addSegment(step);
}

} // namespace

program::Expr postfix(const std::string &words, const Names &symbols) {
  program::Expr expr;
  std::istringstream stream(words);
  const std::pair<const char *, program::Expr::Op> operators[] = {
      {"+", program::Expr::ADD}, {"*", program::Expr::MUL},   {"/", program::Expr::FLOORDIV},
      {"%", program::Expr::MOD}, {"min", program::Expr::MIN}, {"max", program::Expr::MAX}};
  for (std::string word; stream >> word;) {
    program::Expr::Term *term = expr.add_terms();
    auto found = std::find_if(std::begin(operators), std::end(operators),
                              [&](const auto &candidate) { return word == candidate.first; });
    auto symbol = std::find(symbols.begin(), symbols.end(), word);
    if (found != std::end(operators)) {
      term->set_op(found->second);
    } else if (symbol != symbols.end()) {
      term->set_op(program::Expr::SYMBOL);
      term->set_value(symbol - symbols.begin());
    } else {
      term->set_op(program::Expr::CONST);
      term->set_value(std::stoll(word));
    }
  }
  return expr;
}

program::Manifest tinyManifest() {
  program::Manifest manifest;
  manifest.set_producer("test");
  for (const char *name : {"scale_rows", "add_bias", "copy_ids", "add_tokens"})
    manifest.add_kernels()->set_name(name);
  *manifest.mutable_kernels(1)->mutable_scratch_bytes() = postfix("width 4 *", {"width", "entries"});
  manifest.add_checks()->set_message("Gather node 'bias' reads index {} outside [0, 2]");
  addMain(&manifest);
  addGeneration(&manifest);
  manifest.set_weights_section("weights");
  return manifest;
}

std::string tinyWeights() {
  float bias[3][4];
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j)
      bias[i][j] = static_cast<float>(10 * i + j);
  return std::string(reinterpret_cast<const char *>(bias), sizeof bias);
}

const transept_kernel_table &tinyKernels() {
  static const transept_kernel kernels[] = {scaleRows, addBias, copyIds, addTokens};
  static const transept_kernel_table table = {TRANSEPT_ABI_VERSION, 4, kernels};
  return table;
}

std::vector<ArtifactSection> tinySections(const program::Manifest &manifest) {
  return {ArtifactSection::fromBytes("manifest", SectionKind::Manifest, manifest.SerializeAsString()),
          ArtifactSection::fromBytes("weights", SectionKind::Weights, tinyWeights())};
}

std::shared_ptr<const Model> tinyModel(const program::Manifest &manifest) {
  Result<std::string> bytes = buildArtifact(tinySections(manifest));
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  Span<const uint8_t> span(reinterpret_cast<const uint8_t *>(bytes->data()), bytes->size());
  Result<Artifact> artifact = Artifact::read(*bytesInMemory(span));
  EXPECT_TRUE(artifact.ok()) << artifact.status().message();
  Result<std::shared_ptr<const Model>> model = Model::fromParts(artifact.take(), tinyKernels());
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.take();
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "transept-test-XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::vector<std::string> TemporaryFolder::listing() const {
  std::vector<std::string> names;
  for (const auto &item : std::filesystem::directory_iterator(folder_))
    names.push_back(item.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string readFile(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

void writeFile(const std::string &path, const std::string &content) {
  std::ofstream(path, std::ios::binary) << content;
}

} // namespace transept::tests
