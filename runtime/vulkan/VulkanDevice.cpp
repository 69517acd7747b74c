#include "runtime/vulkan/VulkanDevice.h"

#include "runtime/vulkan/CheckShader.h"
#include "runtime/vulkan/ChooseShaders.h"
#include "runtime/vulkan/Features.h"
#include "runtime/vulkan/VulkanExecutor.h"
#include "runtime/vulkan/Weights.h"

#include <algorithm>
#include <cstring>

namespace transept {

namespace vulkan {

namespace {

class VulkanDevice final : public Device {
public:
  VulkanDevice(std::string name, const program::CodeObject &code, std::unique_ptr<LogicalDevice> device)
      : name_(std::move(name)), code_(code), device_(std::move(device)) {}

  Status prepare(const Artifact &artifact, const std::vector<ChosenShader> &chosen, const std::string &cacheFolder) {
    chosen_ = chosen;
    TRANSEPT_ASSIGN(std::vector<PreparedShader> shaders, readShaders(artifact.section(code_.section()), chosen));
    Sha256 hash{};
    for (const SectionInfo &section : artifact.sections())
      if (section.name == code_.section())
        hash = section.hash;
    TRANSEPT_ASSIGN(weights_, Weights::upload(*device_, artifact.manifest(),
                                              {artifact.weights().data(), artifact.weights().size()}));
    TRANSEPT_ASSIGN(pipelines_, Pipelines::create(*device_, std::move(shaders), hash, cacheFolder));
    return device_->validation();
  }

  std::string name() const override { return name_; }
  const std::string &level() const override { return code_.level(); }

  Result<std::unique_ptr<DeviceMemory>> allocate(uint64_t bytes, Access access) const override {
    TRANSEPT_ASSIGN(std::unique_ptr<DeviceMemory> memory,
                    device_->allocate(bytes, access == Access::Kernels ? MemoryUse::Kernels : MemoryUse::Shared));
    return memory;
  }
  Status clear(DeviceMemory &memory, uint64_t bytes) const override {
    return device_->clear(static_cast<VulkanMemory &>(memory), bytes);
  }

  DevicePlace constant(uint64_t offset) const override { return weights_.at(offset); }
  transept_kernel function(uint32_t) const override { return nullptr; }
  const program::Expr *items(uint32_t kernel) const override {
    const program::Shader::Variant &variant = *chosen_[kernel].variant;
    return variant.has_tile() ? &variant.tile().items() : &code_.shaders(static_cast<int>(kernel)).items();
  }

  Result<std::unique_ptr<Executor>> createExecutor(ThreadTeam &, Trace *trace) const override {
    return VulkanExecutor::create(*device_, *pipelines_, code_, trace ? trace->addTrack(name_) : 0, trace);
  }

private:
  /// Copies and checks the modules. The manifest's places in the section are verified.
  Result<std::vector<PreparedShader>> readShaders(Span<const uint8_t> section,
                                                  const std::vector<ChosenShader> &chosen) const {
    std::vector<PreparedShader> shaders;
    for (const ChosenShader &choice : chosen) {
      const program::Shader::Variant &variant = *choice.variant;
      std::vector<std::string> features = basicFeatures();
      features.insert(features.end(), code_.features().begin(), code_.features().end());
      features.insert(features.end(), variant.features().begin(), variant.features().end());
      PreparedShader shader{std::vector<uint32_t>(variant.bytes() / sizeof(uint32_t)), choice.groupSize,
                            choice.matrices};
      std::memcpy(shader.module.data(), section.data() + variant.offset(), variant.bytes());
      const int kernel = static_cast<int>(shaders.size());
      if (Status status = checkShader(shader.module, code_.shaders(kernel).group_size(), withImplied(features));
          !status.ok())
        return status.withContext("shader " + std::to_string(kernel));
      shaders.push_back(std::move(shader));
    }
    return shaders;
  }

