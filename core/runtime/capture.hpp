// Records a step: the kernels that a function runs on one device, in their order, and the memory that each of them uses.
// trace.hpp is what a recorder collects; replay.hpp runs it again.
//
// While a thread records, its ops do not take the fast path (kObserved), and its magazines of small blocks are empty and
// full at once. So each use, each allocation and each release passes a slow function, which tells the recorder. A block that
// is allocated twice is two memories of the step. Counts of references, which autograd reads, stay as they are.
#pragma once
#include <core/runtime/device_state.hpp>
#include <core/runtime/local.hpp>

#include <atomic>
#include <cstdint>
#include <string>

namespace plugrad::capture {

struct Part;

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
