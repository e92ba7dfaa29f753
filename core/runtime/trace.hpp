// A recorded step: its calls, their memory, and the recorder that collects them.
#pragma once
#include <core/runtime/capture.hpp>

#include <array>
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

}  // namespace plugrad::capture
