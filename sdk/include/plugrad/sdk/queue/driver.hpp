// A queue of a driver, as the author of a plugin provides it.
#pragma once
#include <plugrad/sdk/backend.hpp>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

// A driver's in-order queue. One thread at a time calls these functions, in the order of the stream. All of them but finish
// may return before the work is done. Throw BackendError, with DEVICE_LOST if the device is gone, for a failure.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;
  // Copies bytes from host memory, which stays valid until finish returns.
  virtual void write(plugrad_buffer* to, uint64_t offset, const void* from, uint64_t bytes) = 0;
  // Copies bytes to host memory. They have arrived when finish returns.
  virtual void read(void* to, plugrad_buffer* from, uint64_t offset, uint64_t bytes) = 0;
  // Copies bytes on the device. The ranges do not overlap.
  virtual void copy(plugrad_buffer* to, uint64_t to_offset, plugrad_buffer* from, uint64_t from_offset, uint64_t bytes) = 0;
  // Waits until all work in the queue is done.
  virtual void finish() = 0;
  // Called after finish: whether a kernel since the last call found an index out of range.
  virtual bool take_index_error() { return false; }
};

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
