#include "StepReads.h"

#include "runtime/Expr.h"
#include "runtime/Plan.h"
#include "runtime/search/BlockPool.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace transept::tool {

namespace {

using Range = std::pair<int64_t, int64_t>; // [begin, end) in the weights

int64_t lengthOf(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end());
  int64_t total = 0, end = 0;
  for (const Range &range : ranges) {
    total += std::max<int64_t>(range.second - std::max(range.first, end), 0);
    end = std::max(end, range.second);
  }
  return total;
}

} // namespace

int64_t constantsRead(const program::Manifest &manifest, const program::Entry &entry) {
  std::vector<Range> ranges;
  for (const program::Dispatch &dispatch : entry.dispatches()) {
    const auto &picked = manifest.kernels(static_cast<int>(dispatch.kernel())).picked();
    for (int i = 0; i < dispatch.buffers_size(); ++i) {
      const program::Buffer &buffer = entry.buffers(static_cast<int>(dispatch.buffers(i)));
      if (buffer.storage() != program::CONSTANT ||
          std::find(picked.begin(), picked.end(), static_cast<uint32_t>(i)) != picked.end())
        continue;
      // Constants have places of their own, verified at load.
      Result<int64_t> offset = evaluateExpr(buffer.offset(), {}), bytes = evaluateExpr(buffer.bytes(), {});
      if (offset.ok() && bytes.ok())
        ranges.emplace_back(*offset, *offset + *bytes);
    }
  }
  return lengthOf(std::move(ranges));
}

Result<CacheReads> cacheReads(const program::Manifest &manifest, int64_t source) {
  std::vector<int64_t> symbols, dims;
  for (const program::Symbol &symbol : manifest.generation_symbols())
    symbols.push_back(symbol.name() == "source" ? source : 1);
  CacheReads reads;
  for (const program::State &state : manifest.states()) {
    TRANSEPT_ASSIGN(int64_t bytes, denseBytes(state.dtype(), state.dims(), symbols, dims));
    if (state.role() == "self-cache")
      reads.selfPerPosition += bytes / search::BlockPool::blockPositions; // of one block
    else if (state.role() == "recurrent-state")
      reads.recurrentPerRow += bytes;
    else if (state.role() == "cross-cache")
      reads.crossPerSource += bytes;
  }
  return reads;
}

} // namespace transept::tool
