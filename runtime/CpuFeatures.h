// What the processor can do and the operating system lets it do.
#ifndef TRANSEPT_RUNTIME_CPUFEATURES_H
#define TRANSEPT_RUNTIME_CPUFEATURES_H

#include <string>
#include <string_view>
#include <vector>

namespace transept {

/// Usable instruction sets by their LLVM names ("avx2", "fma", "avx512f" …), from cpuid and XCR0, or what the
/// system says of an Arm processor.
std::vector<std::string> cpuFeatures();

/// Levels of generated code, of each architecture the best first: "avx512bf16", "avx512vnni", "avx512", "avx2",
/// "x86-64"; "neon".
const std::vector<std::string> &cpuLevels();

/// The features of a level that the manifest need not repeat; empty for an unknown level.
std::vector<std::string> levelFeatures(std::string_view level);

} // namespace transept

#endif
