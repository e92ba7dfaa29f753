// Tells watchers about events in the runtime. The code behind an event calls a function of this file, or of observed.hpp if
// the event has a duration, and does not know who listens: the recorder of a compiled step, profilers, record_memory, the
// shadow device, checks of the process.
//
// An Observer follows one thread. While it does, the thread's ops do not take the fast path (kObserved), and its magazines
// of small blocks are empty and full at once. So each use, each allocation and each release passes a slow function, which
// tells the observer. Counts of references, which autograd reads, stay as they are.
#pragma once
#include <core/runtime/device_state.hpp>
#include <core/runtime/local.hpp>

#include <atomic>
#include <cstdint>
#include <string>

namespace plugrad {

class ForkMutex;

namespace observe {

struct Part;  // see step_part.hpp

// Counts the threads that observers follow at the moment.
inline constinit std::atomic<uint32_t> active{0};
inline bool is_on() { return active.load(std::memory_order_relaxed) != 0; }
// Sets or clears the bit kObserved of `modes`, by who watches now.
void update();

}  // namespace observe

// Receives the calls of one thread instead of, or beside, their devices.
class Observer {
 public:
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer();

  // Returns whether the call must not run, because it only shows its numbers.
  virtual bool intercepts(const plugrad_op& op) = 0;
  virtual void ran(DeviceState& device, const plugrad_kernel* kernel, const plugrad_op& op, Storage* const* storages,
                   Storage* workspace) = 0;
  virtual void allocated(Storage& storage) = 0;
  // Called before data of the host are copied to a storage. Returns whether they are the same in every step.
  virtual bool keeps_upload(Storage& to) = 0;
  // Says why what the thread does cannot be repeated.
  virtual void fail(const std::string& why) = 0;
  virtual void run_part(observe::Part part) = 0;
  // For higher layers: the thread reads or replaces what an object of theirs holds.
  virtual void touched(void*) {}
  // A captured storage is released, by the thread that it follows or another one; or another thread used some storage. The
  // caller holds observe::mutex().
  virtual void released(Storage&, [[maybe_unused]] bool by_its_thread) noexcept {}
  virtual void used_elsewhere(const Storage&) {}
  // The magazine of small blocks that stands in for the thread's own; null: the thread's own serves.
  virtual Magazine<Storage>* magazine(uint32_t list) = 0;

  Storage* lent = nullptr;  // see Magazine::lend

 protected:
  // Begins to follow this thread, which no other observer may follow.
  Observer();
  // From here to leave() the observer hears of storages that other threads release or use. The most derived class calls
  // both, with observe::mutex() held: other threads call virtual functions.
  void listen();
  void leave() noexcept;
};

namespace observe {

// Guards Storage::captured, and what observers know of storages.
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
// Of a storage that is captured or tracked.
void released(Storage& storage) noexcept;
inline void touched(void* object) {
  if (Observer* const observer = local().observer) [[unlikely]]
    observer->touched(object);
}

// --- Events that no replay can repeat for other data.

// Copies from the host, in the lifetime of this, are the same whenever the step runs: tables that follow from shapes.
class ConstantUploads {
 public:
  ConstantUploads() { ++depth; }
  ~ConstantUploads() { --depth; }
  ConstantUploads(const ConstantUploads&) = delete;
  ConstantUploads& operator=(const ConstantUploads&) = delete;
  static inline constinit thread_local int depth = 0;
};

// Reads and copies by the host, in the lifetime of this object, are not errors: the recording fails anyway, and the next
// recording will find them done.
class DoneOnce {
 public:
  DoneOnce() { ++depth; }
  ~DoneOnce() { --depth; }
  DoneOnce(const DoneOnce&) = delete;
  DoneOnce& operator=(const DoneOnce&) = delete;
  static inline constinit thread_local int depth = 0;
};

// Whether what this thread does will be repeated for other data, so that it must not depend on the elements of a tensor.
inline bool will_repeat() { return local().observer; }
// Throws Error (invalid) if what this thread does will be repeated, which this could not be.
[[noreturn]] void throw_unrepeatable(const char* what, const char* instead);
inline void unrepeatable(const char* what, const char* instead) {
  if (will_repeat() && !DoneOnce::depth) [[unlikely]]
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

// --- Tensors that steps use may change in ways that no replay follows: they get other memory, or cease to want gradients.

inline constinit std::atomic<uint64_t> changes{0};
// A digest of which modules train; it is part of what a step depends on.
inline constinit std::atomic<uint64_t> training{0};
inline void flip_training(uint64_t id) { training ^= (id + 1) * 0x9e3779b97f4a7c15u; }
inline void note_change(const Storage& storage) {
  if (storage.traces.load(std::memory_order_relaxed)) ++changes;
}

}  // namespace observe
}  // namespace plugrad
