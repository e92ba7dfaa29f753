// How ops are resolved on devices. Process-wide.
#pragma once
#include <plugrad/runtime/api.hpp>

namespace plugrad {

// What happens to an op that a device can do neither natively nor by decomposition.
enum class Fallback {
  error,  // an error names op, dtypes and device
  warn,   // it is done by a host-memory backend, with a line in the log
  allow,  // the same, silently; counted either way
};
// Process-wide; PLUGRAD_FALLBACK=error|warn|allow sets it at the start. Default: error.
PLUGRAD_API void set_fallback(Fallback policy);
PLUGRAD_API Fallback fallback();

// Process-wide modes, read at each op: the same bits on each run; f32 matmul may round its inputs to TF32. Both start off.
PLUGRAD_API void set_deterministic(bool on);
PLUGRAD_API bool deterministic();
PLUGRAD_API void set_tf32(bool on);
PLUGRAD_API bool tf32();

}  // namespace plugrad
