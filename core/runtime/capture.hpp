// Records a step: the kernels that a function runs on one device, in their order, and the memory that each of them uses.
// replay.hpp runs them again.
//
// While a thread records, its ops do not take the fast path (kObserved), and its magazines of small blocks are empty and
// full at once. So each use, each allocation and each release passes a slow function, which tells the recorder. A block that
// is allocated twice is two memories of the step. Counts of references, which autograd reads, stay as they are.
#pragma once
#include <core/runtime/device_state.hpp>
#include <core/runtime/local.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace plugrad::capture {

constexpr uint32_t kNever = UINT32_MAX;

// A storage, from its allocation to its release.
struct Memory {
  Ref<Storage> storage;     // null if it was released during the recording
  uint64_t bytes = 0;       // of its block
  uint64_t base = 0;        // its offset in its buffer
  uint32_t begin = kNever;  // the number of calls before its allocation; kNever: it is older than the recording
  uint32_t end = kNever;    // the number of calls before its release; kNever: it outlives the recording
  bool constant = false;    // only the recording has it: see ConstantUploads

  bool is_older() const { return begin == kNever; }
  bool outlives() const { return end == kNever; }
};

// One call of a kernel. The pointers of `op` are unset.
struct Call {
  const plugrad_kernel* kernel;
  plugrad_op op;
  std::vector<plugrad_view> views;
  std::vector<uint32_t> memories;      // of the operands; kNever for an immediate
  std::vector<std::byte> attributes;
  uint32_t workspace = kNever;
  const char* gradient_of = nullptr;

  bool writes(size_t operand) const { return operand < op.outputs; }
};

// A part of the step whose ops get numbers that the host computes anew for each step, such as an optimiser.
struct Part {
  std::function<uint64_t()> advance;  // counts one more step; returns another value if its ops get other numbers
  std::function<void()> repeat;       // calls its ops, which then only show their numbers
  std::function<void()> undo;         // takes the last advance() back
};
struct RecordedPart {
  Part part;
  uint32_t first, last;  // its calls are [first, last)
  uint64_t numbers;      // what advance() returned for the numbers that the calls have
};

struct Trace {
  DeviceState* device = nullptr;  // null if nothing ran
  std::vector<Call> calls;
  std::vector<Memory> memories;
  std::vector<RecordedPart> parts;
  uint64_t first_draw = 0, draws = 0;  // of the device's generator: its offset before the step, and what the step added
  std::string flaw;                    // why it cannot be replayed; empty if it can
};

// Counts the steps that are recorded or repeated at the moment, in all threads.
inline constinit std::atomic<uint32_t> active{0};
inline bool is_on() { return active.load(std::memory_order_relaxed) != 0; }

// Receives the calls of one thread instead of, or beside, their devices.
class Recorder {
 public:
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder();

  // Returns whether the call must not run, because it only shows its numbers.
  virtual bool intercepts(const plugrad_op& op) = 0;
  virtual void ran(DeviceState& device, const plugrad_kernel* kernel, const plugrad_op& op, Storage* const* storages,
                   Storage* workspace) = 0;
  virtual void began(Storage& storage) = 0;
  // Says why a replay could not do the same.
  virtual void fail(const std::string& why) = 0;
  virtual void run_part(Part part) = 0;
  // Called before data of the host are copied to a storage. Returns whether they are the same in every step.
  virtual bool keeps_upload(Storage& to) = 0;
  // For higher layers: the step reads or replaces what an object of theirs holds.
  virtual void touched(void*) {}
  // The magazine of small blocks that stands in for the thread's own; null: the thread's own serves.
  virtual Magazine<Storage>* magazine(uint32_t list) = 0;

  Storage* lent = nullptr;  // see Magazine::lend

 protected:
  // Becomes the thread's recorder. The thread must have none.
  Recorder();
};

class StepRecorder : public Recorder {
 public:
  StepRecorder();
  ~StepRecorder() override;
  // Ends the recording.
  Trace finish();

  // The memory that a storage is now: a new one if the recording did not see it before.
  uint32_t memory_of(Storage& storage);
  bool knows(const Storage& storage) const;
  uint32_t calls() const { return static_cast<uint32_t>(trace_.calls.size()); }

  bool intercepts(const plugrad_op&) override { return false; }
  void ran(DeviceState& device, const plugrad_kernel* kernel, const plugrad_op& op, Storage* const* storages,
           Storage* workspace) override;
  void began(Storage& storage) override;
  void fail(const std::string& why) override;
  void run_part(Part part) override;
  bool keeps_upload(Storage& to) override;
  Magazine<Storage>* magazine(uint32_t list) override { return &aside_[list]; }
  // A storage was released, by any thread. The caller holds the mutex of captures.
  void ended(Storage& storage, bool by_its_thread);
  // Another thread used a storage.
  void used_elsewhere(const Storage& storage);

 private:
  void stop() noexcept;
  void require_one_device(DeviceState& device);
  uint32_t add(Storage& storage, uint32_t begin);

  Trace trace_;
  std::unordered_map<const Storage*, uint32_t> memories_;  // guarded by the mutex of captures
  std::array<Magazine<Storage>, kStorageLists + 1> aside_;
  std::vector<std::pair<DeviceState*, uint64_t>> offsets_;  // of all generators, before the step
  std::vector<Ref<Storage>> uploaded_;
  bool stopped_ = false;
};

// --- What the runtime tells recorders.

// A captured storage is released.
void ended(Storage& storage) noexcept;
// Another thread than the recording one ran a call.
void ran_elsewhere(Storage* const* storages, int count);

// Copies from the host, in the lifetime of this, are the same whenever the step runs: tables that follow from shapes.
class ConstantUploads {
 public:
  ConstantUploads() { ++depth; }
  ~ConstantUploads() { --depth; }
  ConstantUploads(const ConstantUploads&) = delete;
  ConstantUploads& operator=(const ConstantUploads&) = delete;
  static inline constinit thread_local int depth = 0;
};

// What the host reads and copies, in the lifetime of this, is no error: the recording fails anyway, and the next one will
// find it done.
class DoneOnce {
 public:
  DoneOnce() { ++depth; }
  ~DoneOnce() { --depth; }
  DoneOnce(const DoneOnce&) = delete;
  DoneOnce& operator=(const DoneOnce&) = delete;
  static inline constinit thread_local int depth = 0;
};

[[noreturn]] void throw_refused(const char* what, const char* instead);
// Throws Error (invalid) if this thread records, since a replay could not do it.
inline void refuse(const char* what, const char* instead) {
  if (local().recorder && !DoneOnce::depth) [[unlikely]] throw_refused(what, instead);
}

// Runs a part once: advances it and calls its ops. A recorder notes it.
void run_part(Part part);

// --- Tensors that steps use may change in ways that no replay follows: they get other memory, or cease to want gradients.

inline constinit std::atomic<uint64_t> changes{0};
// A digest of which modules train; it is part of what a step depends on.
inline constinit std::atomic<uint64_t> training{0};
inline void flip_training(uint64_t id) { training ^= (id + 1) * 0x9e3779b97f4a7c15u; }
inline void note_change(const Storage& storage) {
  if (storage.traces.load(std::memory_order_relaxed)) ++changes;
}

}  // namespace plugrad::capture
