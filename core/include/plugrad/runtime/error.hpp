// The one exception type of the library.
#pragma once
#include <plugrad/runtime/api.hpp>
#include <plugrad/sdk/abi.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace plugrad {

enum class Code : int32_t {
  invalid = PLUGRAD_INVALID,              // shapes, dtypes, devices or arguments that do not fit
  unsupported = PLUGRAD_UNSUPPORTED,      // no way to do this on that device
  out_of_memory = PLUGRAD_OUT_OF_MEMORY,  // the cache was trimmed, and it still did not fit
  index_error = PLUGRAD_INDEX_ERROR,      // an index out of range
  device_error = PLUGRAD_DEVICE_ERROR,    // an op failed on the device; first() and last() say which
  device_lost = PLUGRAD_DEVICE_LOST,      // the device is gone, the process is at its end, or it was forked
  internal = PLUGRAD_INTERNAL,            // a bug, of a plugin or of ours
  io_error,                               // a file that cannot be read or written, or holds something else
};

// The message begins with the op or the file in brackets, and says what was expected and what came.
class PLUGRAD_API Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message, uint64_t first = 0, uint64_t last = 0)
      : std::runtime_error(message), code_(code), first_(first), last_(last) {}
  ~Error() override;
  Code code() const noexcept { return code_; }
  // A failure that a device reported late: the op that failed is one of these numbers of its stream; else 0.
  uint64_t first() const noexcept { return first_; }
  uint64_t last() const noexcept { return last_; }

 private:
  Code code_;
  uint64_t first_, last_;
};

}  // namespace plugrad
