#include "runtime/vulkan/LogicalDevice.h"

#include "runtime/ArtifactFormat.h"
#include "runtime/vulkan/Features.h"
#include "runtime/vulkan/Matrices.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace transept::vulkan {

namespace {

constexpr uint64_t stagingBytes = uint64_t(64) << 20;
/// Behind every buffer: what kernels may read past its end, and what it takes to begin at a multiple of the alignment.
constexpr uint64_t extraBytes = TRANSEPT_BUFFER_SLACK + TRANSEPT_BUFFER_ALIGNMENT;

/// Kinds of memory for a use, the best one first. The last one exists on every device. For kernels there is no second
/// choice: work would go on far more slowly, and nobody would know why.
std::vector<VkMemoryPropertyFlags> wantedProperties(MemoryUse use) {
  const VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  switch (use) {
  case MemoryUse::Kernels:
    return {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
  case MemoryUse::Shared:
    return {visible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
  case MemoryUse::Host:
    return {visible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, visible};
  case MemoryUse::Tables:
    return {visible | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, visible};
  }
  return {};
}

/// Whether the host should work in a copy of the memory that kernels use: where none is near to both.
bool needsMirror(const VkPhysicalDeviceMemoryProperties &types) {
  const VkMemoryPropertyFlags both = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                     VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  return std::none_of(types.memoryTypes, types.memoryTypes + types.memoryTypeCount,
                      [&](const VkMemoryType &type) { return (type.propertyFlags & both) == both; });
}

/// What commands before it copied is visible to the host, once they have been waited for.
void hostReadBarrier(const DeviceApi &api, VkCommandBuffer commands) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  api.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                         nullptr, 0, nullptr);
}

} // namespace

//===-- VulkanMemory ----------------------------------------------------------------------------------------------===//

VulkanMemory::VulkanMemory(const LogicalDevice &device, VkBuffer buffer, VkDeviceMemory memory, uint64_t base,
                           uint64_t serial, uint64_t address, uint8_t *host, uint64_t bytes)
    : DeviceMemory(address, host, bytes), device_(device), buffer_(buffer), memory_(memory), base_(base),
      serial_(serial) {}

/// Takes the first one over, whose buffer it becomes.
VulkanMemory::VulkanMemory(std::unique_ptr<VulkanMemory> kernels, std::unique_ptr<VulkanMemory> mirror)
    : DeviceMemory(kernels->address(), mirror->host(), kernels->size()), device_(kernels->device_),
      buffer_(std::exchange(kernels->buffer_, VK_NULL_HANDLE)),
      memory_(std::exchange(kernels->memory_, VK_NULL_HANDLE)), base_(kernels->base_), serial_(kernels->serial_),
      mirror_(std::move(mirror)) {}

VulkanMemory::~VulkanMemory() {
  if (mirror_) {
    std::lock_guard<std::mutex> lock(device_.mirrorMutex_);
    device_.mirrored_.erase(address());
    ++device_.mirrorChanges_;
  }
  device_.api().DestroyBuffer(device_.handle(), buffer_, nullptr);
  device_.api().FreeMemory(device_.handle(), memory_, nullptr);
}

/// A buffer and its memory while they are being made.
struct RawMemory {
  const LogicalDevice &device;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint8_t *mapped = nullptr;

  explicit RawMemory(const LogicalDevice &of) : device(of) {}
  RawMemory(const RawMemory &) = delete;
  ~RawMemory() {
    if (buffer)
      device.api().DestroyBuffer(device.handle(), buffer, nullptr);
    if (memory)
      device.api().FreeMemory(device.handle(), memory, nullptr);
  }

