#include "runtime/vulkan/Clock.h"

namespace transept::vulkan {

Result<std::unique_ptr<Clock>> Clock::create(const LogicalDevice &device, size_t dispatches) {
  std::unique_ptr<Clock> clock(new Clock(device, dispatches));
  VkQueryPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = clock->queries_;
  TRANSEPT_TRY(resultStatus(device.api().CreateQueryPool(device.handle(), &info, nullptr, &clock->pool_),
                            "no queries of the device's clock"));
  return std::move(clock);
}

Clock::~Clock() {
  if (pool_)
    device_.api().DestroyQueryPool(device_.handle(), pool_, nullptr);
}

void Clock::reset(VkCommandBuffer commands) const { device_.api().CmdResetQueryPool(commands, pool_, 0, queries_); }

void Clock::before(VkCommandBuffer commands, uint32_t kernel, int64_t items) {
  write(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT);
  dispatches_.push_back({kernel, items});
}

void Clock::after(VkCommandBuffer commands) { write(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT); }

void Clock::write(VkCommandBuffer commands, VkPipelineStageFlagBits stage) {
  device_.api().CmdWriteTimestamp(commands, stage, pool_, next_++);
}

Status Clock::read(int entry, int64_t start, std::vector<Trace::Span> &spans) const {
  std::vector<uint64_t> ticks(queries_);
  TRANSEPT_TRY(resultStatus(device_.api().GetQueryPoolResults(
                                device_.handle(), pool_, 0, queries_, ticks.size() * sizeof(uint64_t), ticks.data(),
                                sizeof(uint64_t), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
                            "the device's clock cannot be read"));
  const uint32_t bits = device_.physical().timestampBits;
  const uint64_t mask = bits < 64 ? (uint64_t(1) << bits) - 1 : ~uint64_t(0);
  auto time = [&](size_t i) {
    double elapsed = static_cast<double>((ticks[i] - ticks[0]) & mask);
    return start + static_cast<int64_t>(elapsed * device_.physical().timestampPeriod);
  };
  for (size_t i = 0; i < dispatches_.size(); ++i)
    spans.push_back({entry, dispatches_[i].kernel, dispatches_[i].items, time(2 * i), time(2 * i + 1)});
  return {};
}

} // namespace transept::vulkan
