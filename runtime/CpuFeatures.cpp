#include "runtime/CpuFeatures.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace transept {

#if defined(__x86_64__)

namespace {

enum class Register { Ebx, Ecx, Edx, Eax };
enum class Saved { Always, Avx, Avx512 }; // register state the system must save

struct Feature {
  const char *name;
  unsigned leaf, subleaf;
  Register reg;
  int bit;
  Saved saved;
};

constexpr Feature features[] = {
    {"sse2", 1, 0, Register::Edx, 26, Saved::Always},       {"sse4.2", 1, 0, Register::Ecx, 20, Saved::Always},
    {"popcnt", 1, 0, Register::Ecx, 23, Saved::Always},     {"fma", 1, 0, Register::Ecx, 12, Saved::Avx},
    {"avx", 1, 0, Register::Ecx, 28, Saved::Avx},           {"f16c", 1, 0, Register::Ecx, 29, Saved::Avx},
    {"bmi", 7, 0, Register::Ebx, 3, Saved::Always},         {"avx2", 7, 0, Register::Ebx, 5, Saved::Avx},
    {"bmi2", 7, 0, Register::Ebx, 8, Saved::Always},        {"avx512f", 7, 0, Register::Ebx, 16, Saved::Avx512},
    {"avx512dq", 7, 0, Register::Ebx, 17, Saved::Avx512},   {"avx512cd", 7, 0, Register::Ebx, 28, Saved::Avx512},
    {"avx512bw", 7, 0, Register::Ebx, 30, Saved::Avx512},   {"avx512vl", 7, 0, Register::Ebx, 31, Saved::Avx512},
    {"avx512vbmi", 7, 0, Register::Ecx, 1, Saved::Avx512},  {"avx512vbmi2", 7, 0, Register::Ecx, 6, Saved::Avx512},
    {"avx512vnni", 7, 0, Register::Ecx, 11, Saved::Avx512}, {"avx512bitalg", 7, 0, Register::Ecx, 12, Saved::Avx512},
    {"avx512fp16", 7, 0, Register::Edx, 23, Saved::Avx512}, {"avxvnni", 7, 1, Register::Eax, 4, Saved::Avx},
    {"avx512bf16", 7, 1, Register::Eax, 5, Saved::Avx512},
};

/// XCR0, or 0 where the system does not use xsave.
unsigned long long enabledState() {
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & (1u << 27)))
    return 0;
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<unsigned long long>(high) << 32) | low;
}

} // namespace

std::vector<std::string> cpuFeatures() {
  unsigned long long state = enabledState();
  bool avx = (state & 0x6) == 0x6, avx512 = (state & 0xE6) == 0xE6;
  std::vector<std::string> found;
  for (const Feature &feature : features) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (!__get_cpuid_count(feature.leaf, feature.subleaf, &eax, &ebx, &ecx, &edx))
      continue;
    unsigned value = feature.reg == Register::Ebx   ? ebx
                     : feature.reg == Register::Ecx ? ecx
                     : feature.reg == Register::Edx ? edx
                                                    : eax;
    bool saved = feature.saved == Saved::Always || (feature.saved == Saved::Avx && avx) ||
                 (feature.saved == Saved::Avx512 && avx512);
    if (saved && (value >> feature.bit & 1))
      found.push_back(feature.name);
  }
  return found;
}

#elif defined(__aarch64__)

std::vector<std::string> cpuFeatures() {
  constexpr unsigned long advancedSimd = 1ul << 1; // HWCAP_ASIMD of the system's interface
  if (getauxval(AT_HWCAP) & advancedSimd)
    return {"neon"};
  return {};
}

#else

std::vector<std::string> cpuFeatures() { return {}; }

#endif

const std::vector<std::string> &cpuLevels() {
  static const std::vector<std::string> levels = {"avx512bf16", "avx512vnni", "avx512", "avx2", "x86-64", "neon"};
  return levels;
}

std::vector<std::string> levelFeatures(std::string_view level) {
  std::vector<std::string> avx512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2",
                                     "fma",     "f16c",     "bmi",      "bmi2",     "popcnt"};
  if (level == "avx512")
    return avx512;
  if (level == "avx512vnni" || level == "avx512bf16") {
    avx512.emplace_back(level);
    return avx512;
  }
  if (level == "avx2")
    return {"avx2", "fma", "f16c", "bmi", "bmi2", "popcnt"};
  if (level == "x86-64")
    return {"sse2"};
  if (level == "neon")
    return {"neon"};
  return {};
}

} // namespace transept
