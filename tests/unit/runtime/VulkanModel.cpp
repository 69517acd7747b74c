#include "VulkanModel.h"

#include "ShaderText.h"

#include <dlfcn.h>

#include <new>

namespace transept::tests {

namespace {

/// t = x * factor; an item is an element.
ShaderBody scaleRows() {
  ShaderBody body;
  std::string x = body.load("f32", 0, body.item()), factor = body.load("f32", 1, body.constant(0));
  body.store("f32", 2, body.item(), body.add("f32", "OpFMul " + x + " " + factor));
  return body;
}

/// y = t + bias[ids]; an item is an element.
ShaderBody addBias() {
  ShaderBody body;
  std::string width = body.size(0), entries = body.size(1), zero = body.constant(0);
  std::string row = body.add("i64", "OpSDiv " + body.item() + " " + width);
  std::string column = body.add("i64", "OpSMod " + body.item() + " " + width);
  std::string id = body.load("i64", 1, row);
  std::string below = body.add("bool", "OpSLessThan " + id + " " + zero);
  std::string above = body.add("bool", "OpSGreaterThanEqual " + id + " " + entries);
  std::string outside = body.add("bool", "OpLogicalOr " + below + " " + above);
  std::string merge = body.beginIf(outside);
  body.reportError(1, id);
  body.endIf(merge);
  std::string inside = body.add("i64", "OpSelect " + outside + " " + zero + " " + id);
  std::string begin = body.add("i64", "OpIMul " + inside + " " + width);
  std::string bias = body.load("f32", 2, body.add("i64", "OpIAdd " + begin + " " + column));
  std::string t = body.load("f32", 0, body.item());
  body.store("f32", 3, body.item(), body.add("f32", "OpFAdd " + t + " " + bias));
  return body;
}

/// An item is an element.
ShaderBody copyIds() {
  ShaderBody body;
  std::string id = body.load("i64", 0, body.item());
  body.store("f32", 1, body.item(), body.add("f32", "OpConvertSToF " + id));
  return body;
}

/// sum += token, where the row is below `live`, a word in memory.
ShaderBody addTokens() {
  ShaderBody body;
  std::string live = body.add("i64", "OpSConvert " + body.load("i32", 0, body.constant(0)));
  std::string merge = body.beginIf(body.add("bool", "OpSLessThan " + body.item() + " " + live));
  std::string token = body.add("f32", "OpConvertSToF " + body.load("i64", 1, body.item()));
  std::string sum = body.load("f32", 2, body.item());
  body.store("f32", 2, body.item(), body.add("f32", "OpFAdd " + sum + " " + token));
  body.endIf(merge);
  return body;
}

VulkanFaults &loadFaults() {
  void *library = dlopen(TRANSEPT_TEST_VULKAN, RTLD_NOW | RTLD_LOCAL);
  auto function = library ? reinterpret_cast<VulkanFaultsFunction>(dlsym(library, vulkanFaultsSymbol)) : nullptr;
  if (!function)
    throw std::runtime_error("cannot load " TRANSEPT_TEST_VULKAN);
  return *function();
}

} // namespace

VulkanProgram::VulkanProgram() : manifest(tinyManifest()), weights(tinyWeights()) {
  struct Row {
    ShaderBody body;
    uint32_t groupSize, itemsPerGroup;
    const char *items;
  };
  const std::vector<std::string> sizes = {"size0", "size1", "size2"};
  const Row rows[] = {{scaleRows(), 8, 5, "size0 size1 *"},
                      {addBias(), 16, 16, "size0 size2 *"},
                      {copyIds(), 32, 32, "size0 size1 *"},
                      {addTokens(), 4, 4, "size0"}};
  program::CodeObject *code = manifest.add_code();
  code->set_target("vulkan");
  code->set_level("fp32");
  code->set_section("code/vulkan");
  for (const char *feature : {"shaderInt64", "bufferDeviceAddress"})
    code->add_features(feature);
  for (const Row &row : rows) {
    modules.push_back(assembleShader(row.body, row.groupSize, row.itemsPerGroup));
    program::Shader *shader = code->add_shaders();
    shader->set_group_size(row.groupSize);
    shader->set_items_per_group(row.itemsPerGroup);
    *shader->mutable_items() = postfix(row.items, sizes);
  }
  const std::pair<int, const char *> counts[] = {{0, "n"}, {1, "batch"}, {2, "rows"}};
  for (const auto &[index, symbol] : counts) {
    program::Entry *entry = manifest.mutable_entries(index);
    std::vector<std::string> symbols;
    for (const program::Symbol &known : entry->symbols())
      symbols.push_back(known.name());
    for (program::Dispatch &dispatch : *entry->mutable_dispatches())
      *dispatch.add_sizes() = postfix(symbol, symbols);
  }
}

std::vector<ArtifactSection> VulkanProgram::sections() {
  std::string bytes;
  for (size_t i = 0; i < modules.size() && i < static_cast<size_t>(code().shaders_size()); ++i) {
    program::Shader *shader = code().mutable_shaders(static_cast<int>(i));
    program::Shader::Variant *variant =
        shader->variants_size() == 0 ? shader->add_variants() : shader->mutable_variants(0);
    variant->set_offset(bytes.size());
    variant->set_bytes(modules[i].size() * sizeof(uint32_t));
    bytes.append(reinterpret_cast<const char *>(modules[i].data()), modules[i].size() * sizeof(uint32_t));
  }
  return {ArtifactSection::fromBytes("manifest", SectionKind::Manifest, manifest.SerializeAsString()),
          ArtifactSection::fromBytes("code/vulkan", SectionKind::Spirv, bytes),
          ArtifactSection::fromBytes("weights", SectionKind::Weights, weights)};
}

VulkanFixture::VulkanFixture() : faults(loadFaults()) {
  faults.~VulkanFaults();
  new (&faults) VulkanFaults;
}

ModelOptions VulkanFixture::options() const {
  ModelOptions options;
  options.device = "vulkan:0";
  options.vulkan.loader = TRANSEPT_TEST_VULKAN;
  options.vulkan.validate = true;
  return options;
}

Result<std::shared_ptr<const Model>> VulkanFixture::load(VulkanProgram program, const ModelOptions &options) {
  std::string path = folder.path("model.tsp");
  Status written = writeArtifact(path, program.sections());
  return written.ok() ? Model::load(path, options) : Result<std::shared_ptr<const Model>>(written);
}

std::shared_ptr<const Model> VulkanFixture::model(VulkanProgram program) {
  Result<std::shared_ptr<const Model>> loaded = load(std::move(program));
  if (!loaded.ok())
    throw std::runtime_error(
        "no Vulkan device to test with (./dev setup installs lavapipe and the validation layer): " +
        loaded.status().message());
  return loaded.take();
}

} // namespace transept::tests
