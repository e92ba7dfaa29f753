// Records the Vulkan backend's calls before the driver gets them, and replaces calls by failures. lavapipe runs commands in
// order even without barriers and waits, so only the calls show whether barriers and waits exist.
#pragma once
#include <backends/vulkan/device.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::test {

struct VulkanCall {
  enum Kind { barrier, host_barrier, dispatch, copy, submit } kind;
  VkCommandBuffer commands = nullptr;
  // Of a submission: the semaphores that it waits for, and the semaphore that it signals.
  std::vector<std::pair<VkSemaphore, uint64_t>> waits = {};
  VkSemaphore signals = nullptr;
  uint64_t value = 0;
};

class Recorder {
 public:
  // The only recorder. The first call registers it for all devices that are opened later.
  static Recorder& get();

  // Returns the calls since the previous take().
  std::vector<VulkanCall> take();
  // A letter for each: B barrier, H barrier to the host, D dispatch, C copy, S submission.
  static std::string letters(const std::vector<VulkanCall>& calls);

  // Makes the next `calls` calls of vkQueueSubmit, or of vkAllocateMemory, fail with this result.
  void fail_submissions(VkResult result, int calls) { submit_result = result, failing_submissions = calls; }
  void fail_allocations(VkResult result, int calls) { allocate_result = result, failing_allocations = calls; }

  // The data that the last vkCreatePipelineCache received, and a text that vkGetPipelineCacheData appends to the driver's
  // data, because lavapipe stores nothing.
  std::vector<char> cache_given;
  static constexpr char kKept[] = "compiled pipelines";

  vulkan::DeviceFunctions driver;
  std::vector<VulkanCall> calls;
  VkResult submit_result = VK_SUCCESS, allocate_result = VK_SUCCESS;
  int failing_submissions = 0, failing_allocations = 0;
  int hidden_answers = 0;  // the number of next queries in which a semaphore shows no progress
};

}  // namespace plugrad::test
