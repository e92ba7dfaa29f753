// The ops of a program, summed by op and dtypes, from a profiler's trace.
#pragma once
#include <plugrad/runtime/kernels.hpp>
#include <plugrad/runtime/profiler.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::tool {

struct TracedOp {
  std::string op;                       // "matmul"
  std::vector<KernelOperand> operands;  // outputs first
  size_t outputs = 0;
  uint64_t calls = 0, bytes = 0;    // bytes: of the operands, read and written
  double seconds = 0;               // on the profiled device, without the time of ops inside
  std::vector<int64_t> shape = {};  // of the first result of a call
  uint64_t result_bytes = 0;        // of the first result of a call

  std::string dtypes() const;  // "f32 <- f32, f32"
};

// Neighbouring elementwise ops over one shape, perhaps behind a product, which a fusion computes in one pass over memory.
struct TracedGroup {
  std::string text;  // "matmul, add, gelu over 512 x 3072"
  uint64_t calls = 0;
  double seconds = 0, saved = 0;  // saved: the time of memory that no longer holds the results in between
};

struct Traced {
  std::vector<TracedOp> ops;        // the slowest first
  std::vector<TracedGroup> groups;  // the group that saves most first
  double rate = 0;                  // bytes per second of the fastest large elementwise op; 0 without one
};

// "matmul" -> "MATMUL".
std::string upper(std::string text);

// The ops of a Profiler's trace. Throws Error (io_error) if the file cannot be read, (invalid) if it is not such a trace.
Traced traced_file(const std::string& file);
// The same for events.
Traced traced_events(const std::vector<ProfileEvent>& events);

}  // namespace plugrad::tool
