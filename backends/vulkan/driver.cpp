#include <backends/vulkan/driver.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace plugrad::vulkan {
namespace {

constexpr uint32_t kGroup = 256;  // invocations in a workgroup of every shader

// The structs that Vulkan fills for a device; each struct points to the next.
struct Features {
  VkPhysicalDeviceVulkan12Features v12 =
      typed<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  VkPhysicalDeviceVulkan11Features v11 =
      typed<VkPhysicalDeviceVulkan11Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &v12);
  VkPhysicalDeviceFeatures2 all = typed<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v11);
};
struct Properties {
  VkPhysicalDeviceVulkan12Properties v12 =
      typed<VkPhysicalDeviceVulkan12Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
  VkPhysicalDeviceVulkan11Properties v11 =
      typed<VkPhysicalDeviceVulkan11Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, &v12);
  VkPhysicalDeviceProperties2 all = typed<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &v11);
};

// Returns the first feature missing on the device, or "".
std::string lack(const Features& f, const VkPhysicalDeviceLimits& limits) {
  const VkPhysicalDeviceFeatures& core = f.all.features;
  if (!f.v12.bufferDeviceAddress) return "addresses of buffers";
  if (!f.v12.timelineSemaphore) return "timeline semaphores";
  if (!f.v12.scalarBlockLayout) return "the scalar layout of blocks";
  if (!f.v12.storageBuffer8BitAccess || !f.v12.shaderInt8) return "8-bit integers in memory";
  if (!core.shaderInt64) return "64-bit integers";
  if (limits.maxComputeWorkGroupInvocations < kGroup || limits.maxComputeWorkGroupSize[0] < kGroup)
    return "workgroups of 256 invocations";
  return "";
}

Abilities abilities_of(const Features& f, const VkPhysicalDeviceVulkan12Properties& p) {
  const bool free = p.denormBehaviorIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  const bool free_rounding = p.roundingModeIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  Abilities a;
  a.f64 = f.all.features.shaderFloat64;
  a.i16 = f.v11.storageBuffer16BitAccess && f.all.features.shaderInt16;
  a.keeps_denormals = free && p.shaderDenormPreserveFloat32;
  a.rounds = free_rounding && p.shaderRoundingModeRTEFloat32;
  a.keeps_nans = p.shaderSignedZeroInfNanPreserveFloat32;
  a.divides_exactly = p.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
  return a;
}

bool has_extension(const InstanceFunctions& f, VkPhysicalDevice device, const char* name) {
  uint32_t count = 0;
  f.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  f.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, all.data());
  return std::any_of(all.begin(), all.end(), [&](const auto& each) { return !std::strcmp(each.extensionName, name); });
}

// Returns the units for products of f16, or no units.
MatrixUnits matrix_units_of(const InstanceFunctions& f, VkPhysicalDevice device, const Features& features,
                            const Properties& p) {
  constexpr uint32_t kSharedBytes = 28672;  // of product_units.comp, rounded up
  for (const char* name : kMatrixUnitExtensions)
    if (!has_extension(f, device, name)) return {};
  auto subgroups =
      typed<VkPhysicalDeviceSubgroupSizeControlFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
  auto matrices = typed<VkPhysicalDeviceCooperativeMatrixFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, &subgroups);
  auto all = typed<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &matrices);
  f.vkGetPhysicalDeviceFeatures2(device, &all);
  const bool halves = features.v12.shaderFloat16 && features.v11.storageBuffer16BitAccess && all.features.shaderInt16;
  if (!matrices.cooperativeMatrix || !subgroups.computeFullSubgroups || !halves || !features.v12.vulkanMemoryModel ||
      !features.v12.vulkanMemoryModelDeviceScope)
    return {};
  if (p.all.properties.limits.maxComputeSharedMemorySize < kSharedBytes) return {};
  return find_matrix_units(f, device, p.v11.subgroupSize);
}

int rank_of(const Candidate& c) {
  switch (c.properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 3;
    default: return 2;
  }
}

bool find_queue(const InstanceFunctions& f, VkPhysicalDevice device, uint32_t& family) {
  uint32_t count = 0;
  f.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  f.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  for (family = 0; family < count; ++family)
    if (families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) return true;
  return false;
}

