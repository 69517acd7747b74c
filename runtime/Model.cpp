#include "runtime/Model.h"

#include "runtime/CpuDevice.h"
#include "runtime/CpuFeatures.h"
#include "runtime/ThreadTeam.h"

namespace transept {

Result<std::shared_ptr<const Model>> Model::load(const std::string &path, const ModelOptions &options) {
  auto load = [&]() -> Result<std::shared_ptr<const Model>> {
    std::shared_ptr<Model> model(new Model);
    ArtifactOptions reading;
    reading.weights = options.mapWeights ? ArtifactOptions::Weights::Map : ArtifactOptions::Weights::Read;
    reading.threads = options.threads > 0 ? options.threads : availableThreads();
    TRANSEPT_ASSIGN(model->artifact_, Artifact::read(path, reading));
    const program::Manifest &manifest = model->manifest();
    TRANSEPT_ASSIGN(const program::CodeObject *code, chooseCode(manifest, options.cpu, cpuFeatures()));
    TRANSEPT_ASSIGN(CodeObject object, CodeObject::load(model->artifact_.section(code->section()),
                                                        static_cast<uint32_t>(manifest.kernels_size())));
    model->device_ = std::make_unique<CpuDevice>(std::move(object), code->level(), model->artifact_.takeWeights());
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
