#include "runtime/vulkan/Matrices.h"

#include <algorithm>
#include <cstring>

namespace transept::vulkan {

namespace {

using GetMatrixProperties = VkResult(VKAPI_PTR *)(VkPhysicalDevice device, uint32_t *count, MatrixProperties *all);

bool hasExtension(const InstanceApi &api, VkPhysicalDevice device) {
  uint32_t count = 0;
  if (api.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr) != VK_SUCCESS)
    return false;
  std::vector<VkExtensionProperties> all(count);
  if (api.EnumerateDeviceExtensionProperties(device, nullptr, &count, all.data()) < 0)
    return false;
  all.resize(count);
  return std::any_of(all.begin(), all.end(), [](const VkExtensionProperties &extension) {
    return std::strcmp(extension.extensionName, matrixExtension) == 0;
  });
}

} // namespace

std::vector<MatrixSize> integerMatrices(const std::vector<MatrixProperties> &all) {
  constexpr uint32_t signed8 = 3, signed32 = 5, subgroup = 3;
  std::vector<MatrixSize> sizes;
  for (const MatrixProperties &one : all)
    if (one.left == signed8 && one.right == signed8 && one.added == signed32 && one.result == signed32 &&
        one.scope == subgroup && !one.saturates)
      sizes.push_back({one.rows, one.columns, one.depth});
  return sizes;
}

std::vector<MatrixSize> matricesOf(const InstanceApi &api, VkInstance instance, VkPhysicalDevice device) {
  if (!hasExtension(api, device))
    return {};
  MatrixFeatures offered;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &offered;
  api.GetPhysicalDeviceFeatures2(device, &features);
  auto get = reinterpret_cast<GetMatrixProperties>(
      api.GetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  uint32_t count = 0;
  if (!offered.cooperativeMatrix || !get || get(device, &count, nullptr) != VK_SUCCESS)
    return {};
  std::vector<MatrixProperties> all(count);
  if (get(device, &count, all.data()) < 0)
    return {};
  all.resize(count);
  return integerMatrices(all);
}

} // namespace transept::vulkan
