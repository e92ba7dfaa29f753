// Points in a device's work. The core orders ops and copies by the data that they use, so an event is only for the host: to
// know when something is done, or to wait for it.
#pragma once
#include <plugrad/runtime/api.hpp>
#include <plugrad/runtime/device.hpp>

#include <cstdint>

namespace plugrad {

// Not recorded, an event is done. Const functions may be called by several threads at a time.
class PLUGRAD_API Event {
 public:
  Event() = default;
  // Marks all work submitted to the device so far, by any thread: ops and copies.
  explicit Event(Device device) { record(device); }
  void record(Device device);
  // Whether the marked work is done, or has failed. Does not wait.
  bool is_done() const;
  // Waits for the marked work. Throws Error if the last marked op, the last marked copy, or work whose results they used
  // has failed; device.sync() reports every failure.
  void wait() const;

 private:
  DeviceState* device_ = nullptr;
  uint64_t computed_ = 0, copied_ = 0;  // numbers of the two streams
};

}  // namespace plugrad
