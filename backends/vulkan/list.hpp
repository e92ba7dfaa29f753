// CallLists: the commands of many ops in one command buffer, recorded once. The ops' parameters are outside of it, so a run
// with few changed operands writes few bytes.
#pragma once
#include <backends/vulkan/commands.hpp>
#include <backends/vulkan/stream.hpp>

#include <plugrad/sdk/list.hpp>

#include <deque>
#include <vector>

namespace plugrad::vulkan {

// The record of a list's kernels: dispatches and barriers, and an image of the parameters.
class Tape {
 public:
  static uint64_t step_of(uint64_t bytes) { return (bytes + 15) / 16 * 16; }
  struct Step {
    VkPipeline pipeline;  // null for a barrier
    uint32_t bytes, groups, failed_at;
    uint64_t offset;  // of its parameters in the image
  };

  explicit Tape(uint32_t calls) : ends_(calls) {}
  uint32_t call() const { return call_; }
  const std::vector<Step>& steps() const { return steps_; }
  std::span<const Step> steps_of(uint32_t call) const;
  const std::vector<std::byte>& image() const { return image_; }

  // Begins the commands of a call. The first time, calls come in their order; later, any call may come again.
  void begin(uint32_t call);
  void add(const VulkanStream::Dispatch& made);
  void add_barrier();
  // Returns false if the call came again and its commands differ from the first time.
  bool end();

 private:
  bool matches(const Step& made);

  std::vector<Step> steps_;
  std::vector<std::byte> image_;
  std::vector<size_t> ends_;  // by call, of its steps
  uint32_t call_ = 0, known_ = 0;
  size_t at_ = 0;  // the next step
  bool differs_ = false;
};

class VulkanList final : public CallList {
 public:
  VulkanList(Device& device, Heap& heap, VkPipelineLayout layout, VulkanStream& stream,
             std::span<const plugrad_list_call> calls);
  ~VulkanList() override;
  void run(uint64_t first, Changes changes) override;

 private:
  static constexpr size_t kInstances = 4;  // in flight at the same time, at most
  static constexpr uint64_t kWordBytes = 64;

  // The commands with memory of their own: for a failure's words, and behind them for the parameters.
  struct Instance {
    VulkanStream::Reel reel;
    Memory memory;
    bool is_recorded = false;
    std::vector<bool> stale;  // by call: its parameters differ from the tape
  };

  void record_all();
  bool record_again(uint32_t call);
  void run_call(uint32_t call);
  Instance& free_instance();
  void make_instance();
  void prepare(Instance& instance);
  void record_commands(Instance& instance);
  void write_parameters(Instance& instance, std::span<const Tape::Step> steps) const;

  Device& device_;
  Heap& heap_;
  const DeviceFunctions& f_;
  const VkPipelineLayout layout_;
  VulkanStream& stream_;
  const std::vector<plugrad_list_call> calls_;
  VkCommandPool pool_ = nullptr;
  Tape tape_;
  bool is_on_tape_ = false;  // whether the tape has all calls
  std::deque<Instance> instances_;
};

}  // namespace plugrad::vulkan
