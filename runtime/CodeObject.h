// Native code of an artifact.
#ifndef TRANSEPT_RUNTIME_CODEOBJECT_H
#define TRANSEPT_RUNTIME_CODEOBJECT_H

#include "runtime/Span.h"
#include "runtime/Status.h"
#include "runtime/program.pb.h"
#include "transept/abi.h"

#include <cstdint>
#include <string>
#include <vector>

namespace transept {

/// The best code object for a processor with `features`, or the one of level `wanted` where that is not empty.
/// Fails with Code::ArtifactRefused naming what each level lacks, and with Code::Usage for an unknown level.
Result<const program::CodeObject *> chooseCode(const program::Manifest &manifest, const std::string &wanted,
                                               const std::vector<std::string> &features);

/// A shared object in executable memory, unmapped by the destructor.
class CodeObject {
public:
  /// `image` must have passed its hash: loading it runs it. `kernelCount` is what its table must hold.
  static Result<CodeObject> load(Span<const uint8_t> image, uint32_t kernelCount);

  CodeObject() = default;
  CodeObject(CodeObject &&other) noexcept;
  CodeObject &operator=(CodeObject &&other) noexcept;
  ~CodeObject();

  const transept_kernel_table &kernels() const { return *table_; }

private:
  void *library_ = nullptr;
  int file_ = -1; // kept open: the loader tells libraries apart by the name /proc/self/fd/N
  const transept_kernel_table *table_ = nullptr;
};

} // namespace transept

#endif
