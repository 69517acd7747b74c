// Which matrices a subgroup multiplies: VK_KHR_cooperative_matrix, which headers of older systems do not have.
#ifndef TRANSEPT_RUNTIME_VULKAN_MATRICES_H
#define TRANSEPT_RUNTIME_VULKAN_MATRICES_H

#include "runtime/vulkan/Api.h"
#include "runtime/vulkan/VulkanDevices.h"

namespace transept::vulkan {

constexpr const char *matrixExtension = "VK_KHR_cooperative_matrix";

/// VkPhysicalDeviceCooperativeMatrixFeaturesKHR
struct MatrixFeatures {
  VkStructureType sType = static_cast<VkStructureType>(1000506000);
  void *pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE, robustBufferAccess = VK_FALSE;
};

/// VkCooperativeMatrixPropertiesKHR; types and scopes have the numbers of VkComponentTypeKHR and VkScopeKHR.
struct MatrixProperties {
  VkStructureType sType = static_cast<VkStructureType>(1000506001);
  void *pNext = nullptr;
  uint32_t rows = 0, columns = 0, depth = 0;
  uint32_t left = 0, right = 0, added = 0, result = 0;
  VkBool32 saturates = VK_FALSE;
  uint32_t scope = 0;
};

/// Of signed 8-bit integers that a subgroup multiplies and adds to 32 bits; empty where the device has none.
std::vector<MatrixSize> matricesOf(const InstanceApi &api, VkInstance instance, VkPhysicalDevice device);

/// Those of `all` that are products of signed 8-bit integers by a subgroup, whose sums wrap around.
std::vector<MatrixSize> integerMatrices(const std::vector<MatrixProperties> &all);

} // namespace transept::vulkan

#endif
