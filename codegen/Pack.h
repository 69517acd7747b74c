//===- Pack.h - from programs to the contents of an artifact ----------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Phase 12 but for the file itself: the manifest and the bytes of the weights section. Same module, same bytes.

#ifndef TRANSEPT_CODEGEN_PACK_H
#define TRANSEPT_CODEGEN_PACK_H

#include "codegen/Codegen.h"
#include "ir/Diagnostic.h"
#include "ir/Kernel.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/program.pb.h"
#include <map>
#include <string>
#include <vector>

namespace mlir::kernel {

/// Where every constant of a module lies in the weights section, and its packed bytes. Each distinct constant is there
/// once, at a multiple of 256 bytes; matrices in panels that are a run of the parts of another constant share its
/// bytes. Reads the context's WeightStore; the module must outlive it.
class PackedWeights {
public:
  /// Takes `bytes` more bytes of the section; false ends the writing.
  using Sink = llvm::function_ref<bool(const void *data, uint64_t bytes)>;

  /// Fails where a key has no content or a content of another shape.
  static transept::Outcome<PackedWeights> of(ModuleOp module);

  /// Length of the section, with 256 bytes of slack behind the last constant; 0 without constants.
  uint64_t bytes() const { return total; }
  /// Sum over the constants without padding: what `inspect` calls unique.
  uint64_t uniqueBytes() const { return unique; }
  /// Of a buffer with storage "constant".
  uint64_t offsetOf(BufferOp buffer) const;
  uint64_t bytesOf(BufferOp buffer) const;
  /// Passes the whole section, front to back, in pieces of at most a few megabytes. False if the sink said so.
  bool write(Sink sink) const;

private:
  struct Part {
    std::string key;
    bool transposed = false;
    bool operator<(const Part &other) const {
      return std::tie(key, transposed) < std::tie(other.key, other.transposed);
    }
    bool operator==(const Part &other) const { return key == other.key && transposed == other.transposed; }
  };
  struct Constant {
    std::vector<Part> parts;
    bool panels = false;
    uint64_t offset = 0, bytes = 0;
    bool shared = false; // inside another one
  };

  std::optional<transept::Failure> add(BufferOp buffer);
  void place();
  const Constant &constantOf(BufferOp buffer) const;
  bool writeConstant(const Constant &constant, Sink sink) const;

  MLIRContext *context = nullptr;
  std::vector<Constant> constants;                              // in the order of first use
  std::map<std::pair<bool, std::vector<Part>>, size_t> indexOf; // by layout and parts
  uint64_t total = 0, unique = 0;
};

/// What the manifest says beside the module.
struct ManifestInputs {
  struct Code {
    std::string target, level;
    std::vector<std::string> features;
    std::string section;
    /// Where the shaders of target "vulkan" lie in the section, one per kernel.
    std::vector<VulkanCode::Shader> shaders;
  };
  std::string producer; // "transept 0.1.0"
  std::string precision;
  std::string weightsSection;
  std::vector<Code> code;
  /// Kind as the runtime knows it, and the sections that hold its files.
  std::string tokenizerKind;
  std::vector<std::string> tokenizerFiles;
};

/// The manifest of a scheduled module (kernel.func with `items`), its generation settings taken from the module
/// attributes `transept.export` and `transept.generation`.
transept::Outcome<::transept::program::Manifest> makeManifest(ModuleOp module, const PackedWeights &weights,
                                                              const ManifestInputs &inputs);

/// A size expression in the manifest's postfix form. Every symbol must be one of `symbols`.
::transept::program::Expr makeExpr(transept::DimAttr dim, ArrayRef<StringRef> symbols);

} // namespace mlir::kernel

#endif // TRANSEPT_CODEGEN_PACK_H
