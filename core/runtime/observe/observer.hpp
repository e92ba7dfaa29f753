// Tells watchers about events in the runtime. The code behind an event calls a function of this file, or of observed.hpp if
// the event has a duration, and does not know the watchers: the recorder of a compiled step, profilers, record_memory, the
// shadow device, checks of the process.
//
// An Observer follows one thread. Meanwhile the thread's ops do not take the fast path (kObserved), and its magazines
// of small blocks are empty and full at once. So each use, each allocation and each release passes a slow function, and this
// function tells the observer. The counts of references stay as they are, because autograd reads them.
#pragma once
#include <core/runtime/device_state.hpp>
#include <core/runtime/dispatch/stand_in_count.hpp>
#include <core/runtime/local.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace plugrad {

class ForkMutex;

namespace observe {

struct Part;     // see step_part.hpp
class HostCall;  // see host_call.hpp

// The number of observed threads at the moment.
inline constinit std::atomic<uint32_t> active{0};
inline bool is_on() { return active.load(std::memory_order_relaxed) != 0; }
// Sets the bit kObserved of `modes` if any watcher is on, else clears it.
void update();

}  // namespace observe

// Receives the calls of a thread instead of, or beside, their devices.
class Observer {
 public:
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer();

  // Returns true if the call must not run, because it only shows its numbers.
  virtual bool intercepts(const plugrad_op& op) = 0;
  virtual void ran(DeviceState& device, const plugrad_kernel* kernel, const plugrad_op& op, Storage* const* storages,
                   Storage* workspace) = 0;
  virtual void allocated(Storage& storage) = 0;
  // Called before data of the host are copied to a storage. Returns whether the data are the same in every step.
  virtual bool keeps_upload(Storage& to) = 0;
  // Called if the thread's work cannot be repeated. why: the reason.
  virtual void fail(const std::string& why) = 0;
  virtual void run_part(observe::Part part) = 0;
  // Runs work of the host; device: of its operands, or null without operands.
  virtual void run_host(std::shared_ptr<observe::HostCall> call, DeviceState* device, const plugrad_op& op,
                        Storage* const* storages) = 0;
  // For higher layers: the thread reads or replaces the contents of their object.
  virtual void touched(void*) {}
  // A captured storage is released, by the observed thread or another thread; or another thread used some storage. The
  // caller holds observe::mutex().
  virtual void released(Storage&, [[maybe_unused]] bool by_its_thread) noexcept {}
  virtual void used_elsewhere(const Storage&) {}
  // The magazine of small blocks in place of the thread's own, or null to use the thread's own.
  virtual Magazine<Storage>* magazine(uint32_t list) = 0;

  Storage* lent = nullptr;  // see Magazine::lend

 protected:
  // Begins to follow this thread. The thread must have no observer yet.
  Observer();
  // From here to leave() the observer is told of releases and uses of storages by other threads. The most derived class
  // calls both functions, with observe::mutex() held, because other threads call virtual functions.
  void listen();
  void leave() noexcept;
};

namespace observe {

// Guards Storage::captured, and the observers' knowledge of storages.
ForkMutex& mutex();

// --- Ops and memory.

inline bool intercepts(const Local& l, const plugrad_op& op) { return l.observer && l.observer->intercepts(op); }
void ran_elsewhere(Storage* const* storages, int count);
inline void ran(const Local& l, DeviceState& device, const plugrad_kernel* kernel, const plugrad_op& op,
                Storage* const* storages, Storage* workspace) {
  if (l.observer) l.observer->ran(device, kernel, op, storages, workspace);
  else if (is_on()) ran_elsewhere(storages, op.outputs + op.inputs);
}
inline void allocated(Storage& storage) {
  if (Observer* const observer = local().observer) [[unlikely]]
    observer->allocated(storage);
}
// Of a captured or tracked storage.
void released(Storage& storage) noexcept;
inline void touched(void* object) {
  if (Observer* const observer = local().observer) [[unlikely]]
    observer->touched(object);
}

// --- Events that no replay can repeat for new data.

// While this object lives, copies from the host are the same in every run of the step, such as tables derived from shapes.
class ConstantUploads {
 public:
  ConstantUploads() { ++depth; }
  ~ConstantUploads() { --depth; }
  ConstantUploads(const ConstantUploads&) = delete;
  ConstantUploads& operator=(const ConstantUploads&) = delete;
  static inline constinit thread_local int depth = 0;
};

// What this thread does with lifted numbers: see Number::lifted.
struct LiftedNumbers {
  bool were_read = false;  // the host looked at a value
  uint32_t made = 0;       // operands made of such numbers
  uint32_t recorded = 0;   // of these, operands of recorded calls

  bool are_operands_alone() const { return !were_read && made == recorded; }
};
inline constinit thread_local LiftedNumbers lifted;

// While this object lives, reads and copies by the host are not errors: the recording fails anyway, and the next recording
// does not repeat them.
class DoneOnce {
 public:
  DoneOnce() { ++depth; }
  ~DoneOnce() { --depth; }
  DoneOnce(const DoneOnce&) = delete;
  DoneOnce& operator=(const DoneOnce&) = delete;
  static inline constinit thread_local int depth = 0;
};

// Whether this thread's work will be repeated for new data; then it must not depend on the elements of a tensor.
inline bool will_repeat() { return local().observer; }
// Whether the host must do without the elements of tensors: for that reason, or because an element may have a value per
// example (stand_ins.hpp).
inline bool hides_elements() { return will_repeat() || stand_ins::is_on(); }
// Whether this thread's calls become calls of a step.
inline bool is_recorded() { return will_repeat() && !DoneOnce::depth; }
// Calls fail and throws Error (invalid). what: the work that cannot be repeated; instead: advice to the user.
[[noreturn]] void throw_unrepeatable(const char* what, const char* instead);
// The same, but only if this thread's work will be repeated, and not while a DoneOnce lives on this thread.
inline void unrepeatable(const char* what, const char* instead) {
  if (is_recorded()) [[unlikely]]
    throw_unrepeatable(what, instead);
}
// Tells the observer that no replay can repeat the thread's work. The thread goes on, without an error.
inline void fail(const char* why) {
  if (Observer* const observer = local().observer) observer->fail(why);
}
inline bool keeps_upload(Storage& to) {
  Observer* const observer = local().observer;
  return observer && observer->keeps_upload(to);
}

// Runs a part of a step once: advances it and calls its ops. An observer notes it.
void run_part(Part part);

// --- Changes of a step's tensors that no replay follows: tensors get new memory, or cease to want gradients.

inline constinit std::atomic<uint64_t> changes{0};
// A digest of what a step depends on beside its arguments: which modules are training, and the like.
inline constinit std::atomic<uint64_t> settings{0};
inline void flip_setting(uint64_t id) { settings ^= (id + 1) * 0x9e3779b97f4a7c15u; }
inline void note_change(const Storage& storage) {
  if (storage.traces.load(std::memory_order_relaxed)) ++changes;
}

}  // namespace observe
}  // namespace plugrad
