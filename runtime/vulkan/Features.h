// Features of Vulkan devices by the names of their fields.
#ifndef TRANSEPT_RUNTIME_VULKAN_FEATURES_H
#define TRANSEPT_RUNTIME_VULKAN_FEATURES_H

#include "runtime/vulkan/Api.h"

#include <string>
#include <vector>

namespace transept::vulkan {

/// The feature structures of a Vulkan version, chained to each other.
struct FeatureChain {
  explicit FeatureChain(uint32_t apiVersion);
  FeatureChain(const FeatureChain &) = delete;
  FeatureChain &operator=(const FeatureChain &) = delete;

  VkPhysicalDeviceFeatures2 core{};
  VkPhysicalDeviceVulkan11Features v11{};
  VkPhysicalDeviceVulkan12Features v12{};
  VkPhysicalDeviceVulkan13Features v13{};

  /// Null for a name that this runtime does not know.
  VkBool32 *find(const std::string &name);

  /// Names of the features that are set.
  std::vector<std::string> set();
};

/// What all shaders need.
std::vector<std::string> basicFeatures();

/// Sums, maxima and minima over a subgroup in compute shaders: a property, which need not be enabled.
constexpr const char *subgroupArithmetic = "subgroupArithmetic";

/// Products of matrices of signed 8-bit integers by a subgroup: an extension with all that such shaders need.
constexpr const char *matrixInt8 = "cooperativeMatrixInt8";

/// What a shader that uses `features` may use: those, and what they stand for beside themselves.
std::vector<std::string> withImplied(std::vector<std::string> features);

/// "a, b"; "none".
std::string joinWords(const std::vector<std::string> &words);

} // namespace transept::vulkan

#endif
