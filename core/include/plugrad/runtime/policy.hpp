// How ops are resolved on devices. Process-wide.
#pragma once
#include <plugrad/runtime/api.hpp>

namespace plugrad {

// The action for an op that a device supports neither natively nor by decomposition.
enum class Fallback {
  error,  // throws Error; the message names op, dtypes and device
  warn,   // a host-memory backend runs the op, and the log has a line
  allow,  // the same without a line; DeviceCounters counts both
};
// Process-wide; PLUGRAD_FALLBACK=error|warn|allow sets the initial policy. Default: error.
PLUGRAD_API void set_fallback(Fallback policy);
PLUGRAD_API Fallback fallback();

// Process-wide modes, off by default. deterministic: each run gives the same bits. tf32: f32 matmul may round its inputs.
PLUGRAD_API void set_deterministic(bool on);
PLUGRAD_API bool deterministic();
PLUGRAD_API void set_tf32(bool on);
PLUGRAD_API bool tf32();

}  // namespace plugrad
