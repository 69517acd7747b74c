// The shaders of a model as pipelines, made when they are first used and kept on disk between processes.
#ifndef TRANSEPT_RUNTIME_VULKAN_PIPELINES_H
#define TRANSEPT_RUNTIME_VULKAN_PIPELINES_H

#include "runtime/Hash.h"
#include "runtime/vulkan/LogicalDevice.h"

namespace transept::vulkan {

/// A checked SPIR-V module, and its specialisation constants.
struct PreparedShader {
  std::vector<uint32_t> module;
  uint32_t groupSize = 0; // invocations of a workgroup
  MatrixSize matrices;    // that a subgroup multiplies; without rows: none
};

class Pipelines {
public:
  /// `code` is the hash of all shaders of the artifact; it and the driver name the file in `cacheFolder`, which may be
  /// empty.
  static Result<std::unique_ptr<Pipelines>> create(const LogicalDevice &device, std::vector<PreparedShader> shaders,
                                                   const Sha256 &code, const std::string &cacheFolder);
  /// Writes the cache where there are new pipelines; failures are not reported.
  ~Pipelines();
  Pipelines(const Pipelines &) = delete;
  Pipelines &operator=(const Pipelines &) = delete;

  VkPipelineLayout layout() const { return layout_; }
  /// Thread-safe.
  Result<VkPipeline> get(uint32_t kernel) const;
  /// Invocations of a workgroup.
  uint32_t groupSize(uint32_t kernel) const { return shaders_[kernel].groupSize; }

private:
  explicit Pipelines(const LogicalDevice &device) : device_(device) {}
  Status createCache();
  void saveCache() const;
  std::string cachePath() const;

  const LogicalDevice &device_;
  std::vector<PreparedShader> shaders_; // in the order of the kernels
  std::string cacheFolder_;
  Sha256 key_{};
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  mutable std::mutex mutex_;
  mutable std::vector<VkPipeline> pipelines_; // null: not yet made
  mutable bool changed_ = false;
};

} // namespace transept::vulkan

#endif
