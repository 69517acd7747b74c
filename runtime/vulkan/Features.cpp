#include "runtime/vulkan/Features.h"

#include <algorithm>

namespace transept::vulkan {

namespace {

struct Feature {
  const char *name;
  VkBool32 &(*field)(FeatureChain &);
};

#define FEATURE(member, name) {#name, [](FeatureChain &chain) -> VkBool32 & { return chain.member.name; }}

constexpr Feature features[] = {
    FEATURE(core.features, shaderInt64),
    FEATURE(core.features, shaderInt16),
    FEATURE(core.features, shaderFloat64),
    FEATURE(v11, storageBuffer16BitAccess),
    FEATURE(v12, bufferDeviceAddress),
    FEATURE(v12, shaderInt8),
    FEATURE(v12, shaderFloat16),
    FEATURE(v12, storageBuffer8BitAccess),
    FEATURE(v12, shaderBufferInt64Atomics),
    FEATURE(v12, vulkanMemoryModel),
    FEATURE(v12, vulkanMemoryModelDeviceScope),
    FEATURE(v12, scalarBlockLayout),
    FEATURE(v13, shaderIntegerDotProduct),
    FEATURE(v13, subgroupSizeControl),
    FEATURE(v13, computeFullSubgroups),
};

#undef FEATURE

} // namespace

FeatureChain::FeatureChain(uint32_t apiVersion) {
  core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  core.pNext = &v11;
  v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  v11.pNext = &v12;
  v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  v12.pNext = apiVersion >= VK_API_VERSION_1_3 ? &v13 : nullptr;
  v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
}

VkBool32 *FeatureChain::find(const std::string &name) {
  for (const Feature &feature : features)
    if (name == feature.name)
      return &feature.field(*this);
  return nullptr;
}

std::vector<std::string> FeatureChain::set() {
  std::vector<std::string> names;
  for (const Feature &feature : features)
    if (feature.field(*this))
      names.push_back(feature.name);
  return names;
}

std::string joinWords(const std::vector<std::string> &words) {
  std::string out;
  for (const std::string &word : words)
    out += (out.empty() ? "" : ", ") + printable(word, 60);
  return out.empty() ? "none" : out;
}

std::vector<std::string> withImplied(std::vector<std::string> features) {
  // With Vulkan's memory model enabled, the atomics of other shaders need the scope of the device.
  if (std::find(features.begin(), features.end(), matrixInt8) != features.end())
    for (const char *implied : {"shaderInt8", "vulkanMemoryModel", "vulkanMemoryModelDeviceScope",
                                "subgroupSizeControl", "computeFullSubgroups"})
      if (std::find(features.begin(), features.end(), implied) == features.end())
        features.push_back(implied);
  return features;
}

std::vector<std::string> basicFeatures() { return {"shaderInt64", "bufferDeviceAddress"}; }

} // namespace transept::vulkan

namespace transept {

const std::vector<std::string> &variantFeatures() {
  static const std::vector<std::string> names = {vulkan::matrixInt8, "shaderIntegerDotProduct",
                                                 vulkan::subgroupArithmetic};
  return names;
}

} // namespace transept
