#include "runtime/vulkan/Instance.h"

#include "runtime/vulkan/Features.h"
#include "runtime/vulkan/Matrices.h"

#include <algorithm>
#include <cstring>

namespace transept {

std::string vulkanVersionText(uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." + std::to_string(VK_API_VERSION_MINOR(version)) + "." +
         std::to_string(VK_API_VERSION_PATCH(version));
}

Result<std::vector<VulkanDeviceInfo>> listVulkanDevices(const VulkanOptions &options) {
  TRANSEPT_ASSIGN(std::unique_ptr<vulkan::Instance> instance, vulkan::Instance::create(options));
  TRANSEPT_ASSIGN(std::vector<vulkan::PhysicalDevice> devices, instance->devices());
  std::vector<VulkanDeviceInfo> infos;
  for (vulkan::PhysicalDevice &device : devices)
    infos.push_back(std::move(device.info));
  return infos;
}

} // namespace transept

namespace transept::vulkan {

namespace {

constexpr uint32_t leastVersion = VK_API_VERSION_1_2;
constexpr const char *validationLayer = "VK_LAYER_KHRONOS_validation";
constexpr size_t keptMessages = 8;

bool hasValidationLayer(const LoaderApi &loader) {
  uint32_t count = 0;
  if (loader.EnumerateInstanceLayerProperties(&count, nullptr) != VK_SUCCESS)
    return false;
  std::vector<VkLayerProperties> layers(count);
  VkResult result = loader.EnumerateInstanceLayerProperties(&count, layers.data());
  layers.resize(count);
  return result >= 0 && std::any_of(layers.begin(), layers.end(), [](const VkLayerProperties &layer) {
           return std::strcmp(layer.layerName, validationLayer) == 0;
         });
}

const char *typeText(VkPhysicalDeviceType type) {
  switch (type) {
  case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
    return "integrated GPU";
  case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    return "discrete GPU";
  case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
    return "virtual GPU";
  case VK_PHYSICAL_DEVICE_TYPE_CPU:
    return "CPU";
  default:
    return "other";
  }
}

/// Of the first family that computes; false where there is none.
bool findQueueFamily(const InstanceApi &api, PhysicalDevice &device) {
  uint32_t count = 0;
  api.GetPhysicalDeviceQueueFamilyProperties(device.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.GetPhysicalDeviceQueueFamilyProperties(device.handle, &count, families.data());
  for (uint32_t i = 0; i < count; ++i)
    if (families[i].queueCount != 0 && (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) {
      device.queueFamily = i;
      device.timestampBits = families[i].timestampValidBits;
      return true;
    }
  return false;
}

void describeProperties(const InstanceApi &api, PhysicalDevice &device) {
  VkPhysicalDeviceVulkan13Properties v13{};
  v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES;
  VkPhysicalDeviceVulkan12Properties v12{};
  v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  const bool has13 = device.info.apiVersion >= VK_API_VERSION_1_3;
  v12.pNext = has13 ? &v13 : nullptr;
  VkPhysicalDeviceVulkan11Properties v11{};
  v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  v11.pNext = &v12;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &v11;
  api.GetPhysicalDeviceProperties2(device.handle, &properties);
  const VkPhysicalDeviceLimits &limits = properties.properties.limits;
  device.info.driver = std::string(v12.driverName) + " " + v12.driverInfo;
  device.info.maxAllocation = v11.maxMemoryAllocationSize;
  if (has13)
    device.info.maxAllocation = std::min<uint64_t>(device.info.maxAllocation, v13.maxBufferSize);
  device.info.maxGroups = limits.maxComputeWorkGroupCount[0];
  device.info.maxGroupSize = std::min(limits.maxComputeWorkGroupSize[0], limits.maxComputeWorkGroupInvocations);
  device.info.maxSharedBytes = limits.maxComputeSharedMemorySize;
  device.info.subgroupSize = v11.subgroupSize;
  constexpr VkSubgroupFeatureFlags reduces = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  device.reducesSubgroups = (v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                            (v11.subgroupSupportedOperations & reduces) == reduces;
  device.timestampPeriod = limits.timestampPeriod;
  std::copy_n(v11.deviceUUID, VK_UUID_SIZE, device.deviceUuid);
  std::copy_n(v11.driverUUID, VK_UUID_SIZE, device.driverUuid);
}

/// The features that a device offers, by the names that artifacts know.
std::vector<std::string> offeredFeatures(const PhysicalDevice &device, FeatureChain &features) {
  std::vector<std::string> names = features.set();
  if (device.reducesSubgroups)
    names.push_back(subgroupArithmetic);
  const std::vector<std::string> needed = withImplied({matrixInt8});
  if (!device.info.matrices.empty() &&
      std::all_of(needed.begin() + 1, needed.end(), [&](const std::string &name) { return *features.find(name); }))
    names.push_back(matrixInt8);
  return names;
}

PhysicalDevice describe(const InstanceApi &api, VkInstance instance, VkPhysicalDevice handle) {
  PhysicalDevice device;
  device.handle = handle;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  api.GetPhysicalDeviceProperties2(handle, &properties);
  VulkanDeviceInfo &info = device.info;
  info.name = properties.properties.deviceName;
  info.type = typeText(properties.properties.deviceType);
  info.apiVersion = properties.properties.apiVersion;
  if (info.apiVersion < leastVersion) {
    info.problem = "it has Vulkan " + vulkanVersionText(info.apiVersion) + ", 1.2 is needed";
    return device;
  }
  describeProperties(api, device);
  FeatureChain features(info.apiVersion);
  api.GetPhysicalDeviceFeatures2(handle, &features.core);
  info.matrices = matricesOf(api, instance, handle);
  info.features = offeredFeatures(device, features);
  api.GetPhysicalDeviceMemoryProperties(handle, &device.memory);
  for (uint32_t i = 0; i < device.memory.memoryHeapCount; ++i)
    if (device.memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      info.localBytes = std::max<uint64_t>(info.localBytes, device.memory.memoryHeaps[i].size);
  if (!findQueueFamily(api, device))
    info.problem = "it has no queue that computes";
  for (const std::string &feature : basicFeatures())
    if (!*features.find(feature))
      info.problem = "it lacks " + feature;
  return device;
}

} // namespace

VkBool32 Instance::hear(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                        const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
  auto &instance = *static_cast<Instance *>(user);
  std::lock_guard<std::mutex> lock(instance.mutex_);
  if (instance.messages_.size() < keptMessages)
    instance.messages_.push_back(data->pMessage ? data->pMessage : "a message without text");
  return VK_FALSE;
}

Status Instance::listen(const LoaderApi &loader, const VkDebugUtilsMessengerCreateInfoEXT &info) {
  auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      loader.GetInstanceProcAddr(instance_, "vkCreateDebugUtilsMessengerEXT"));
  destroyMessenger_ = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
      loader.GetInstanceProcAddr(instance_, "vkDestroyDebugUtilsMessengerEXT"));
  if (!create || !destroyMessenger_)
    return {Code::DeviceError, "the Vulkan library does not pass on what its validation layer says"};
  return resultStatus(create(instance_, &info, nullptr, &messenger_), "cannot listen to the validation layer");
}

Result<std::unique_ptr<Instance>> Instance::create(const VulkanOptions &options) {
  TRANSEPT_ASSIGN(LoaderApi loader, LoaderApi::open(options.loader));
  std::unique_ptr<Instance> instance(new Instance);
  uint32_t version = 0;
  TRANSEPT_TRY(resultStatus(loader.EnumerateInstanceVersion(&version), "cannot ask for the version of Vulkan"));
  if (version < leastVersion)
    return Status(Code::DeviceError,
                  "the Vulkan library has version " + vulkanVersionText(version) + ", 1.2 is needed");
  if (options.validate && !hasValidationLayer(loader))
    return Status(Code::DeviceError, std::string("validation was asked for, and there is no layer ") + validationLayer);

  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pEngineName = "transept";
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  create.pApplicationInfo = &application;

  VkDebugUtilsMessengerCreateInfoEXT listener{};
  listener.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  listener.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  listener.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  listener.pfnUserCallback = hear;
  listener.pUserData = instance.get();
  const VkValidationFeatureEnableEXT synchronisation = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT validation{};
  validation.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  validation.pNext = &listener;
  validation.enabledValidationFeatureCount = 1;
  validation.pEnabledValidationFeatures = &synchronisation;
  const char *extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  if (options.validate) {
    create.pNext = &validation;
    create.enabledLayerCount = 1;
    create.ppEnabledLayerNames = &validationLayer;
    create.enabledExtensionCount = 2;
    create.ppEnabledExtensionNames = extensions;
  }
  VkResult result = loader.CreateInstance(&create, nullptr, &instance->instance_);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    return Status(Code::DeviceError, "there is no Vulkan driver; install one, or use --device cpu");
  TRANSEPT_TRY(resultStatus(result, "cannot start Vulkan"));
  // The instance has its functions before anything can fail: the destructor needs one.
  instance->api_.DestroyInstance =
      reinterpret_cast<PFN_vkDestroyInstance>(loader.GetInstanceProcAddr(instance->instance_, "vkDestroyInstance"));
  TRANSEPT_ASSIGN(instance->api_, InstanceApi::of(loader, instance->instance_));
  if (options.validate)
    TRANSEPT_TRY(instance->listen(loader, listener));
  return instance;
}

Instance::~Instance() {
  if (messenger_)
    destroyMessenger_(instance_, messenger_, nullptr);
  if (instance_ && api_.DestroyInstance)
    api_.DestroyInstance(instance_, nullptr);
}

Result<std::vector<PhysicalDevice>> Instance::devices() const {
  std::vector<VkPhysicalDevice> handles;
  for (VkResult result = VK_INCOMPLETE; result == VK_INCOMPLETE;) { // more may appear between the two calls
    uint32_t count = 0;
    TRANSEPT_TRY(resultStatus(api_.EnumeratePhysicalDevices(instance_, &count, nullptr), "cannot list devices"));
    handles.resize(count);
    result = api_.EnumeratePhysicalDevices(instance_, &count, handles.data());
    handles.resize(count);
    if (result < 0)
      return resultStatus(result, "cannot list devices");
  }
  std::vector<PhysicalDevice> devices;
  for (VkPhysicalDevice handle : handles)
    devices.push_back(describe(api_, instance_, handle));
  return devices;
}

Status Instance::validation() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (messages_.empty())
    return {};
  std::string all;
  for (const std::string &message : messages_)
    all += (all.empty() ? "" : " | ") + printable(message, 1000);
  messages_.clear();
  return {Code::DeviceError, "the validation layer says: " + all};
}

} // namespace transept::vulkan
