#include <tests/vulkan/recorder.hpp>

#include <cstring>
#include <utility>

namespace plugrad::test {
namespace {

VKAPI_ATTR void VKAPI_CALL barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to,
                                   VkDependencyFlags flags, uint32_t memory, const VkMemoryBarrier* barriers,
                                   uint32_t buffers, const VkBufferMemoryBarrier* of_buffers, uint32_t images,
                                   const VkImageMemoryBarrier* of_images) {
  Recorder& r = Recorder::get();
  constexpr VkAccessFlags writes = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  constexpr VkAccessFlags all = writes | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;
  const bool covers = memory == 1 && (barriers->srcAccessMask & writes) == writes;
  if (covers && barriers->dstAccessMask == VK_ACCESS_HOST_READ_BIT && to == VK_PIPELINE_STAGE_HOST_BIT)
    r.calls.push_back({VulkanCall::host_barrier, commands});
  else if (covers && (barriers->dstAccessMask & all) == all) r.calls.push_back({VulkanCall::barrier, commands});
  r.driver.vkCmdPipelineBarrier(commands, from, to, flags, memory, barriers, buffers, of_buffers, images, of_images);
}

VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
  Recorder& r = Recorder::get();
  r.calls.push_back({VulkanCall::dispatch, commands});
  r.driver.vkCmdDispatch(commands, x, y, z);
}

VKAPI_ATTR void VKAPI_CALL copy(VkCommandBuffer commands, VkBuffer from, VkBuffer to, uint32_t count,
                                const VkBufferCopy* regions) {
  Recorder& r = Recorder::get();
  r.calls.push_back({VulkanCall::copy, commands});
  r.driver.vkCmdCopyBuffer(commands, from, to, count, regions);
}

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  Recorder& r = Recorder::get();
  if (r.failing_submissions > 0) {
    --r.failing_submissions;
    return r.submit_result;
  }
  const auto& timeline = *static_cast<const VkTimelineSemaphoreSubmitInfo*>(infos->pNext);
  VulkanCall call{VulkanCall::submit, infos->pCommandBuffers[0]};
  for (uint32_t i = 0; i < infos->waitSemaphoreCount; ++i)
    call.waits.emplace_back(infos->pWaitSemaphores[i], timeline.pWaitSemaphoreValues[i]);
  call.signals = infos->pSignalSemaphores[0];
  call.value = timeline.pSignalSemaphoreValues[0];
  r.calls.push_back(std::move(call));
  return r.driver.vkQueueSubmit(queue, count, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice device, const VkMemoryAllocateInfo* info,
                                        const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory) {
  Recorder& r = Recorder::get();
  if (r.failing_allocations > 0) {
    --r.failing_allocations;
    return r.allocate_result;
  }
  return r.driver.vkAllocateMemory(device, info, callbacks, memory);
}

VKAPI_ATTR VkResult VKAPI_CALL progress(VkDevice device, VkSemaphore semaphore, uint64_t* value) {
  Recorder& r = Recorder::get();
  const VkResult result = r.driver.vkGetSemaphoreCounterValue(device, semaphore, value);
  if (r.hidden_answers > 0) {
    --r.hidden_answers;
    *value = 0;
  }
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL make_cache(VkDevice device, const VkPipelineCacheCreateInfo* info,
                                          const VkAllocationCallbacks* callbacks, VkPipelineCache* cache) {
  Recorder& r = Recorder::get();
  const char* const data = static_cast<const char*>(info->pInitialData);
  r.cache_given.assign(data, data + info->initialDataSize);
  VkPipelineCacheCreateInfo empty = *info;
  empty.initialDataSize = 0;
  return r.driver.vkCreatePipelineCache(device, &empty, callbacks, cache);
}

VKAPI_ATTR VkResult VKAPI_CALL cache_data(VkDevice device, VkPipelineCache cache, size_t* bytes, void* data) {
  const auto function = Recorder::get().driver.vkGetPipelineCacheData;
  size_t header = 0;
  if (const VkResult result = function(device, cache, &header, nullptr)) return result;
  *bytes = header + sizeof Recorder::kKept;
  if (!data) return VK_SUCCESS;
  std::memcpy(static_cast<char*>(data) + header, Recorder::kKept, sizeof Recorder::kKept);
  return function(device, cache, &header, data);
}

void replace(vulkan::DeviceFunctions& functions) {
  Recorder::get().driver = functions;
  functions.vkCmdPipelineBarrier = barrier;
  functions.vkCmdDispatch = dispatch;
  functions.vkCmdCopyBuffer = copy;
  functions.vkQueueSubmit = submit;
  functions.vkAllocateMemory = allocate;
  functions.vkGetSemaphoreCounterValue = progress;
  functions.vkCreatePipelineCache = make_cache;
  functions.vkGetPipelineCacheData = cache_data;
}

}  // namespace

Recorder& Recorder::get() {
  static Recorder& recorder = *[] {
    vulkan::on_functions(replace);
    return new Recorder;
  }();
  return recorder;
}

std::vector<VulkanCall> Recorder::take() { return std::exchange(calls, {}); }

std::string Recorder::letters(const std::vector<VulkanCall>& calls) {
  std::string text;
  for (const VulkanCall& call : calls) text += "BHDCS"[call.kind];
  return text;
}

}  // namespace plugrad::test
