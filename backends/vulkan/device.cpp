#include <backends/vulkan/device.hpp>

namespace plugrad::vulkan {
namespace {

std::atomic<void (*)(DeviceFunctions&)>& replacement() {
  static std::atomic<void (*)(DeviceFunctions&)> function{nullptr};
  return function;
}

}  // namespace

void on_functions(void (*replace)(DeviceFunctions&)) { replacement() = replace; }

Device::Device(const Candidate& candidate, uint32_t emulated, bool uses_matrix_units)
    : candidate_(candidate), matrix_units_(uses_matrix_units ? candidate.abilities.matrix_units : MatrixUnits{}) {
  const Abilities& a = candidate.abilities;
  arithmetic_ = {!a.keeps_denormals || (emulated & 1), !a.divides_exactly || emulated != 0, emulated};
  auto v12 = typed<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  v12.bufferDeviceAddress = v12.timelineSemaphore = v12.scalarBlockLayout = VK_TRUE;
  v12.storageBuffer8BitAccess = v12.shaderInt8 = VK_TRUE;
  v12.shaderFloat16 = v12.vulkanMemoryModel = v12.vulkanMemoryModelDeviceScope = matrix_units_.rows != 0;
  auto v11 = typed<VkPhysicalDeviceVulkan11Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &v12);
  v11.storageBuffer16BitAccess = a.i16;
  auto all = typed<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v11);
  all.features.shaderInt64 = VK_TRUE;
  all.features.shaderInt16 = a.i16;
  all.features.shaderFloat64 = a.f64;
  auto subgroups = typed<VkPhysicalDeviceSubgroupSizeControlFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, &all);
  subgroups.computeFullSubgroups = VK_TRUE;
  auto matrices = typed<VkPhysicalDeviceCooperativeMatrixFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, &subgroups);
  matrices.cooperativeMatrix = VK_TRUE;
  if (matrix_units_.rows) create(&matrices);
  else create(&all);
}

void Device::create(void* features) {
  const InstanceFunctions& instance = Driver::get().functions();
  const float priority = 1;
  auto queue = typed<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = candidate_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  std::vector<const char*> extensions;
  if (candidate_.abilities.budget) extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (matrix_units_.rows)
    extensions.insert(extensions.end(), std::begin(kMatrixUnitExtensions), std::end(kMatrixUnitExtensions));
  auto info = typed<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, features);
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  check(instance.vkCreateDevice(candidate_.handle, &info, nullptr, &handle_), "vkCreateDevice");
#define X(function) functions_.function = reinterpret_cast<PFN_##function>(instance.vkGetDeviceProcAddr(handle_, #function));
  PLUGRAD_VULKAN_DEVICE_FUNCTIONS(X)
#undef X
  if (const auto replace = replacement().load()) replace(functions_);
  functions_.vkGetDeviceQueue(handle_, candidate_.queue_family, 0, &queue_);
}

void Device::submit(const VkSubmitInfo& info) {
  const std::lock_guard lock(queue_mutex_);
  check(functions_.vkQueueSubmit(queue_, 1, &info, nullptr), "vkQueueSubmit");
}

void Device::fail(VkResult result, const char* what) {
  const std::string message = std::string(what) + ": " + text_of(result);
  switch (result) {
    case VK_ERROR_DEVICE_LOST: lost_ = true; throw BackendError(PLUGRAD_DEVICE_LOST, message);
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS: throw BackendError(PLUGRAD_OUT_OF_MEMORY, message);
    default: throw BackendError(PLUGRAD_INTERNAL, message);
  }
}

}  // namespace plugrad::vulkan
