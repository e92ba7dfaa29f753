// The commands of batches and lists.
#pragma once
#include <backends/vulkan/api.hpp>
#include <backends/vulkan/driver.hpp>

namespace plugrad::vulkan {

inline constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
inline constexpr VkAccessFlags kReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;
inline constexpr VkPipelineStageFlags kStages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

// Records a barrier: all later commands see the writes of all earlier commands.
inline void record_barrier(const DeviceFunctions& f, VkCommandBuffer commands) {
  const VkMemoryBarrier all{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, kWrites, kReads | kWrites};
  f.vkCmdPipelineBarrier(commands, kStages, kStages, 0, 1, &all, 0, nullptr, 0, nullptr);
}

// Makes all writes visible to the host.
inline void record_end(const DeviceFunctions& f, VkCommandBuffer commands) {
  const VkMemoryBarrier all{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, kWrites, VK_ACCESS_HOST_READ_BIT};
  f.vkCmdPipelineBarrier(commands, kStages, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &all, 0, nullptr, 0, nullptr);
}

// Records a dispatch. Its shader reads its parameters at the address.
inline void record(const DeviceFunctions& f, VkCommandBuffer commands, VkPipelineLayout layout, VkPipeline pipeline,
                   VkDeviceAddress parameters, uint32_t groups) {
  f.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  f.vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof parameters, &parameters);
  f.vkCmdDispatch(commands, groups, 1, 1);
}

}  // namespace plugrad::vulkan
