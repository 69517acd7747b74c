// Processors that threads may run on.
#ifndef TRANSEPT_RUNTIME_CPUAFFINITY_H
#define TRANSEPT_RUNTIME_CPUAFFINITY_H

#include <vector>

namespace transept {

/// The calling thread's affinity mask, ascending; empty where it cannot be read.
std::vector<int> availableCpus();

/// The processor the calling thread runs on, -1 if unknown. A few nanoseconds.
int currentCpu();

/// Moves the calling thread to `cpu` and leaves it free to run on all of `cpus` from then on.
void moveToCpu(int cpu, const std::vector<int> &cpus);

} // namespace transept

#endif
