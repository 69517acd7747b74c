//===- Emit.cpp - SPIR-V modules as words -------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/Codegen.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Target/SPIRV/Serialization.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Endian.h"

using namespace mlir;
using namespace mlir::kernel;

/// The field of Vulkan's feature structs that stands for a capability; empty where every device has it.
static StringRef featureOf(spirv::Capability capability) {
  switch (capability) {
  case spirv::Capability::PhysicalStorageBufferAddresses:
    return "bufferDeviceAddress";
  case spirv::Capability::Int64:
    return "shaderInt64";
  case spirv::Capability::Int16:
    return "shaderInt16";
  case spirv::Capability::Int8:
    return "shaderInt8";
  case spirv::Capability::Float64:
    return "shaderFloat64";
  case spirv::Capability::StorageBuffer16BitAccess:
    return "storageBuffer16BitAccess";
  case spirv::Capability::StorageBuffer8BitAccess:
    return "storageBuffer8BitAccess";
  default:
    return {};
  }
}

/// Says of every sum and product that it is to be rounded on its own: formulas rely on it, and a driver may otherwise
/// contract them.
static void forbidContraction(SmallVectorImpl<uint32_t> &words) {
  constexpr uint32_t header = 5, decorate = 71, noContraction = 42;
  constexpr uint32_t fAdd = 129, fSub = 131, fMul = 133, typeVoid = 19;
  SmallVector<uint32_t> decorations;
  size_t types = words.size();
  for (size_t at = header; at < words.size(); at += words[at] >> 16) {
    uint32_t code = words[at] & 0xffff;
    // Decorations come right before the first type, constant or variable; serialize begins with the decorated types.
    if (types == words.size() && (code == typeVoid || (code > typeVoid && code <= 59)))
      types = at;
    if (code == fAdd || code == fSub || code == fMul)
      decorations.append({3u << 16 | decorate, words[at + 2], noContraction});
  }
  words.insert(words.begin() + types, decorations.begin(), decorations.end());
}

FailureOr<VulkanCode> kernel::emitLoweredVulkan(ModuleOp lowered) {
  VulkanCode code;
  llvm::SetVector<StringRef> features;
  for (auto shader : lowered.getOps<spirv::ModuleOp>()) {
    SmallVector<uint32_t, 0> words;
    spirv::SerializationOptions options;
    options.emitSymbolName = false;
    if (failed(spirv::serialize(shader, words, options)))
      return shader.emitError("the shader cannot be serialised");
    forbidContraction(words);
    code.shaders.push_back({code.bytes.size(), words.size() * sizeof(uint32_t)});
    for (uint32_t word : words) {
      char bytes[sizeof(uint32_t)];
      llvm::support::endian::write32le(bytes, word);
      code.bytes.append(bytes, sizeof(bytes));
    }
    for (spirv::Capability capability : shader.getVceTriple()->getCapabilities())
      if (StringRef feature = featureOf(capability); !feature.empty())
        features.insert(feature);
  }
  for (StringRef feature : features)
    code.features.push_back(feature.str());
  llvm::sort(code.features);
  return code;
}
