// The calls that the Vulkan backend makes, recorded on their way to the driver, and failures put in their place. lavapipe
// runs commands in order whether or not there are barriers and waits, so only the calls show that they are there.
#pragma once
#include <backends/vulkan/device.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::test {

struct VulkanCall {
  enum Kind { barrier, host_barrier, dispatch, copy, submit } kind;
  VkCommandBuffer commands = nullptr;
  // Of a submission: the semaphores that it waits for, and the one that it signals.
  std::vector<std::pair<VkSemaphore, uint64_t>> waits = {};
  VkSemaphore signals = nullptr;
  uint64_t value = 0;
};

class Recorder {
 public:
  // Registers itself for the devices that are opened later. There is one.
  static Recorder& get();

  // The calls since the last time.
  std::vector<VulkanCall> take();
  // A letter for each: B barrier, H barrier to the host, D dispatch, C copy, S submission.
  static std::string letters(const std::vector<VulkanCall>& calls);

  // Lets the next calls of a function fail with this result: of vkQueueSubmit, or of vkAllocateMemory.
  void fail_submissions(VkResult result, int calls) { submit_result = result, failing_submissions = calls; }
  void fail_allocations(VkResult result, int calls) { allocate_result = result, failing_allocations = calls; }

  // What the last vkCreatePipelineCache got, and what vkGetPipelineCacheData appends to the driver's answer: lavapipe keeps
  // nothing.
  std::vector<char> cache_given;
  static constexpr char kKept[] = "compiled pipelines";

  vulkan::DeviceFunctions driver;
  std::vector<VulkanCall> calls;
  VkResult submit_result = VK_SUCCESS, allocate_result = VK_SUCCESS;
  int failing_submissions = 0, failing_allocations = 0;
  int hidden_answers = 0;  // so many times a semaphore seems to have made no progress, however fast the device is
};

}  // namespace plugrad::test
