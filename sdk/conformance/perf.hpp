// Times of kernels: a report as JSON, which a worker makes and a later run compares, and as a table.
#pragma once
#include <sdk/conformance/problem.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plugrad::conformance {

struct PerfRow {
  std::string op, dtype;
  std::string shape = {};    // of the first result of the timed call; in a trace, of all operands
  double small_seconds = 0;  // of a small call, for the fixed cost of any call; 0: not timed
  double seconds = 0;        // of a large call, or of a call with a trace's shapes
  uint64_t bytes = 0;        // of its operands
  double operations = 0;     // products and sums of products
  double of_roof = 0;        // the share of the least time that the device's copies and products allow
  uint64_t calls = 0;        // in a trace
  std::string failure = {};  // why there are no times
};

struct PerfReport {
  double copied = 0, multiplied = 0;  // bytes per second of large copies; operations per second of large products of f32
  std::vector<PerfRow> rows;
};

std::string json_of(const PerfReport& report);
// The seconds of an earlier report, by op, dtype and shape.
using EarlierTimes = std::map<std::string, double>;
// Reads an earlier report as JSON. Throws Unloadable for another file.
EarlierTimes times_in(const std::string& file);
// Returns a report as a table, compared with the times of an earlier one if there are any.
std::string table_of(const std::string& json, const std::optional<EarlierTimes>& earlier);

// A kind of call in a profiler's trace.
struct TracedCall {
  const OpInfo* op;
  Question question;
  std::vector<Shape> shapes;  // of all operands, outputs first
  std::vector<bool> numbers;  // which operands are immediates
  uint64_t calls = 0;
  double seconds = 0;  // on the profiled device, of all calls
};
// The kinds of calls in the trace that a Profiler wrote, the slowest first. Throws Unloadable for another file.
std::vector<TracedCall> traced_calls(const std::string& file);
// Returns operands of these shapes, with values from a range that suits most ops; nothing if the op has attributes or
// indices that a trace does not say.
std::optional<Problem> problem_of(const TracedCall& call, Random& random);

}  // namespace plugrad::conformance
