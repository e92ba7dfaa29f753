// VK_KHR_cooperative_matrix, as far as the backend uses it: Debian 12's headers are older than the extension. The names are
// Vulkan's.
#pragma once
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#if !defined(VK_KHR_cooperative_matrix)
inline constexpr char VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME[] = "VK_KHR_cooperative_matrix";
inline constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR =
    static_cast<VkStructureType>(1000506000);
inline constexpr auto VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR = static_cast<VkStructureType>(1000506001);

enum VkComponentTypeKHR : int32_t { VK_COMPONENT_TYPE_FLOAT16_KHR = 0, VK_COMPONENT_TYPE_FLOAT32_KHR = 1 };
enum VkScopeKHR : int32_t { VK_SCOPE_SUBGROUP_KHR = 3 };

struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix, cooperativeMatrixRobustBufferAccess;
};

struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  uint32_t MSize, NSize, KSize;
  VkComponentTypeKHR AType, BType, CType, ResultType;
  VkBool32 saturatingAccumulation;
  VkScopeKHR scope;
};

using PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR =
    VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t* count, VkCooperativeMatrixPropertiesKHR* properties);
#endif
