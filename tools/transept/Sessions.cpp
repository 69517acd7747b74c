#include "Sessions.h"

#include "StepReads.h"

#include <algorithm>
#include <cmath>

namespace transept::tool {

namespace {

/// Work that a thread should have of a dispatch. A processor multiplies about 200 bytes by a row in a nanosecond,
/// whatever the precision, since narrow weights are multiplied faster; a barrier takes up to ten microseconds.
constexpr double workOfThread = 100e6;
/// Positions of an input and its output, as far as the model has so many.
constexpr int64_t usualPositions = 256;

} // namespace

SessionNeeds sessionNeeds(const program::Manifest &manifest, int64_t batch) {
  SessionNeeds needs;
  const program::Generation &generation = manifest.generation();
  for (const program::Entry &entry : manifest.entries())
    if (entry.name() == generation.step() && entry.dispatches_size() > 0)
      needs.work =
          static_cast<double>(batch) * static_cast<double>(constantsRead(manifest, entry)) / entry.dispatches_size();
  auto usual = [](int64_t limit) { return limit > 0 ? std::min(limit, usualPositions) : usualPositions; };
  if (Result<CacheReads> reads = cacheReads(manifest, usual(generation.source_limit())); reads.ok())
    needs.bytes =
        static_cast<double>(batch) *
        (static_cast<double>(reads->selfPerPosition) * static_cast<double>(usual(generation.position_limit())) +
         static_cast<double>(reads->recurrentPerRow) + static_cast<double>(reads->crossPerSource));
  return needs;
}

int suitableSessions(const SessionNeeds &needs, int threads, int64_t memory) {
  const double all = threads, each = std::clamp(needs.work / workOfThread, 1.0, all);
  const double room = needs.bytes > 0 ? static_cast<double>(memory) / 4 / needs.bytes : all;
  return static_cast<int>(std::clamp(std::min(all / std::floor(each), room), 1.0, all));
}

} // namespace transept::tool
