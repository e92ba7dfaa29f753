// A communicator of NCCL, and the device that this process uses for all of them.
#pragma once
#include <plugins/nccl/libraries.hpp>

#include <plugrad/sdk/communicator.h>

#include <cstdint>
#include <string>

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
  // launcher's number of this rank on its machine. Later calls only check. wanted: a device, or -1: any.
  void choose(int wanted);
  void set_option(int index) { option_ = index; }
  int index() const { return index_; }

 private:
  int option_ = -1, index_ = -1;
};
OwnDevice& own_device();

// Connects some ranks. Nothing here waits, because NCCL's communicators are non-blocking: advance() is called until it says
// that they are connected. The caller holds the group's mutex.
class Connection {
 public:
  // Ranks of one key find each other in the store. rank 0 makes NCCL's identity.
  Connection(const plugrad_store& store, std::string key, int rank, int size);
  Connection(const Connection&) = delete;
  ~Connection();

  // Goes on, and returns whether the ranks are connected and NCCL has done with the call before. Throws Failure.
  bool advance();
  Comm* comm() const { return comm_; }
  Stream* stream() const { return stream_; }
  // Ends what NCCL does here, and the communicator.
  void abort() noexcept;
  // Ends the communicator once the other ranks do, at most this long.
  void close(uint64_t milliseconds) noexcept;
  // Throws Failure unless NCCL's result is success or in progress.
  void check(Result result) const;

 private:
  bool begin();

  const plugrad_store& store_;
  const std::string key_;
  const int rank_, size_;
  Comm* comm_ = nullptr;
  Stream* stream_ = nullptr;
};

}  // namespace nccl
