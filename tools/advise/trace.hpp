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
  uint64_t calls = 0, bytes = 0;  // bytes: of the operands, read and written
  double seconds = 0;             // on the profiled device, without the time of ops inside

  std::string dtypes() const;  // "f32 <- f32, f32"
};

// The ops of a Profiler's trace, the slowest first. Throws Error (io_error) if the file cannot be read, (invalid) if it is
// not such a trace.
std::vector<TracedOp> ops_of_trace(const std::string& file);
// The same for events.
std::vector<TracedOp> ops_of_events(const std::vector<ProfileEvent>& events);

}  // namespace plugrad::tool
