// The floating-point environment in which kernels compute.
#ifndef TRANSEPT_RUNTIME_FLOATMODE_H
#define TRANSEPT_RUNTIME_FLOATMODE_H

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace transept {

/// While it lives, the calling thread rounds to nearest even, keeps denormals and traps nothing, whatever its host set.
class FloatMode {
public:
#if defined(__x86_64__)
  FloatMode() : saved_(_mm_getcsr()) { _mm_setcsr(0x1F80); } // the reset value: all exceptions masked
  ~FloatMode() { _mm_setcsr(saved_); }

private:
  uint32_t saved_;
#elif defined(__aarch64__)
  FloatMode() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved_));
    __asm__ volatile("msr fpcr, %0" : : "r"(uint64_t(0)));
  }
  ~FloatMode() { __asm__ volatile("msr fpcr, %0" : : "r"(saved_)); }

private:
  uint64_t saved_;
#else
  FloatMode() {}
#endif

public:
  FloatMode(const FloatMode &) = delete;
  FloatMode &operator=(const FloatMode &) = delete;
};

} // namespace transept

#endif
