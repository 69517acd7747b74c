// A loaded artifact: immutable, shared by any number of sessions and threads.
#ifndef TRANSEPT_RUNTIME_MODEL_H
#define TRANSEPT_RUNTIME_MODEL_H

#include "runtime/Artifact.h"
#include "runtime/Device.h"
#include "runtime/Session.h"
#include "runtime/Trace.h"
#include "runtime/vulkan/VulkanDevices.h"

#include <memory>
#include <string>

namespace transept {

struct ModelOptions {
  std::string cpu;         // level to use ("avx512", "avx2" …); empty: the best this processor can run
  bool mapWeights = false; // share the file's pages instead of owning a copy; the file must not be changed in place
  int threads = 0;         // that read and hash the weights; 0: as many as the affinity mask allows
  std::string device;      // "cpu", "vulkan:N"; empty: the processor where the artifact has code for it, else vulkan:0
  VulkanOptions vulkan;
  bool trace = false; // whether sessions say when their kernels ran
};

class Model : public std::enable_shared_from_this<Model> {
public:
  static Result<std::shared_ptr<const Model>> load(const std::string &path, const ModelOptions &options = {});

  /// A model from parts that are already checked; `kernels` replaces a code object (tests).
  static Result<std::shared_ptr<const Model>> fromParts(Artifact artifact, const transept_kernel_table &kernels);

  const program::Manifest &manifest() const { return artifact_.manifest(); }
  const Artifact &artifact() const { return artifact_; }
  const Device &device() const { return *device_; }
  /// The level of the code in use.
  const std::string &level() const { return device_->level(); }

  /// What all sessions together ran; null where nobody asked for it.
  Trace *trace() const { return trace_.get(); }

  /// Index of an entry, -1 where there is none.
  int findEntry(std::string_view name) const;

  Result<std::unique_ptr<Session>> createSession(const SessionOptions &options = {}) const {
    return Session::create(shared_from_this(), options);
  }

private:
  Model() = default;
  Artifact artifact_; // without the weights, which the device has
  std::unique_ptr<const Device> device_;
  std::unique_ptr<Trace> trace_;
};

} // namespace transept

#endif
