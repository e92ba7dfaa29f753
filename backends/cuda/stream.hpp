// Implements the contract's stream with a CUDA stream. CUDA can only record an event after all submitted work, so a ring of
// events represents the op numbers; an event is recorded when a caller asks for progress.
#pragma once
#include <backends/cuda/blas_lt.hpp>
#include <backends/cuda/error.hpp>

#include <plugrad/sdk/backend.hpp>

#include <array>
#include <atomic>
#include <mutex>

namespace plugrad::cuda {

// If a kernel finds an index out of range, it writes its op's number and opcode into this word of pinned memory.
class FailureWord {
 public:
  using Word = unsigned long long;
  static constexpr Word kNone = ~Word(0);
  static Word pack(uint64_t number, uint32_t opcode) { return number << 16 | (opcode & 0xffff); }
  static uint64_t number(Word word) { return word >> 16; }
  static uint32_t opcode(Word word) { return static_cast<uint32_t>(word & 0xffff); }

  void attach(Word* pinned) { (word_ = pinned)[0] = kNone; }
  Word* address() const { return word_; }
  Word load() const { return __atomic_load_n(word_, __ATOMIC_ACQUIRE); }
  Word clear() { return __atomic_exchange_n(word_, kNone, __ATOMIC_ACQ_REL); }

 private:
  Word* word_ = nullptr;
};

class CudaBackend;

class CudaStream final : public Stream {
 public:
  static constexpr uint64_t kSlotBytes = 64 << 10, kLargeSlotBytes = 2 << 20;
  static constexpr uint32_t kCounters = 1024;

  explicit CudaStream(CudaBackend& backend);  // the device is selected
  CudaBackend& backend() const { return backend_; }
  cudaStream_t handle() const { return stream_; }

  // [stream-serial]: between the two calls ops are recorded, to run in a graph later; their numbers count from the graph's
  // first op. A separate stream records them, since a concurrent thread may record events on this stream. end_capture
  // returns null if an op could not be recorded.
  void begin_capture();
  cudaGraph_t end_capture();
  bool captures() const { return captures_; }
  // Returns the stream to submit ops to: the recorder during a capture.
  cudaStream_t target() const { return captures_ ? recorder_ : stream_; }
  // Submits, or records, a write of the base of op numbers: the first number before a graph, and 0 at the graph's end.
  void set_base(uint64_t number);
  FailureWord::Word* failure_word() const { return failure_.address(); }
  // kCounters words of device memory for counting the arrivals of a kernel's blocks; all are 0 between kernels.
  uint32_t* counters() const { return counters_; }
  FailureWord::Word* failure_claim() const { return claim_; }

  // Throws DEVICE_LOST if the device is lost, DEVICE_ERROR if an earlier kernel reported an index.
  void demand_sound() const;
  // Called after the launch of op `number`: if a thread reads the number and then records an event, the event covers the op.
  void submitted(uint64_t number) {
    if (!captures_) submitted_.store(number, std::memory_order_release);
  }
  uint64_t last_submitted() const { return submitted_.load(std::memory_order_acquire); }

  // [stream-serial], for copies
  void upload(char* to, const char* from, uint64_t bytes);    // from plain host memory, through the pinned slots
  void download(char* to, const char* from, uint64_t bytes);  // waits for the stream

  // [any]
  plugrad_status completed(uint64_t& number) noexcept;
  void make_wait(cudaStream_t stream, uint64_t& number);
  void reached(uint64_t number) noexcept;  // a watcher has seen all ops up to number complete
  // [stream-serial]
  void sync(plugrad_failure& failure);

  // This stream's cuBLAS handle, or null. Set once, from any thread.
  std::atomic<const BlasHandle*> blas{nullptr};
  BiasProducts bias_products;  // [stream-serial]

 private:
  static constexpr uint32_t kEvents = 32, kSlots = 4;
  struct Recorded {
    cudaEvent_t event = nullptr;
    uint64_t number = 0;
  };

  // Pinned staging buffers for uploads, used in turn. A slot is free once its event has completed.
  struct Slot {
    char* bytes = nullptr;
    cudaEvent_t is_free = nullptr;
  };
  struct Slots {
    std::array<Slot, kSlots> all;
    uint64_t bytes = 0;  // of each slot; 0: not allocated
    uint32_t next = 0;
  };

  void unclaim();
  void point_blas_at(cudaStream_t target);
  void make_slots(Slots& slots, uint64_t bytes);
  Slots& slots_for(uint64_t bytes);
  Recorded& record();              // mutex_ held
  cudaError_t advance() noexcept;  // mutex_ held
  void drained();

  CudaBackend& backend_;
  cudaStream_t stream_ = nullptr;
  FailureWord failure_;
  uint32_t* counters_ = nullptr;
  FailureWord::Word* claim_ = nullptr;  // in device memory; see IndexReport
  cudaStream_t recorder_ = nullptr;     // from the first capture on
  bool captures_ = false;
  std::atomic<uint64_t> submitted_{0};

  std::mutex mutex_;  // never held during a wait for the device
  std::array<Recorded, kEvents> ring_;
  uint32_t head_ = 0, tail_ = 0;
  uint64_t done_ = 0;

  Slots small_, large_;  // large_: allocated on the first large upload
  bool large_refused_ = false;
};

}  // namespace plugrad::cuda
