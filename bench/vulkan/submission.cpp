// The cost of an asynchronous op for the thread that submits it, in the Vulkan plugin itself: the driver's functions that
// record commands are replaced by empty functions, and the time in other functions of the driver is subtracted. The device
// runs empty command buffers.
#include <backends/vulkan/device.hpp>
#include <plugrad/backends/vulkan.hpp>
#include <sdk/conformance/problem.hpp>
#include <sdk/conformance/session.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {

using namespace plugrad::conformance;
using Clock = std::chrono::steady_clock;

constexpr int kOps = 30, kRounds = 400;  // fewer ops than a batch has
constexpr int64_t kElements = 1000;

double since(Clock::time_point begin) { return std::chrono::duration<double, std::nano>(Clock::now() - begin).count(); }

double in_driver = 0;  // ns
plugrad::vulkan::DeviceFunctions driver;

template <class F> auto timed(F f) {
  const auto begin = Clock::now();
  const auto result = f();
  in_driver += since(begin);
  return result;
}
VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  return timed([&] { return driver.vkQueueSubmit(queue, count, infos, fence); });
}
VKAPI_ATTR VkResult VKAPI_CALL progress(VkDevice device, VkSemaphore semaphore, uint64_t* value) {
  return timed([&] { return driver.vkGetSemaphoreCounterValue(device, semaphore, value); });
}
VKAPI_ATTR VkResult VKAPI_CALL begin(VkCommandBuffer commands, const VkCommandBufferBeginInfo* info) {
  return timed([&] { return driver.vkBeginCommandBuffer(commands, info); });
}
VKAPI_ATTR VkResult VKAPI_CALL end(VkCommandBuffer commands) {
  return timed([&] { return driver.vkEndCommandBuffer(commands); });
}
VKAPI_ATTR void VKAPI_CALL barrier(VkCommandBuffer, VkPipelineStageFlags, VkPipelineStageFlags, VkDependencyFlags, uint32_t,
                                   const VkMemoryBarrier*, uint32_t, const VkBufferMemoryBarrier*, uint32_t,
                                   const VkImageMemoryBarrier*) {}
VKAPI_ATTR void VKAPI_CALL bind(VkCommandBuffer, VkPipelineBindPoint, VkPipeline) {}
VKAPI_ATTR void VKAPI_CALL push(VkCommandBuffer, VkPipelineLayout, VkShaderStageFlags, uint32_t, uint32_t, const void*) {}
VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer, uint32_t, uint32_t, uint32_t) {}

void replace(plugrad::vulkan::DeviceFunctions& functions) {
  driver = functions;
  functions.vkQueueSubmit = submit;
  functions.vkGetSemaphoreCounterValue = progress;
  functions.vkBeginCommandBuffer = begin;
  functions.vkEndCommandBuffer = end;
  functions.vkCmdPipelineBarrier = barrier;
  functions.vkCmdBindPipeline = bind;
  functions.vkCmdPushConstants = push;
  functions.vkCmdDispatch = dispatch;
}

plugrad_view view_at(plugrad_buffer* buffer, uint64_t offset) {
  plugrad_view v{};
  v.dtype = PLUGRAD_F32;
  v.rank = 1;
  v.count = v.shape[0] = kElements;
  v.strides[0] = 1;
  v.buffer = buffer;
  v.offset = offset;
  return v;
}

}  // namespace

int main() {
  plugrad::vulkan::on_functions(replace);
  const plugrad_host* const host = make_host();
  const Plugin plugin = linked_plugin(plugrad_vulkan_backend, "vulkan", host);
  const Counted counted = count_devices(plugin, host);
  if (!counted.devices) {
    std::printf("no device: %s\n", counted.reason.c_str());
    return 1;
  }
  Device device(plugin.table, host, 0, {});
  Queue queue = device.make_queue();
  plugrad_buffer* const buffer = device.alloc(3 * 8192);
  const plugrad_view operands[] = {view_at(buffer, 0), view_at(buffer, 8192), view_at(buffer, 16384)};
  const plugrad_view* const views[] = {&operands[0], &operands[1], &operands[2]};
  const plugrad_kernel* const add = resolve(*plugin.table, device.handle(), question_for(PLUGRAD_OP_ADD, PLUGRAD_F32), 0);
  plugrad_op op{sizeof op, PLUGRAD_OP_ADD, 0, views, nullptr, 1, 2, 0, nullptr, 0, 0};
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    in_driver = 0;
    const auto begin = Clock::now();
    for (int i = 0; i < kOps; ++i) {
      op.number = ++queue.last;
      if (add->run(add, queue.stream, &op) != PLUGRAD_OK) return 1;
    }
    rounds.push_back((since(begin) - in_driver) / kOps);
    device.sync(queue);
  }
  std::sort(rounds.begin(), rounds.end());
  std::printf("an ADD of %d elements: %.0f ns in the plugin (median of %d rounds; fastest %.0f ns)\n",
              static_cast<int>(kElements), rounds[kRounds / 2], kRounds, rounds[0]);
  return 0;
}