  VkResult make(uint64_t bytes, MemoryUse use) {
    VkBufferCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                 VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    VkResult result = device.api().CreateBuffer(device.handle(), &info, nullptr, &buffer);
    if (result != VK_SUCCESS)
      return result;
    VkMemoryRequirements needs{};
    device.api().GetBufferMemoryRequirements(device.handle(), buffer, &needs);
    result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    // The better kind of memory may be small and full.
    for (VkMemoryPropertyFlags wanted : wantedProperties(use)) {
      result = allocateOf(wanted, needs);
      if (result == VK_SUCCESS || result == VK_ERROR_DEVICE_LOST)
        break;
    }
    if (result == VK_SUCCESS)
      result = device.api().BindBufferMemory(device.handle(), buffer, memory, 0);
    if (result == VK_SUCCESS && use != MemoryUse::Kernels) {
      void *data = nullptr;
      result = device.api().MapMemory(device.handle(), memory, 0, VK_WHOLE_SIZE, 0, &data);
      mapped = static_cast<uint8_t *>(data);
    }
    return result;
  }

private:
  VkResult allocateOf(VkMemoryPropertyFlags wanted, const VkMemoryRequirements &needs) {
    const VkPhysicalDeviceMemoryProperties &types = device.physical().memory;
    for (uint32_t i = 0; i < types.memoryTypeCount; ++i) {
      if (!(needs.memoryTypeBits >> i & 1) || (types.memoryTypes[i].propertyFlags & wanted) != wanted)
        continue;
      VkMemoryAllocateFlagsInfo flags{};
      flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
      flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
      VkMemoryAllocateInfo info{};
      info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
      info.pNext = &flags;
      info.allocationSize = needs.size;
      info.memoryTypeIndex = i;
      return device.api().AllocateMemory(device.handle(), &info, nullptr, &memory);
    }
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
};

//===-- CommandPool -----------------------------------------------------------------------------------------------===//

Result<std::unique_ptr<CommandPool>> CommandPool::create(const LogicalDevice &device) {
  std::unique_ptr<CommandPool> pool(new CommandPool(device));
  VkCommandPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  info.queueFamilyIndex = device.physical().queueFamily;
  TRANSEPT_TRY(resultStatus(device.api().CreateCommandPool(device.handle(), &info, nullptr, &pool->pool_),
                            "cannot create a command pool"));
  VkFenceCreateInfo fence{};
  fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  TRANSEPT_TRY(
      resultStatus(device.api().CreateFence(device.handle(), &fence, nullptr, &pool->fence_), "cannot create a fence"));
  return pool;
}

CommandPool::~CommandPool() {
  if (fence_)
    device_.api().DestroyFence(device_.handle(), fence_, nullptr);
  if (pool_)
    device_.api().DestroyCommandPool(device_.handle(), pool_, nullptr);
}

Result<VkCommandBuffer> CommandPool::record(const std::function<void(VkCommandBuffer)> &record) {
  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = pool_;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  const char *what = "cannot record commands";
  TRANSEPT_TRY(resultStatus(device_.api().AllocateCommandBuffers(device_.handle(), &allocate, &commands), what));
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  VkResult result = device_.api().BeginCommandBuffer(commands, &begin);
  if (result == VK_SUCCESS) {
    record(commands);
    result = device_.api().EndCommandBuffer(commands);
  }
  if (result != VK_SUCCESS) {
    release(commands);
    return resultStatus(result, what);
  }
  return commands;
}

Status CommandPool::run(VkCommandBuffer commands) { return device_.run(commands, fence_); }

void CommandPool::release(VkCommandBuffer commands) {
  device_.api().FreeCommandBuffers(device_.handle(), pool_, 1, &commands);
}

//===-- LogicalDevice ---------------------------------------------------------------------------------------------===//

Result<std::unique_ptr<LogicalDevice>> LogicalDevice::create(std::unique_ptr<Instance> instance,
                                                             const PhysicalDevice &physical,
                                                             const std::vector<std::string> &features) {
  std::unique_ptr<LogicalDevice> device(new LogicalDevice(std::move(instance), physical));
  const InstanceApi &api = device->instance_->api();
  FeatureChain chain(physical.info.apiVersion);
  MatrixFeatures matrices;
  for (const std::string &feature : withImplied(features)) {
    if (feature == subgroupArithmetic)
      continue; // is there or not
    if (feature == matrixInt8) {
      matrices.cooperativeMatrix = VK_TRUE;
      continue;
    }
    VkBool32 *field = chain.find(feature);
    if (!field)
      return Status(Code::Internal, "feature '" + feature + "' is not known");
    *field = VK_TRUE;
  }
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = physical.queueFamily;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  create.pNext = &chain.core;
  if (matrices.cooperativeMatrix) {
    matrices.pNext = &chain.core;
    create.pNext = &matrices;
    create.enabledExtensionCount = 1;
    create.ppEnabledExtensionNames = &matrixExtension;
  }
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  TRANSEPT_TRY(resultStatus(api.CreateDevice(physical.handle, &create, nullptr, &device->device_),
                            "cannot use device '" + printable(physical.info.name) + "'"));
  device->api_.DestroyDevice =
      reinterpret_cast<PFN_vkDestroyDevice>(api.GetDeviceProcAddr(device->device_, "vkDestroyDevice"));
  TRANSEPT_ASSIGN(device->api_, DeviceApi::of(api, device->device_));
  device->api_.GetDeviceQueue(device->device_, physical.queueFamily, 0, &device->queue_);
  TRANSEPT_ASSIGN(device->once_, CommandPool::create(*device));
  TRANSEPT_TRY(device->validation());
  return device;
}

LogicalDevice::~LogicalDevice() {
  once_.reset();
  if (device_ && api_.DestroyDevice)
    api_.DestroyDevice(device_, nullptr);
}

uint64_t LogicalDevice::allocationLimit() const {
  uint64_t most = std::min(physical_.info.maxAllocation, std::numeric_limits<uint64_t>::max() / 2);
  return most > 2 * extraBytes ? most - 2 * extraBytes : 0;
}

Result<std::unique_ptr<VulkanMemory>> LogicalDevice::allocateUncleared(uint64_t bytes, MemoryUse use) const {
  const std::string what =
      "cannot allocate " + std::to_string(bytes) + " bytes on device '" + printable(physical_.info.name) + "'";
  if (lost_)
    return Status(Code::DeviceError, what + ": the device was lost");
  if (bytes > allocationLimit())
    return Status(Code::OutOfMemory,
                  what + ", which allocates at most " + std::to_string(allocationLimit()) + " at once");
  RawMemory raw(*this);
  TRANSEPT_TRY(resultStatus(raw.make(alignUp(bytes, TRANSEPT_BUFFER_ALIGNMENT) + extraBytes, use), what));
  VkBufferDeviceAddressInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  info.buffer = raw.buffer;
  uint64_t address = api_.GetBufferDeviceAddress(device_, &info);
  uint64_t base = alignUp(address, TRANSEPT_BUFFER_ALIGNMENT) - address;
  std::unique_ptr<VulkanMemory> memory(new VulkanMemory(*this, raw.buffer, raw.memory, base, serial_.fetch_add(1) + 1,
                                                        address + base, raw.mapped ? raw.mapped + base : nullptr,
                                                        bytes));
  raw.buffer = VK_NULL_HANDLE;
  raw.memory = VK_NULL_HANDLE;
  return memory;
}

Result<std::unique_ptr<VulkanMemory>> LogicalDevice::allocateMirrored(uint64_t bytes) const {
  TRANSEPT_ASSIGN(std::unique_ptr<VulkanMemory> kernels, allocate(bytes, MemoryUse::Kernels));
  TRANSEPT_ASSIGN(std::unique_ptr<VulkanMemory> mirror, allocate(bytes, MemoryUse::Host));
  std::unique_ptr<VulkanMemory> both(new VulkanMemory(std::move(kernels), std::move(mirror)));
  std::lock_guard<std::mutex> lock(mirrorMutex_);
  mirrored_[both->address()] = both.get();
  ++mirrorChanges_;
  return both;
}

const VulkanMemory *LogicalDevice::mirroredAt(uint64_t address) const {
  std::lock_guard<std::mutex> lock(mirrorMutex_);
  auto after = mirrored_.upper_bound(address);
  if (after == mirrored_.begin())
    return nullptr;
  const VulkanMemory *memory = std::prev(after)->second;
  return address - memory->address() < std::max<uint64_t>(memory->size(), 1) ? memory : nullptr;
}

Result<std::unique_ptr<VulkanMemory>> LogicalDevice::allocate(uint64_t bytes, MemoryUse use) const {
  if (use == MemoryUse::Shared && needsMirror(physical_.memory))
    return allocateMirrored(bytes);
  TRANSEPT_ASSIGN(std::unique_ptr<VulkanMemory> memory, allocateUncleared(bytes, use));
  if (memory->host())
    std::memset(memory->host() - memory->base(), 0, alignUp(bytes, TRANSEPT_BUFFER_ALIGNMENT) + extraBytes);
  else
    TRANSEPT_TRY(runOnce(
        [&](VkCommandBuffer commands) { api_.CmdFillBuffer(commands, memory->buffer(), 0, VK_WHOLE_SIZE, 0); }));
  TRANSEPT_TRY(validation());
  return memory;
}

Status LogicalDevice::clear(VulkanMemory &memory, uint64_t bytes) const {
  if (bytes == 0)
    return {};
  if (memory.host()) {
    std::memset(memory.host(), 0, bytes);
    return {};
  }
  return runOnce([&](VkCommandBuffer commands) {
    api_.CmdFillBuffer(commands, memory.buffer(), memory.base(), alignUp(bytes, 4), 0);
  });
}

Status LogicalDevice::upload(VulkanMemory &memory, uint64_t offset, const uint8_t *data, uint64_t bytes) const {
  if (memory.host()) {
    std::memcpy(memory.host() + offset, data, bytes);
    return {};
  }
  TRANSEPT_ASSIGN(std::unique_ptr<VulkanMemory> staging,
                  allocateUncleared(std::min(bytes, stagingBytes), MemoryUse::Host));
  for (uint64_t done = 0; done < bytes;) {
    uint64_t part = std::min(bytes - done, stagingBytes);
    std::memcpy(staging->host(), data + done, part);
    TRANSEPT_TRY(runOnce([&](VkCommandBuffer commands) {
      VkBufferCopy copy{staging->base(), memory.base() + offset + done, part};
      api_.CmdCopyBuffer(commands, staging->buffer(), memory.buffer(), 1, &copy);
    }));
    done += part;
  }
  return validation();
}

Status LogicalDevice::download(const VulkanMemory &memory, uint64_t offset, void *to, uint64_t bytes,
                               std::unique_ptr<VulkanMemory> &staging) const {
  if (memory.host()) {
    std::memcpy(to, memory.host() + offset, bytes);
    return {};
  }
  if (!staging || staging->size() < std::min(bytes, stagingBytes)) {
    TRANSEPT_ASSIGN(staging, allocateUncleared(std::min(bytes, stagingBytes), MemoryUse::Host));
  }
  for (uint64_t done = 0; done < bytes;) {
    uint64_t part = std::min(bytes - done, stagingBytes);
    TRANSEPT_TRY(runOnce([&](VkCommandBuffer commands) {
      VkBufferCopy copy{memory.base() + offset + done, staging->base(), part};
      api_.CmdCopyBuffer(commands, memory.buffer(), staging->buffer(), 1, &copy);
      hostReadBarrier(api_, commands);
    }));
    std::memcpy(static_cast<uint8_t *>(to) + done, staging->host(), part);
    done += part;
  }
  return validation();
}

Status LogicalDevice::copy(VulkanMemory &memory, Span<const MemoryCopy> copies) const {
  if (memory.host()) {
    for (const MemoryCopy &copy : copies)
      std::memcpy(memory.host() + copy.to, memory.host() + copy.from, copy.bytes);
    return {};
  }
  std::vector<VkBufferCopy> regions;
  for (const MemoryCopy &copy : copies)
    regions.push_back({memory.base() + copy.from, memory.base() + copy.to, copy.bytes});
  if (regions.empty())
    return {};
  TRANSEPT_TRY(runOnce([&](VkCommandBuffer commands) {
    VkMemoryBarrier barrier{};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    api_.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                            VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
    api_.CmdCopyBuffer(commands, memory.buffer(), memory.buffer(), static_cast<uint32_t>(regions.size()),
                       regions.data());
  }));
  return validation();
}

Status LogicalDevice::runOnce(const std::function<void(VkCommandBuffer)> &record) const {
  std::lock_guard<std::mutex> lock(onceMutex_);
  TRANSEPT_ASSIGN(VkCommandBuffer commands, once_->record(record));
  Status status = once_->run(commands);
  once_->release(commands);
  return status;
}

Status LogicalDevice::run(VkCommandBuffer commands, VkFence fence) const {
  const std::string &name = physical_.info.name;
  if (lost_)
    return {Code::DeviceError, "device '" + printable(name) + "' was lost; load the model again"};
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  VkResult result;
  {
    std::lock_guard<std::mutex> lock(queueMutex_);
    result = api_.QueueSubmit(queue_, 1, &submit, fence);
  }
  const bool submitted = result == VK_SUCCESS;
  if (submitted)
    result = api_.WaitForFences(device_, 1, &fence, VK_TRUE, std::numeric_limits<uint64_t>::max());
  if (result == VK_SUCCESS)
    result = api_.ResetFences(device_, 1, &fence);
  // Work that cannot be waited for may still run: nothing that it uses can be trusted or used again.
  if (result == VK_ERROR_DEVICE_LOST || (submitted && result != VK_SUCCESS))
    lost_ = true;
  if (result == VK_ERROR_DEVICE_LOST)
    return {Code::DeviceError, "device '" + printable(name) +
                                   "' was lost: a fault, a reset, or work that took too long; load the model again"};
  return resultStatus(result, "device '" + printable(name) + "' failed");
}

} // namespace transept::vulkan
