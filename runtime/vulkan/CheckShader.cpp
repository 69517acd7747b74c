#include "runtime/vulkan/CheckShader.h"

#include "runtime/vulkan/Features.h"
#include "transept/abi.h"

#include <algorithm>
#include <cstring>

namespace transept::vulkan {

namespace {

// Numbers of the SPIR-V specification.
constexpr uint32_t magic = 0x07230203, newestVersion = 0x00010500, idLimit = 0x400000;
constexpr size_t headerWords = 5;
enum Opcode : uint32_t { OpMemoryModel = 14, OpEntryPoint = 15, OpExecutionMode = 16, OpCapability = 17 };
constexpr uint32_t physicalStorageBuffer64 = 5348, glslMemoryModel = 1, vulkanMemoryModel = 3, computeModel = 5,
                   localSizeMode = 17;

struct Capability {
  uint32_t number;
  const char *feature; // null: every device has it
};

constexpr Capability capabilities[] = {
    {0, nullptr},                     // Matrix
    {1, nullptr},                     // Shader
    {9, "shaderFloat16"},             // Float16
    {10, "shaderFloat64"},            // Float64
    {11, "shaderInt64"},              // Int64
    {12, "shaderBufferInt64Atomics"}, // Int64Atomics
    {22, "shaderInt16"},              // Int16
    {39, "shaderInt8"},               // Int8
    {61, nullptr},                    // GroupNonUniform
    {63, "subgroupArithmetic"},       // GroupNonUniformArithmetic
    {4433, "storageBuffer16BitAccess"},
    {4448, "storageBuffer8BitAccess"},
    {5345, "vulkanMemoryModel"},
    {5346, "vulkanMemoryModelDeviceScope"},
    {5347, "bufferDeviceAddress"},     // PhysicalStorageBufferAddresses
    {6016, "shaderIntegerDotProduct"}, // DotProductInputAll
    {6017, "shaderIntegerDotProduct"}, // DotProductInput4x8Bit
    {6018, "shaderIntegerDotProduct"}, // DotProductInput4x8BitPacked
    {6019, "shaderIntegerDotProduct"}, // DotProduct
    {6022, matrixInt8},                // CooperativeMatrixKHR
};

Status refuse(const std::string &why) { return {Code::ArtifactRefused, why}; }

bool contains(const std::vector<std::string> &features, const char *feature) {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

Status checkCapability(uint32_t number, const std::vector<std::string> &features) {
  for (const Capability &capability : capabilities)
    if (capability.number == number)
      return !capability.feature || contains(features, capability.feature)
                 ? Status()
                 : refuse(std::string("uses ") + capability.feature + ", which its code object does not name");
  return refuse("uses SPIR-V capability " + std::to_string(number) + ", which this runtime does not know");
}

/// The name in an OpEntryPoint, from its word 3 on; empty where it does not end.
std::string entryName(const uint32_t *words, size_t count) {
  std::string bytes(reinterpret_cast<const char *>(words), count * sizeof(uint32_t));
  size_t end = bytes.find('\0');
  return end == std::string::npos ? std::string() : bytes.substr(0, end);
}

/// What a module has declared so far.
struct Declared {
  int memoryModels = 0, entryPoints = 0, sizes = 0;
};

Status checkInstruction(const uint32_t *words, size_t count, uint32_t groupSize,
                        const std::vector<std::string> &features, Declared &declared) {
  switch (words[0] & 0xffff) {
  case OpCapability:
    return count == 2 ? checkCapability(words[1], features) : refuse("has a malformed capability");
  case OpMemoryModel:
    ++declared.memoryModels;
    return count == 3 && words[1] == physicalStorageBuffer64 &&
                   (words[2] == glslMemoryModel ||
                    (words[2] == vulkanMemoryModel && contains(features, "vulkanMemoryModel")))
               ? Status()
               : refuse("has another memory model");
  case OpEntryPoint:
    ++declared.entryPoints;
    return count > 3 && words[1] == computeModel && entryName(words + 3, count - 3) == TRANSEPT_SHADER_ENTRY_POINT
               ? Status()
               : refuse(std::string("has an entry point other than ") + TRANSEPT_SHADER_ENTRY_POINT);
  case OpExecutionMode:
    if (count < 3 || words[2] != localSizeMode)
      return {};
    ++declared.sizes;
    return count == 6 && words[3] == groupSize && words[4] == 1 && words[5] == 1
               ? Status()
               : refuse("has workgroups of another size than " + std::to_string(groupSize));
  default:
    return {};
  }
}

} // namespace

Status checkShader(Span<const uint32_t> module, uint32_t groupSize, const std::vector<std::string> &features) {
  if (module.size() < headerWords || module[0] != magic)
    return refuse("is no SPIR-V module");
  if (module[1] > newestVersion || module[3] == 0 || module[3] > idLimit || module[4] != 0)
    return refuse("is a SPIR-V module of an unknown version, or malformed");
  Declared declared;
  for (size_t at = headerWords; at < module.size();) {
    size_t count = module[at] >> 16;
    if (count == 0 || count > module.size() - at)
      return refuse("ends inside an instruction");
    TRANSEPT_TRY(checkInstruction(module.data() + at, count, groupSize, features, declared));
    at += count;
  }
  if (declared.memoryModels != 1 || declared.entryPoints != 1 || declared.sizes != 1)
    return refuse("is not one compute shader with one size of workgroups");
  return {};
}

} // namespace transept::vulkan
