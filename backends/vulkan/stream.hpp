// A stream: commands are recorded in batches. A batch is submitted when the device is idle or the batch is full. A timeline
// semaphore shows progress: its values are the contract's numbers, with some bits below for copies of several submissions.
#pragma once
#include <backends/vulkan/device.hpp>
#include <backends/vulkan/memory.hpp>

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <vector>

namespace plugrad::vulkan {

struct Batching {
  uint32_t ops = 32;   // a batch of this many ops is submitted
  uint32_t eager = 4;  // after this many more ops, the batch is submitted if nothing is in flight
};

class Tape;  // of the commands of a list: list.hpp

class VulkanStream final : public Stream {
 public:
  VulkanStream(Device& device, Heap& heap, VkPipelineLayout layout, Batching batching);

  // One op, recorded under the stream's lock, because completed and wait may submit the batch from any thread; or on the
  // stream's tape.
  class Recording {
   public:
    Recording(VulkanStream& stream, uint64_t number);
    // Records a dispatch whose shader gets a copy of the parameters.
    template <class P> void dispatch(VkPipeline pipeline, const P& parameters, uint32_t groups) {
      Dispatch made{pipeline, &parameters, sizeof parameters, groups, kNowhere};
      if constexpr (requires { parameters.failed; }) made.failed_at = offsetof(P, failed);
      stream_.tape_ ? stream_.add_to_tape(made) : stream_.dispatch(made);
    }
    void barrier();  // between dispatches, if the second needs results of the first
    uint64_t failed() const { return stream_.word_.address; }
    uint32_t ordinal() const;
    void finish() {
      if (!stream_.tape_) stream_.close_op(number_);
    }

   private:
    VulkanStream& stream_;
    uint64_t number_;
    std::unique_lock<std::mutex> lock_;
  };
  static constexpr uint32_t kNowhere = ~uint32_t{0};
  struct Dispatch {
    VkPipeline pipeline;
    const void* parameters;
    uint32_t bytes, groups;
    uint32_t failed_at;  // where the parameters have the address of the failure's words, or kNowhere
  };

  // While a tape is set, ops are recorded there: see VulkanList. Set by the submitting thread.
  void set_tape(Tape* tape) { tape_ = tape; }

  // Throws if the device is lost, or if the failure of an op waits for sync.
  void demand_sound() const;

  // Copies. `number` counts as submitted when they return.
  void copy(uint64_t number, Place to, Place from, uint64_t bytes);
  void upload(uint64_t number, Place to, const char* from, uint64_t bytes);
  void download(uint64_t number, char* to, Place from, uint64_t bytes);

  plugrad_status completed(uint64_t& number) noexcept;
  void wait_for(VulkanStream& other, uint64_t& number);
  void sync(plugrad_failure& failure);

  // Commands recorded once and submitted repeatedly. A reel has its own failure words, with ordinals from its first call.
  struct Reel {
    VkCommandBuffer commands = nullptr;
    const uint32_t* words = nullptr;
    uint64_t first = 0;                  // the number of the first call of the last submission
    uint64_t value = 0;                  // as Flight's
    std::atomic<bool> is_flying{false};  // any thread may clear it
  };
  void submit_reel(Reel& reel, uint64_t first, uint32_t count);
  // Updates is_flying of the reels.
  void look();
  void wait_for_reel(const Reel& reel);

 private:
  using Lock = std::unique_lock<std::mutex>;
  static constexpr int kPieceBits = 20;
  static constexpr uint64_t kParameterBytes = 32 << 10, kSlotBytes = 1 << 20;
  static constexpr int kSlots = 4, kBatches = 256, kBatchesInBlock = 16;

  // A place in a batch's parameters: a block of kParameterBytes, and the block's used bytes.
  struct Mark {
    size_t block = 0;
    uint64_t used = 0;
  };
  struct Parameters {
    char* bytes = nullptr;
    VkDeviceAddress address = 0;
  };
  struct Batch {
    VkCommandBuffer commands = nullptr;
    std::vector<Parameters> blocks;  // the first for most batches, more for an op of many dispatches
    Mark end, op;                    // of the parameters, and the start of the last op's parameters
    uint32_t ops = 0;
    bool is_ended = false;  // a submission failed, and is to be tried again before anything else is recorded
  };
  // A submission of a batch or of a reel, and the semaphore's value at its end.
  struct Flight {
    uint64_t value;
    Batch* batch;
    Reel* reel;
  };
  struct Failure {
    uint64_t number;
    uint32_t opcode;
  };
  // A part of the staging memory, and the semaphore's value when its bytes are free again.
  struct Slot {
    uint64_t used = 0, value = 0;
    bool is_in_open = false;
  };

  // The caller of these functions holds mutex_. Functions with a Lock release it while they wait.
  void open_op(Lock& lock);
  void close_op(uint64_t number);
  void begin(Lock& lock);
  void make_batch();
  void flush();
  void submit(VkCommandBuffer commands, uint64_t value);
  void take_off(Flight flight);
  void land(Reel& reel);
  void poll();
  void wait_value(Lock& lock, uint64_t value);
  void barrier();
  void dispatch(const Dispatch& made);
  void add_to_tape(const Dispatch& made);
  void add_block();
  void cancel_op() noexcept;
  void rebase(Lock& lock, uint64_t number);
  uint64_t take_slot(Lock& lock, uint64_t bytes, uint64_t& piece);
  uint64_t reached() const { return !open_ && flying_.empty() ? submitted_ : done_ >> kPieceBits; }
  bool has_failed() const;
  Failure failure() const;
  [[noreturn]] static void throw_index_error(const Failure& failure);

  Device& device_;
  Heap& heap_;
  const DeviceFunctions& f_;
  const VkPipelineLayout layout_;
  const Batching batching_;
  VkCommandPool pool_ = nullptr;
  VkSemaphore timeline_ = nullptr;
  Memory staging_, word_;

  std::mutex mutex_;
  Batch* open_ = nullptr;
  std::deque<Flight> flying_;
  std::vector<Batch*> free_;
  std::vector<std::unique_ptr<Batch>> batches_;
  Memory parameters_;                 // of the next batches
  uint64_t submitted_ = 0;            // the last number
  uint64_t signaled_ = 0, done_ = 0;  // values: of the last submission, and last read of the semaphore
  std::vector<VkSemaphore> awaited_;  // by the next submission
  std::vector<uint64_t> awaited_values_;
  Slot slots_[kSlots];
  int slot_ = 0;
  uint64_t base_ = 0;  // the base number of the failure word
  Tape* tape_ = nullptr;
  std::atomic<uint64_t> failed_in_reel_{0};  // the first failed number in a reel; 0: none
  uint32_t opcode_in_reel_ = 0;              // of failed_in_reel_, written before it
};

}  // namespace plugrad::vulkan
