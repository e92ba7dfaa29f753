// A recorded step: the kernels of a function on one device, in their order, with the memory of each kernel; and the recorder
// that collects them. A block allocated twice is two memories of the step. runner.hpp replays the step.
#pragma once
#include <core/runtime/observe/host_call.hpp>
#include <core/runtime/observe/observer.hpp>
#include <core/runtime/observe/step_part.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace plugrad::steps {

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

// One call of a kernel, or work of the host. The pointers of `op` are unset.
struct Call {
  const plugrad_kernel* kernel;  // null for work of the host
  plugrad_op op;
  std::vector<plugrad_view> views;
  std::vector<uint32_t> memories;  // of the operands; kNever for an immediate
  std::vector<std::byte> attributes;
  uint32_t workspace = kNever;
  const char* gradient_of = nullptr;
  std::shared_ptr<observe::HostCall> host = nullptr;
  bool has_form = false;           // an operand is in a form of the device's own
  std::vector<uint8_t> axes = {};  // of the recorded views, in the order of the views; empty: the same order

  bool writes(size_t operand) const { return operand < op.outputs; }
  bool reads(size_t operand) const;
  bool is_random() const;
  std::string label() const;  // "matmul"
};

using observe::Part;

struct RecordedPart {
  Part part;
  uint32_t first, last;  // its calls are [first, last)
  uint64_t numbers;      // the result of advance() for the calls' current numbers
};

// An operand that is a number of the caller.
struct LiftedOperand {
  uint32_t call, operand, source;  // source: which number, from 1
};

struct Trace {
  DeviceState* device = nullptr;  // null if nothing ran
  std::vector<Call> calls;
  std::vector<Memory> memories;
  std::vector<RecordedPart> parts;
  std::vector<LiftedOperand> lifted;
  uint64_t first_draw = 0, draws = 0;  // of the device's generator: its offset before the step, and the step's increment
  std::string flaw;                    // why the step cannot be replayed; empty if it can
};

class StepRecorder : public Observer {
 public:
  // Ends the recording.
  Trace finish();

  // Returns the current memory of a storage: a new memory if the recording has not seen the storage.
  uint32_t memory_of(Storage& storage);
  bool knows(const Storage& storage) const;
  uint32_t calls() const { return static_cast<uint32_t>(trace_.calls.size()); }

  bool intercepts(const plugrad_op&) override { return false; }
  void ran(DeviceState& device, const plugrad_kernel* kernel, const plugrad_op& op, Storage* const* storages,
           Storage* workspace) override;
  void allocated(Storage& storage) override;
  void fail(const std::string& why) override;
  void run_part(Part part) override;
  void run_host(std::shared_ptr<observe::HostCall> call, DeviceState* device, const plugrad_op& op,
                Storage* const* storages) override;
  bool keeps_upload(Storage& to) override;
  Magazine<Storage>* magazine(uint32_t list) override { return &aside_[list]; }
  void released(Storage& storage, bool by_its_thread) noexcept override;
  void used_elsewhere(const Storage& storage) override;

 protected:
  StepRecorder();
  // The most derived class calls start() when it is constructed, and stop() before it is destroyed: in between, other
  // threads call virtual functions.
  void start();
  void stop() noexcept;
  // Whether the ops belong to work of the host.
  bool is_paused() const { return paused_; }

 private:
  void require_one_device(DeviceState& device);
  uint32_t add(Storage& storage, uint32_t begin);
  void note_lifted(Call& call);
  Call call_of(const plugrad_kernel* kernel, const plugrad_op& op, Storage* const* storages);

  Trace trace_;
  std::unordered_map<const Storage*, uint32_t> memories_;  // guarded by observe::mutex()
  std::array<Magazine<Storage>, kStorageLists + 1> aside_;
  std::vector<std::pair<DeviceState*, uint64_t>> offsets_;  // of all generators, before the step
  std::vector<Ref<Storage>> uploaded_;
  bool stopped_ = false, paused_ = false;
};

}  // namespace plugrad::steps
