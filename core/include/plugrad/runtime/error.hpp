// The exception type of the library.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/runtime/api.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace plugrad {

enum class Code : int32_t {
  invalid = PLUGRAD_INVALID,              // shapes, dtypes, devices or arguments that do not fit
  unsupported = PLUGRAD_UNSUPPORTED,      // the device cannot do this
  out_of_memory = PLUGRAD_OUT_OF_MEMORY,  // memory did not suffice even after the cache was trimmed
  index_error = PLUGRAD_INDEX_ERROR,      // an index out of range
  device_error = PLUGRAD_DEVICE_ERROR,    // an op failed on the device; first() and last() bound its number
  device_lost = PLUGRAD_DEVICE_LOST,      // the device is gone, or the process is ending or was forked
  internal = PLUGRAD_INTERNAL,            // a bug, of a plugin or of ours
  io_error,                               // a file cannot be read or written, or has another format
  peer_lost,                              // a process of a group ended, or cannot be reached
  timed_out,                              // a process of a group did not come in time
  cancelled,                              // a stop was requested: see cancel.hpp
};

// The message begins with the op or the file in brackets and states the expected and the given value.
class PLUGRAD_API Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message, uint64_t first = 0, uint64_t last = 0)
      : std::runtime_error(message), code_(code), first_(first), last_(last) {}
  ~Error() override;
  Code code() const noexcept { return code_; }
  // If a device reported the failure late, first and last bound the failed op's number on its stream; else both are 0.
  uint64_t first() const noexcept { return first_; }
  uint64_t last() const noexcept { return last_; }

 private:
  Code code_;
  uint64_t first_, last_;
};

}  // namespace plugrad
