#include "runtime/vulkan/ChooseShaders.h"

#include "runtime/vulkan/Features.h"

#include <algorithm>
#include <numeric>

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
  // Subgroups that multiply matrices are full ones.
  const uint32_t step =
      variant.has_tile() ? std::lcm(shader.group_step(), std::max(device.subgroupSize, 1u)) : shader.group_step();
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

/// The largest matrices that a workgroup can make the tile of.
std::optional<MatrixSize> chooseMatrices(const program::Shader::Tile &tile, uint32_t groupSize,
                                         const VulkanDeviceInfo &device) {
  if (device.subgroupSize == 0 || groupSize % device.subgroupSize != 0)
    return std::nullopt;
  constexpr uint32_t word = 4; // integers
  const uint32_t subgroups = groupSize / device.subgroupSize;
  std::optional<MatrixSize> best;
  auto elements = [](const MatrixSize &size) { return uint64_t(size.rows) * size.columns * size.depth; };
  for (const MatrixSize &size : device.matrices) {
    if (size.rows == 0 || size.columns == 0 || size.depth == 0 || tile.rows() % size.rows != 0 ||
        tile.columns() % size.columns != 0 || tile.depth() % size.depth != 0 || size.depth % word != 0)
      continue;
    const uint32_t columns = tile.columns() / size.columns, rows = tile.rows() / size.rows;
    if (subgroups % columns == 0 && rows <= uint64_t(tile.matrices()) * (subgroups / columns) &&
        (!best || elements(size) > elements(*best)))
      best = size;
  }
  return best;
}

/// Nothing where the device does not take the variant.
Result<std::optional<ChosenShader>> chooseVariant(const program::Shader &shader,
                                                  const program::Shader::Variant &variant,
                                                  const VulkanDeviceInfo &device,
                                                  const std::vector<std::string> &features) {
  std::optional<ChosenShader> none;
  if (!std::all_of(variant.features().begin(), variant.features().end(),
                   [&](const std::string &feature) { return contains(features, feature); }))
    return none;
  const bool usesMatrices = contains({variant.features().begin(), variant.features().end()}, matrixInt8);
  if (usesMatrices != variant.has_tile())
    return none;
  Result<uint32_t> size = chooseGroupSize(shader, variant, device);
  if (!usesMatrices)
    return size.ok() ? Result<std::optional<ChosenShader>>(ChosenShader{&variant, *size, {}}) : size.status();
  std::optional<MatrixSize> matrices = size.ok() ? chooseMatrices(variant.tile(), *size, device) : std::nullopt;
  return matrices ? std::optional<ChosenShader>({&variant, *size, *matrices}) : none;
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
    // The last one, without features of its own, is always taken, or fails.
    std::optional<ChosenShader> choice;
    for (const program::Shader::Variant &variant : shader.variants()) {
      Result<std::optional<ChosenShader>> taken = chooseVariant(shader, variant, device, features);
      if (!taken.ok())
        return taken.status().withContext("shader " + std::to_string(chosen.size()));
      if ((choice = *taken))
        break;
    }
    if (!choice)
      return Status(Code::Internal, "shader " + std::to_string(chosen.size()) + " has no variant for every device");
    chosen.push_back(*choice);
  }
  return chosen;
}

} // namespace transept::vulkan
