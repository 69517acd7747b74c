// The processor as a device: memory of the process, kernels as functions, a walk of all threads.
#ifndef TRANSEPT_RUNTIME_CPUDEVICE_H
#define TRANSEPT_RUNTIME_CPUDEVICE_H

#include "runtime/CodeObject.h"
#include "runtime/Device.h"
#include "runtime/Memory.h"

namespace transept {

class CpuDevice final : public Device {
public:
  /// Takes the weights over.
  CpuDevice(CodeObject code, std::string level, Block weights);
  /// Kernels that the caller keeps (tests).
  CpuDevice(const transept_kernel_table &kernels, Block weights);

  std::string name() const override { return "cpu"; }
  const std::string &level() const override { return level_; }
  Result<std::unique_ptr<DeviceMemory>> allocate(uint64_t bytes, Access access) const override;
  Status clear(DeviceMemory &memory, uint64_t bytes) const override;
  DevicePlace constant(uint64_t offset) const override { return {weights_.get(), offset}; }
  transept_kernel function(uint32_t kernel) const override { return kernels_.kernels[kernel]; }
  const program::Expr *items(uint32_t) const override { return nullptr; }
  Result<std::unique_ptr<Executor>> createExecutor(ThreadTeam &team, Trace *trace) const override;

private:
  CodeObject code_;
  transept_kernel_table kernels_;
  std::string level_;
  std::unique_ptr<DeviceMemory> weights_;
};

} // namespace transept

#endif
