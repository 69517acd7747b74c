#include "runtime/vulkan/Pipelines.h"

#include "runtime/AtomicFile.h"
#include "transept/abi.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace transept::vulkan {

namespace {

// A cache file: magic, key, hash of the data, data as the driver gave it.
constexpr char cacheMagic[8] = {'T', 'S', 'P', 'P', 'I', 'P', 'E', '1'};
constexpr size_t cacheHeaderBytes = sizeof cacheMagic + 2 * sizeof(Sha256);
constexpr size_t cacheLimit = size_t(256) << 20;

/// The driver's data in a file; empty where it is not there, damaged or of another key.
std::vector<char> readCache(const std::string &path, const Sha256 &key) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  if (size <= static_cast<std::streamoff>(cacheHeaderBytes) || size > static_cast<std::streamoff>(cacheLimit))
    return {};
  std::vector<char> bytes(static_cast<size_t>(size));
  file.seekg(0);
  if (!file.read(bytes.data(), size))
    return {};
  const char *keyBytes = bytes.data() + sizeof cacheMagic, *hashBytes = keyBytes + sizeof(Sha256);
  Sha256 hash = sha256(bytes.data() + cacheHeaderBytes, bytes.size() - cacheHeaderBytes);
  if (std::memcmp(bytes.data(), cacheMagic, sizeof cacheMagic) != 0 ||
      std::memcmp(keyBytes, key.data(), key.size()) != 0 || std::memcmp(hashBytes, hash.data(), hash.size()) != 0)
    return {};
  bytes.erase(bytes.begin(), bytes.begin() + cacheHeaderBytes);
  return bytes;
}

Status writeCache(const std::string &path, const Sha256 &key, const std::vector<char> &data) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  Sha256 hash = sha256(data.data(), data.size());
  TRANSEPT_ASSIGN(AtomicFile file, AtomicFile::create(path));
  TRANSEPT_TRY(file.write(0, cacheMagic, sizeof cacheMagic));
  TRANSEPT_TRY(file.write(sizeof cacheMagic, key.data(), key.size()));
  TRANSEPT_TRY(file.write(sizeof cacheMagic + key.size(), hash.data(), hash.size()));
  TRANSEPT_TRY(file.write(cacheHeaderBytes, data.data(), data.size()));
  return file.commit();
}

} // namespace

Result<std::unique_ptr<Pipelines>> Pipelines::create(const LogicalDevice &device, std::vector<PreparedShader> shaders,
                                                     const Sha256 &code, const std::string &cacheFolder) {
  std::unique_ptr<Pipelines> pipelines(new Pipelines(device));
  pipelines->pipelines_.resize(shaders.size(), VK_NULL_HANDLE);
  pipelines->shaders_ = std::move(shaders);
  pipelines->cacheFolder_ = cacheFolder;
  const PhysicalDevice &physical = device.physical();
  std::string driver(reinterpret_cast<const char *>(physical.driverUuid), VK_UUID_SIZE);
  driver.append(reinterpret_cast<const char *>(physical.deviceUuid), VK_UUID_SIZE);
  pipelines->key_ = sha256(driver.data(), driver.size(), code.data(), code.size());
  VkPushConstantRange constants{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(transept_shader_call)};
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &constants;
  TRANSEPT_TRY(resultStatus(device.api().CreatePipelineLayout(device.handle(), &layout, nullptr, &pipelines->layout_),
                            "cannot create a pipeline layout"));
  TRANSEPT_TRY(pipelines->createCache());
  return pipelines;
}

Pipelines::~Pipelines() {
  const DeviceApi &api = device_.api();
  if (changed_ && !cacheFolder_.empty())
    saveCache();
  for (VkPipeline pipeline : pipelines_)
    if (pipeline)
      api.DestroyPipeline(device_.handle(), pipeline, nullptr);
  if (cache_)
    api.DestroyPipelineCache(device_.handle(), cache_, nullptr);
  if (layout_)
    api.DestroyPipelineLayout(device_.handle(), layout_, nullptr);
}

std::string Pipelines::cachePath() const { return cacheFolder_ + "/" + hexadecimal(key_) + ".pipelines"; }

Status Pipelines::createCache() {
  std::vector<char> data;
  if (!cacheFolder_.empty())
    data = readCache(cachePath(), key_);
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = data.size();
  info.pInitialData = data.data();
  if (device_.api().CreatePipelineCache(device_.handle(), &info, nullptr, &cache_) == VK_SUCCESS)
    return {};
  info.initialDataSize = 0; // the driver does not like it
  return resultStatus(device_.api().CreatePipelineCache(device_.handle(), &info, nullptr, &cache_),
                      "cannot create a pipeline cache");
}

void Pipelines::saveCache() const {
  size_t size = 0;
  const DeviceApi &api = device_.api();
  if (api.GetPipelineCacheData(device_.handle(), cache_, &size, nullptr) != VK_SUCCESS || size > cacheLimit / 2)
    return;
  std::vector<char> data(size);
  if (api.GetPipelineCacheData(device_.handle(), cache_, &size, data.data()) != VK_SUCCESS)
    return;
  data.resize(size);
  Status ignored = writeCache(cachePath(), key_, data); // a wish: the next process compiles again
  (void)ignored;
}

Result<VkPipeline> Pipelines::get(uint32_t kernel) const {
  std::lock_guard<std::mutex> lock(mutex_);
  VkPipeline &pipeline = pipelines_[kernel];
  if (pipeline)
    return pipeline;
  const DeviceApi &api = device_.api();
  const std::string what = "cannot compile shader " + std::to_string(kernel) + " for device '" +
                           printable(device_.physical().info.name) + "'";
  VkShaderModuleCreateInfo module{};
  module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  const PreparedShader &shader = shaders_[kernel];
  module.codeSize = shader.module.size() * sizeof(uint32_t);
  module.pCode = shader.module.data();
  constexpr uint32_t word = sizeof(uint32_t);
  const uint32_t values[] = {shader.groupSize, shader.matrices.rows, shader.matrices.columns, shader.matrices.depth};
  const VkSpecializationMapEntry entries[] = {{TRANSEPT_SHADER_GROUP_SIZE, 0, word},
                                              {TRANSEPT_SHADER_MATRIX_ROWS, word, word},
                                              {TRANSEPT_SHADER_MATRIX_COLUMNS, 2 * word, word},
                                              {TRANSEPT_SHADER_MATRIX_DEPTH, 3 * word, word}};
  const bool usesMatrices = shader.matrices.rows != 0;
  const VkSpecializationInfo constants{usesMatrices ? 4u : 1u, entries, sizeof values, values};
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.pName = TRANSEPT_SHADER_ENTRY_POINT;
  info.stage.pSpecializationInfo = &constants;
  if (usesMatrices)
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  info.layout = layout_;
  TRANSEPT_TRY(resultStatus(api.CreateShaderModule(device_.handle(), &module, nullptr, &info.stage.module), what));
  VkPipeline made = VK_NULL_HANDLE;
  VkResult result = api.CreateComputePipelines(device_.handle(), cache_, 1, &info, nullptr, &made);
  api.DestroyShaderModule(device_.handle(), info.stage.module, nullptr);
  TRANSEPT_TRY(resultStatus(result, what));
  pipeline = made;
  changed_ = true;
  TRANSEPT_TRY(device_.validation());
  return pipeline;
}

} // namespace transept::vulkan