  std::string name_;
  const program::CodeObject &code_; // of the artifact, which outlives the device
  std::vector<ChosenShader> chosen_;
  std::unique_ptr<LogicalDevice> device_;
  Weights weights_;
  std::unique_ptr<Pipelines> pipelines_;
};

/// "0: A (discrete GPU), 1: B (CPU)"
std::string listText(const std::vector<PhysicalDevice> &devices) {
  std::vector<std::string> words;
  for (const PhysicalDevice &device : devices)
    words.push_back(std::to_string(words.size()) + ": " + device.info.name + " (" + device.info.type + ")");
  return joinWords(words);
}

Result<PhysicalDevice> findDevice(const Instance &instance, uint32_t index) {
  TRANSEPT_ASSIGN(std::vector<PhysicalDevice> devices, instance.devices());
  if (index >= devices.size())
    return Status(Code::DeviceError,
                  "there is no device vulkan:" + std::to_string(index) + "; there are: " + listText(devices));
  const PhysicalDevice &device = devices[index];
  if (!device.info.problem.empty())
    return Status(Code::DeviceError, "device vulkan:" + std::to_string(index) + " '" + printable(device.info.name) +
                                         "' cannot be used: " + device.info.problem +
                                         "; there are: " + listText(devices));
  return device;
}

std::vector<std::string> neededFeatures(const program::CodeObject &code) {
  std::vector<std::string> needed = basicFeatures();
  for (const std::string &feature : code.features())
    if (std::find(needed.begin(), needed.end(), feature) == needed.end())
      needed.push_back(feature);
  return needed;
}

/// The first code object that the device can run.
Result<const program::CodeObject *> chooseShaders(const program::Manifest &manifest, const VulkanDeviceInfo &device) {
  std::string problems, present;
  for (const program::CodeObject &code : manifest.code()) {
    present += (present.empty() ? "" : ", ") + printable(code.target() + " " + code.level(), 60);
    if (code.target() != "vulkan")
      continue;
    std::vector<std::string> missing;
    for (const std::string &feature : neededFeatures(code))
      if (std::find(device.features.begin(), device.features.end(), feature) == device.features.end())
        missing.push_back(feature);
    if (missing.empty())
      return &code;
    problems +=
        (problems.empty() ? "level '" : "; level '") + printable(code.level(), 60) + "' needs " + joinWords(missing);
  }
  if (problems.empty())
    return Status(Code::ArtifactRefused, "holds no Vulkan code, only for: " + (present.empty() ? "none" : present) +
                                             "; compile it with --target vulkan");
  return Status(Code::DeviceError, "cannot run on device '" + printable(device.name) + "': " + problems +
                                       ", which it lacks; it has " + joinWords(device.features));
}

} // namespace

} // namespace vulkan

Result<std::unique_ptr<Device>> createVulkanDevice(uint32_t index, Artifact &artifact, const VulkanOptions &options) {
  // Before the library is looked for: an artifact without Vulkan code is refused on every machine.
  const program::Manifest &manifest = artifact.manifest();
  if (std::none_of(manifest.code().begin(), manifest.code().end(),
                   [](const program::CodeObject &code) { return code.target() == "vulkan"; }))
    return vulkan::chooseShaders(manifest, {}).status();
  TRANSEPT_ASSIGN(std::unique_ptr<vulkan::Instance> instance, vulkan::Instance::create(options));
  TRANSEPT_ASSIGN(vulkan::PhysicalDevice physical, vulkan::findDevice(*instance, index));
  TRANSEPT_ASSIGN(const program::CodeObject *code, vulkan::chooseShaders(manifest, physical.info));
  TRANSEPT_ASSIGN(std::vector<std::string> usable, vulkan::usableFeatures(physical.info, options.features));
  TRANSEPT_ASSIGN(std::vector<vulkan::ChosenShader> chosen, vulkan::chooseVariants(*code, physical.info, usable));
  std::vector<std::string> needed = vulkan::neededFeatures(*code);
  for (const vulkan::ChosenShader &shader : chosen)
    needed.insert(needed.end(), shader.variant->features().begin(), shader.variant->features().end());
  TRANSEPT_ASSIGN(std::unique_ptr<vulkan::LogicalDevice> logical,
                  vulkan::LogicalDevice::create(std::move(instance), physical, needed));
  auto device = std::make_unique<vulkan::VulkanDevice>(
      "vulkan:" + std::to_string(index) + " (" + printable(physical.info.name) + ")", *code, std::move(logical));
  TRANSEPT_TRY(device->prepare(artifact, chosen, options.cacheFolder));
  artifact.takeWeights(); // the device has them
  return std::unique_ptr<Device>(std::move(device));
}

} // namespace transept
