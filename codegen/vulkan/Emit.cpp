//===- Emit.cpp - SPIR-V modules as words -------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/Codegen.h"
#include "codegen/vulkan/FinishWords.h"
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

/// Names of what the capabilities of a module need.
static void addFeatures(spirv::ModuleOp shader, llvm::SetVector<StringRef> &features) {
  for (spirv::Capability capability : shader.getVceTriple()->getCapabilities())
    if (StringRef feature = featureOf(capability); !feature.empty())
      features.insert(feature);
}

/// Memory that the workgroup shares, in all and for each invocation.
static std::pair<uint64_t, uint64_t> sharedBytesOf(spirv::ModuleOp shader) {
  uint64_t all = 0, each = 0;
  for (auto variable : shader.getOps<spirv::GlobalVariableOp>()) {
    auto pointer = cast<spirv::PointerType>(variable.getType());
    auto array = dyn_cast<spirv::ArrayType>(pointer.getPointeeType());
    if (pointer.getStorageClass() != spirv::StorageClass::Workgroup || !array)
      continue;
    uint64_t bytes = (array.getElementType().getIntOrFloatBitWidth() + 7) / 8;
    if (std::optional<int64_t> count = vulkan::perInvocationOf(array.getNumElements()))
      each += *count * bytes;
    else
      all += array.getNumElements() * bytes;
  }
  return {all, each};
}

FailureOr<VulkanCode> kernel::emitLoweredVulkan(ModuleOp lowered) {
  VulkanCode code;
  llvm::SetVector<StringRef> features; // of plain shaders
  bool isNext = true;                  // kernel
  for (auto shader : lowered.getOps<spirv::ModuleOp>()) {
    SmallVector<uint32_t, 0> words;
    spirv::SerializationOptions options;
    options.emitSymbolName = false;
    if (failed(spirv::serialize(shader, words, options)))
      return shader.emitError("the shader cannot be serialised");
    vulkan::finishWords(words);
    if (isNext)
      code.shaders.emplace_back();
    auto [sharedBytes, sharedBytesPerInvocation] = sharedBytesOf(shader);
    VulkanCode::Variant &variant = code.shaders.back().emplace_back(VulkanCode::Variant{
        code.bytes.size(), words.size() * sizeof(uint32_t), {}, sharedBytes, sharedBytesPerInvocation});
    for (uint32_t word : words) {
      char bytes[sizeof(uint32_t)];
      llvm::support::endian::write32le(bytes, word);
      code.bytes.append(bytes, sizeof(bytes));
    }
    auto own = shader->getAttrOfType<ArrayAttr>(shaderFeaturesAttrName);
    isNext = !own;
    if (own) {
      for (auto feature : own.getAsRange<StringAttr>())
        variant.features.push_back(feature.str());
      llvm::sort(variant.features);
    } else {
      addFeatures(shader, features);
    }
  }
  if (!isNext)
    return lowered.emitError("the last kernel has no plain shader");
  for (StringRef feature : features)
    code.features.push_back(feature.str());
  llvm::sort(code.features);
  return code;
}
