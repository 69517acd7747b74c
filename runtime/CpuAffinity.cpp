#include "runtime/CpuAffinity.h"

#include <sched.h>

namespace transept {

namespace {

/// A mask for processors below `limit`.
class CpuMask {
public:
  explicit CpuMask(int limit)
      : limit_(limit), set_(CPU_ALLOC(static_cast<size_t>(limit))), bytes_(CPU_ALLOC_SIZE(static_cast<size_t>(limit))) {
    if (set_)
      CPU_ZERO_S(bytes_, set_);
  }
  ~CpuMask() { CPU_FREE(set_); }
  CpuMask(const CpuMask &) = delete;
  CpuMask &operator=(const CpuMask &) = delete;

  void add(int cpu) {
    if (set_)
      CPU_SET_S(static_cast<size_t>(cpu), bytes_, set_);
  }
  bool read() { return set_ && sched_getaffinity(0, bytes_, set_) == 0; }
  bool apply() const { return set_ && sched_setaffinity(0, bytes_, set_) == 0; }
  std::vector<int> list() const {
    std::vector<int> cpus;
    for (int cpu = 0; cpu < limit_; ++cpu)
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes_, set_))
        cpus.push_back(cpu);
    return cpus;
  }

private:
  int limit_;
  cpu_set_t *set_;
  size_t bytes_;
};

} // namespace

std::vector<int> availableCpus() {
  for (int limit = 1024; limit <= 1 << 20; limit *= 4) { // the kernel refuses masks that are too small
    CpuMask mask(limit);
    if (mask.read())
      return mask.list();
  }
  return {};
}

int currentCpu() { return sched_getcpu(); }

void moveToCpu(int cpu, const std::vector<int> &cpus) {
  if (cpus.empty())
    return;
  CpuMask one(cpus.back() + 1), all(cpus.back() + 1);
  one.add(cpu);
  for (int other : cpus)
    all.add(other);
  if (one.apply())
    all.apply();
}

} // namespace transept
