// The small program of TinyModel.h with its kernels as compute shaders, on a Vulkan device that tests can make fail.
#ifndef TRANSEPT_TESTS_VULKANMODEL_H
#define TRANSEPT_TESTS_VULKANMODEL_H

#include "TinyModel.h"
#include "fixtures/VulkanFaults.h"

#include <gtest/gtest.h>

#include <functional>

namespace transept::tests {

/// tinyManifest() and the shaders of its kernels. Dispatches have one size more: how many rows there are.
struct VulkanProgram {
  program::Manifest manifest;
  std::vector<std::vector<uint32_t>> modules; // in the order of the kernels
  std::string weights;

  VulkanProgram();
  program::CodeObject &code() { return *manifest.mutable_code(0); }

  /// Writes places and sizes of the modules into the manifest.
  std::vector<ArtifactSection> sections();
};

/// A device under the validation layer whose every message fails what was being done. Faults are off at first.
class VulkanFixture : public testing::Test {
protected:
  VulkanFixture();

  ModelOptions options() const;
  Result<std::shared_ptr<const Model>> load(VulkanProgram program, const ModelOptions &options);
  Result<std::shared_ptr<const Model>> load(VulkanProgram program = {}) { return load(std::move(program), options()); }
  /// Fails the test where it cannot be loaded.
  std::shared_ptr<const Model> model(VulkanProgram program = {});

  TemporaryFolder folder;
  VulkanFaults &faults;
};

} // namespace transept::tests

#endif
