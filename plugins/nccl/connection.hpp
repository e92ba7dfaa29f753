// A communicator of NCCL, and the device that this process uses for all of them.
#pragma once
#include <plugins/nccl/libraries.hpp>

#include <plugrad/sdk/communicator.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace nccl {

// A call failed, with a status of communicators.
struct Failure {
  plugrad_status status;
  std::string why;
};

// Throws Failure (internal) unless the driver's result is success.
void require(int result, const char* function);

// The device of this process. NCCL takes one device of each rank.
class OwnDevice {
 public:
  // Chooses the device by the first of these: the user's option; the device of the first collective on device memory; the
  // launcher's number of this rank on its machine. Later calls only check. wanted: a device, or -1: any. [one-thread]
  void choose(int wanted);
  void set_option(int index) { option_ = index; }
  // Makes the device's context that of the calling thread. [any, once it was chosen]
  void enter() const;

 private:
  int option_ = -1, index_ = -1;
  void* context_ = nullptr;
};
OwnDevice& own_device();

// Calls of NCCL on the communicators of a group: one at a time, and none once the group is broken.
struct Gate {
  std::timed_mutex mutex;
  std::atomic<bool> broken{false};
};

// Connects some ranks. Nothing here waits, because NCCL's communicators are non-blocking: call advance() until it returns
// true. [one-thread, but for release]
class Connection {
 public:
  // Ranks of one key find each other in the store. rank 0 makes NCCL's identity.
  Connection(const plugrad_store& store, Gate& gate, std::string key, int rank, int size);
  Connection(const Connection&) = delete;
  ~Connection();

  // Goes on, and returns whether the ranks are connected and NCCL has done with the call before. Throws Failure.
  bool advance();
  // Calls f(communicator), a call of NCCL. Throws Failure.
  template <class F> void call(F f) {
    const std::lock_guard lock(gate_.mutex);
    require_whole();
    check(f(comm_));
  }
  Stream* stream() const { return stream_; }
  bool is_open() const { return comm_; }
  // Returns the communicator, or null, and forgets it. The caller holds the gate.
  Comm* release() { return std::exchange(comm_, nullptr); }

 private:
  bool find_id(UniqueId& id) const;
  void require_whole() const;
  void check(Result result) const;

  const plugrad_store& store_;
  Gate& gate_;
  const std::string key_;
  const int rank_, size_;
  Comm* comm_ = nullptr;
  Stream* stream_ = nullptr;
};

// Aborts communicators, or destroys finalized ones, all at the same time: to end a communicator may wait for the end of its
// peers, of this rank and of all ranks. A call longer than `most` is left behind. [any]
void end(const std::vector<Comm*>& comms, Result (*how)(Comm*), std::chrono::milliseconds most);

}  // namespace nccl
