// Whether a SPIR-V module is what the manifest says of it, before a driver sees it.
#ifndef TRANSEPT_RUNTIME_VULKAN_CHECKSHADER_H
#define TRANSEPT_RUNTIME_VULKAN_CHECKSHADER_H

#include "runtime/Span.h"
#include "runtime/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace transept::vulkan {

/// Checks that the module is a sequence of whole instructions of a version that Vulkan 1.2 takes, that it is one
/// compute shader as abi.h describes it with `groupSize` invocations, and that it needs no feature outside of
/// `features`. It does not validate what the instructions compute. Fails with Code::ArtifactRefused.
Status checkShader(Span<const uint32_t> module, uint32_t groupSize, const std::vector<std::string> &features);

} // namespace transept::vulkan

#endif
