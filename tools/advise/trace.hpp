// What a program ran, summed by op and dtypes, from a profiler's trace.
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
  double seconds = 0;             // on the device that was profiled, without what other ops inside took

  std::string dtypes() const;  // "f32 <- f32, f32"
};

// The ops of a trace that a Profiler wrote, the slowest first. Throws Error (io_error) if the file cannot be read,
// (invalid) if it is no such trace.
std::vector<TracedOp> ops_of_trace(const std::string& file);
// The same of events.
std::vector<TracedOp> ops_of_events(const std::vector<ProfileEvent>& events);

}  // namespace plugrad::tool
