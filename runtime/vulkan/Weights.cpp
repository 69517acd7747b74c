#include "runtime/vulkan/Weights.h"

#include "runtime/Expr.h"

#include <algorithm>

namespace transept::vulkan {

namespace {

struct Extent {
  uint64_t begin, end;
};

/// What the constants of all entries cover, ascending and without overlaps. A constant without bytes covers one, so
/// that it has a place.
Result<std::vector<Extent>> coveredExtents(const program::Manifest &manifest) {
  std::vector<Extent> extents;
  for (const program::Entry &entry : manifest.entries())
    for (const program::Buffer &buffer : entry.buffers()) {
      if (buffer.storage() != program::CONSTANT)
        continue;
      TRANSEPT_ASSIGN(int64_t offset, evaluateExpr(buffer.offset(), {})); // verified at load, as are the bytes
      TRANSEPT_ASSIGN(int64_t bytes, evaluateExpr(buffer.bytes(), {}));
      auto begin = static_cast<uint64_t>(offset);
      extents.push_back({begin, begin + std::max<uint64_t>(static_cast<uint64_t>(bytes), 1)});
    }
  std::sort(extents.begin(), extents.end(),
            [](const Extent &a, const Extent &b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  std::vector<Extent> merged;
  for (const Extent &extent : extents)
    if (!merged.empty() && extent.begin < merged.back().end)
      merged.back().end = std::max(merged.back().end, extent.end);
    else
      merged.push_back(extent);
  return merged;
}

} // namespace

Result<Weights> Weights::upload(const LogicalDevice &device, const program::Manifest &manifest,
                                Span<const uint8_t> packed) {
  TRANSEPT_ASSIGN(std::vector<Extent> extents, coveredExtents(manifest));
  Weights weights;
  for (const Extent &extent : extents)
    if (!weights.ranges_.empty() && extent.end - weights.ranges_.back().begin <= device.allocationLimit())
      weights.ranges_.back().end = extent.end;
    else
      weights.ranges_.push_back({extent.begin, extent.end, nullptr});
  for (Range &range : weights.ranges_) {
    Result<std::unique_ptr<VulkanMemory>> memory = device.allocate(range.end - range.begin, MemoryUse::Kernels);
    if (!memory.ok())
      return memory.status().withContext("weights");
    range.memory = memory.take();
    uint64_t end = std::min<uint64_t>(range.end, packed.size());
    if (range.begin < end)
      TRANSEPT_TRY(device.upload(*range.memory, 0, packed.data() + range.begin, end - range.begin));
  }
  return weights;
}

DevicePlace Weights::at(uint64_t offset) const {
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), offset,
                                [](uint64_t value, const Range &range) { return value < range.begin; });
  const Range &range = *(after - 1); // every constant lies in one
  return {range.memory.get(), offset - range.begin};
}

} // namespace transept::vulkan