// Fills the candidate. Returns why the device cannot be used, or "".
std::string examine(const InstanceFunctions& f, Candidate& c) {
  auto basic = typed<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  f.vkGetPhysicalDeviceProperties2(c.handle, &basic);
  c.properties = basic.properties;
  const std::string name = std::string("'") + c.properties.deviceName + "' ";
  if (c.properties.apiVersion < VK_API_VERSION_1_2)
    return name + "has Vulkan " + std::to_string(VK_API_VERSION_MAJOR(c.properties.apiVersion)) + "." +
           std::to_string(VK_API_VERSION_MINOR(c.properties.apiVersion)) + ", and 1.2 is needed: a newer driver may have it";
  Properties p;
  f.vkGetPhysicalDeviceProperties2(c.handle, &p.all);
  Features features;
  f.vkGetPhysicalDeviceFeatures2(c.handle, &features.all);
  if (const std::string what = lack(features, c.properties.limits); !what.empty()) return name + "lacks " + what;
  if (!find_queue(f, c.handle, c.queue_family)) return name + "has no queue for compute work";
  c.largest_buffer = p.v11.maxMemoryAllocationSize;
  c.abilities = abilities_of(features, p.v12);
  c.abilities.budget = has_extension(f, c.handle, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  c.abilities.matrix_units = matrix_units_of(f, c.handle, features, p);
  for (const uint8_t byte : p.v11.deviceUUID) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    c.identity += digits;
  }
  return "";
}

}  // namespace

std::string text_of(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "no host memory is left";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "no device memory is left";
    case VK_ERROR_DEVICE_LOST: return "the device is lost";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "no driver is installed";
    case VK_ERROR_INITIALIZATION_FAILED: return "the driver failed to start";
    case VK_ERROR_TOO_MANY_OBJECTS: return "too many objects exist";
    default: return "VkResult " + std::to_string(result);
  }
}

const Driver& Driver::get() {
  static const Driver& driver = *[] {
    auto* made = new Driver;
    made->open();
    return made;
  }();
  return driver;
}

void Driver::open() {
  void* const library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    reason_ = "there is no Vulkan library (libvulkan.so.1): install it (Debian: libvulkan1) and the GPU's driver";
    return;
  }
  const auto find = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (find && make_instance(find)) list_devices();
  else if (reason_.empty()) reason_ = "libvulkan.so.1 has no vkGetInstanceProcAddr";
}

bool Driver::make_instance(PFN_vkGetInstanceProcAddr find) {
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(find(nullptr, "vkCreateInstance"));
  auto application = typed<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pApplicationName = "plugrad";
  application.apiVersion = VK_API_VERSION_1_2;
  auto info = typed<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;
  const VkResult result = create ? create(&info, nullptr, &instance_) : VK_ERROR_INITIALIZATION_FAILED;
  if (result != VK_SUCCESS) {
    reason_ = "vkCreateInstance: " + text_of(result);
    return false;
  }
#define X(function) functions_.function = reinterpret_cast<PFN_##function>(find(instance_, #function));
  PLUGRAD_VULKAN_INSTANCE_FUNCTIONS(X)
#undef X
  return true;
}

void Driver::list_devices() {
  uint32_t count = 0;
  functions_.vkEnumeratePhysicalDevices(instance_, &count, nullptr);
  std::vector<VkPhysicalDevice> all(count);
  functions_.vkEnumeratePhysicalDevices(instance_, &count, all.data());
  all.resize(count);
  reason_ = "the Vulkan library finds no device";
  std::string lacking;
  for (const VkPhysicalDevice device : all) {
    Candidate candidate{};
    candidate.handle = device;
    const std::string why = examine(functions_, candidate);
    if (why.empty()) devices_.push_back(std::move(candidate));
    else lacking += (lacking.empty() ? "" : "; ") + why;
  }
  if (!lacking.empty()) reason_ = lacking;
  std::stable_sort(devices_.begin(), devices_.end(),
                   [](const Candidate& a, const Candidate& b) { return rank_of(a) < rank_of(b); });
}

}  // namespace plugrad::vulkan
