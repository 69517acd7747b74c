#include "runtime/Model.h"

#include "runtime/CpuDevice.h"
#include "runtime/CpuFeatures.h"
#include "runtime/ThreadTeam.h"
#include "runtime/vulkan/VulkanDevice.h"

#include <algorithm>
#include <charconv>

namespace transept {

namespace {

struct DeviceChoice {
  bool vulkan = false;
  uint32_t index = 0;
};

/// What ModelOptions::device says.
Result<DeviceChoice> chooseDevice(const std::string &name, const program::Manifest &manifest) {
  auto has = [&](const char *target) {
    return std::any_of(manifest.code().begin(), manifest.code().end(),
                       [&](const program::CodeObject &code) { return code.target() == target; });
  };
  if (name.empty())
    return DeviceChoice{!has("cpu") && has("vulkan"), 0};
  if (name == "cpu")
    return DeviceChoice{};
  constexpr std::string_view prefix = "vulkan:";
  DeviceChoice choice{true, 0};
  const char *begin = name.data() + std::min(prefix.size(), name.size()), *end = name.data() + name.size();
  auto [stop, error] = std::from_chars(begin, end, choice.index);
  if (name.compare(0, prefix.size(), prefix) != 0 || error != std::errc() || stop != end)
    return Status(Code::Usage, "unknown device '" + printable(name) + "'; one of cpu, vulkan:0, vulkan:1 ...");
  return choice;
}

Result<std::unique_ptr<Device>> createCpuDevice(Artifact &artifact, const ModelOptions &options) {
  const program::Manifest &manifest = artifact.manifest();
  TRANSEPT_ASSIGN(const program::CodeObject *code, chooseCode(manifest, options.cpu, cpuFeatures()));
  TRANSEPT_ASSIGN(CodeObject object,
                  CodeObject::load(artifact.section(code->section()), static_cast<uint32_t>(manifest.kernels_size())));
  return std::unique_ptr<Device>(new CpuDevice(std::move(object), code->level(), artifact.takeWeights()));
}

Result<std::unique_ptr<Device>> createDevice(Artifact &artifact, const ModelOptions &options) {
  TRANSEPT_ASSIGN(DeviceChoice choice, chooseDevice(options.device, artifact.manifest()));
  if (!choice.vulkan)
    return createCpuDevice(artifact, options);
  if (!options.cpu.empty())
    return Status(Code::Usage, "a CPU level was asked for, and a device that is none");
  return createVulkanDevice(choice.index, artifact, options.vulkan);
}

} // namespace

Result<std::shared_ptr<const Model>> Model::load(const std::string &path, const ModelOptions &options) {
  auto load = [&]() -> Result<std::shared_ptr<const Model>> {
    std::shared_ptr<Model> model(new Model);
    ArtifactOptions reading;
    reading.weights = options.mapWeights ? ArtifactOptions::Weights::Map : ArtifactOptions::Weights::Read;
    reading.threads = options.threads > 0 ? options.threads : availableThreads();
    TRANSEPT_ASSIGN(model->artifact_, Artifact::read(path, reading));
    TRANSEPT_ASSIGN(model->device_, createDevice(model->artifact_, options));
    if (options.trace)
      model->trace_ = std::make_unique<Trace>();
    return std::shared_ptr<const Model>(std::move(model));
  };
  Result<std::shared_ptr<const Model>> model = load();
  return model.ok() || model.status().code() == Code::Usage
             ? std::move(model)
             : Result<std::shared_ptr<const Model>>(model.status().withContext(printable(path)));
}

Result<std::shared_ptr<const Model>> Model::fromParts(Artifact artifact, const transept_kernel_table &kernels) {
  std::shared_ptr<Model> model(new Model);
  model->artifact_ = std::move(artifact);
  if (kernels.count != static_cast<uint32_t>(model->manifest().kernels_size()))
    return Status(Code::ArtifactRefused, "needs " + std::to_string(model->manifest().kernels_size()) +
                                             " kernels, got " + std::to_string(kernels.count));
  model->device_ = std::make_unique<CpuDevice>(kernels, model->artifact_.takeWeights());
  return std::shared_ptr<const Model>(std::move(model));
}

int Model::findEntry(std::string_view name) const {
  for (int i = 0; i < manifest().entries_size(); ++i)
    if (manifest().entries(i).name() == name)
      return i;
  return -1;
}

} // namespace transept
