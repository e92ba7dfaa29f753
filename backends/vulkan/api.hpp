// Vulkan's functions. The backend looks them up at run time: nothing links libvulkan.
#pragma once
#include <backends/vulkan/cooperative_matrix.hpp>

namespace plugrad::vulkan {

#define PLUGRAD_VULKAN_INSTANCE_FUNCTIONS(X)                                                          \
  X(vkEnumeratePhysicalDevices) X(vkGetPhysicalDeviceProperties2) X(vkGetPhysicalDeviceFeatures2)     \
  X(vkGetPhysicalDeviceMemoryProperties2) X(vkGetPhysicalDeviceQueueFamilyProperties) X(vkCreateDevice) \
  X(vkGetDeviceProcAddr) X(vkEnumerateDeviceExtensionProperties)                                      \
  X(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)

#define PLUGRAD_VULKAN_DEVICE_FUNCTIONS(X)                                                            \
  X(vkGetDeviceQueue) X(vkCreateBuffer) X(vkDestroyBuffer) X(vkGetBufferMemoryRequirements)           \
  X(vkAllocateMemory) X(vkFreeMemory) X(vkBindBufferMemory) X(vkMapMemory) X(vkGetBufferDeviceAddress) \
  X(vkCreateShaderModule) X(vkDestroyShaderModule) X(vkCreatePipelineLayout)                          \
  X(vkCreateComputePipelines) X(vkCreatePipelineCache) X(vkGetPipelineCacheData)                      \
  X(vkMergePipelineCaches) X(vkDestroyPipelineCache) X(vkCreateCommandPool) X(vkDestroyCommandPool)   \
  X(vkAllocateCommandBuffers) X(vkBeginCommandBuffer) X(vkEndCommandBuffer) X(vkCmdBindPipeline)      \
  X(vkCmdPushConstants) X(vkCmdDispatch) X(vkCmdPipelineBarrier) X(vkCmdCopyBuffer) X(vkQueueSubmit)  \
  X(vkCreateSemaphore) X(vkWaitSemaphores) X(vkGetSemaphoreCounterValue)

#define X(function) PFN_##function function = nullptr;
struct InstanceFunctions { PLUGRAD_VULKAN_INSTANCE_FUNCTIONS(X) };
struct DeviceFunctions { PLUGRAD_VULKAN_DEVICE_FUNCTIONS(X) };
#undef X

// Returns a struct of Vulkan's with its type, followed by the struct at `next`; all else is 0.
template <class Struct> Struct typed(VkStructureType type, void* next = nullptr) {
  Struct made{};
  made.sType = type;
  made.pNext = next;
  return made;
}

}  // namespace plugrad::vulkan
