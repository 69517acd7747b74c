#include "runtime/vulkan/ChooseShaders.h"

#include "runtime/vulkan/Features.h"

#include <algorithm>

namespace transept {

uint32_t usualWorkgroup(const VulkanDeviceInfo &device) {
  // Several subgroups, so that one computes while another waits for memory; more of them wait for each other.
  constexpr uint32_t subgroups = 8, least = 64, most = 256;
  return std::clamp(subgroups * std::min(device.subgroupSize, most), least, most);
}

} // namespace transept

namespace transept::vulkan {

namespace {

bool contains(const std::vector<std::string> &words, const std::string &word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

Result<uint32_t> chooseGroupSize(const program::Shader &shader, const program::Shader::Variant &variant,
                                 const VulkanDeviceInfo &device) {
  const uint32_t step = shader.group_step();
  uint32_t size = step == 0 ? shader.group_size() : std::max(usualWorkgroup(device) / step, 1u) * step;
  auto fits = [&](uint32_t invocations) {
    return invocations <= device.maxGroupSize &&
           variant.shared_bytes() + variant.shared_bytes_per_invocation() * invocations <= device.maxSharedBytes;
  };
  while (!fits(size) && step != 0 && size > step)
    size = std::max(size / 2 / step, 1u) * step;
  if (fits(size))
    return size;
  return Status(Code::DeviceError,
                "needs workgroups of " + std::to_string(size) + " that share " +
                    std::to_string(variant.shared_bytes() + variant.shared_bytes_per_invocation() * size) +
                    " bytes, device '" + printable(device.name) + "' takes at most " +
                    std::to_string(device.maxGroupSize) + " and " + std::to_string(device.maxSharedBytes) + " bytes");
}

} // namespace

Result<std::vector<std::string>> usableFeatures(const VulkanDeviceInfo &device,
                                                const std::optional<std::vector<std::string>> &wanted) {
  if (!wanted)
    return device.features;
  for (const std::string &feature : *wanted) {
    if (!contains(variantFeatures(), feature))
      return Status(Code::Usage, "no shader has a variant for '" + printable(feature) +
                                     "'; there are: " + joinWords(variantFeatures()));
    if (!contains(device.features, feature))
      return Status(Code::DeviceError, "device '" + printable(device.name) + "' lacks " + printable(feature) +
                                           ", which was asked for; it has " + joinWords(device.features));
  }
  return *wanted;
}

Result<std::vector<ChosenShader>> chooseVariants(const program::CodeObject &code, const VulkanDeviceInfo &device,
                                                 const std::vector<std::string> &features) {
  std::vector<ChosenShader> chosen;
  for (const program::Shader &shader : code.shaders()) {
    // The last one, without features of its own, is always found.
    auto variant = std::find_if(shader.variants().begin(), shader.variants().end(), [&](const auto &candidate) {
      return std::all_of(candidate.features().begin(), candidate.features().end(),
                         [&](const std::string &feature) { return contains(features, feature); });
    });
    Result<uint32_t> size = chooseGroupSize(shader, *variant, device);
    if (!size.ok())
      return size.status().withContext("shader " + std::to_string(chosen.size()));
    chosen.push_back({&*variant, *size});
  }
  return chosen;
}

} // namespace transept::vulkan
