// The speed of the kernels: a small call, for the fixed cost of any call, and a large call beside the device's copying.
#include <sdk/conformance/op_rows.hpp>
#include <sdk/conformance/running.hpp>
#include <sdk/conformance/session.hpp>
#include <sdk/conformance/summary.hpp>
#include <sdk/conformance/trial.hpp>

#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <optional>
#include <ostream>

namespace plugrad::conformance {
namespace {

uint64_t bytes_of(const Problem& problem) {
  uint64_t bytes = 0;
  for (const std::vector<Array>* arrays : {&problem.outputs, &problem.inputs})
    for (const Array& array : *arrays) bytes += array.bytes().size();
  return bytes;
}

// The times of an op on dense operands of one dtype.
struct Timing {
  double small_seconds = 0, large_seconds = 0;
  uint64_t large_bytes = 0;
  Shape shape;  // of the large result
  double rate() const { return static_cast<double>(large_bytes) / large_seconds; }
};

double seconds_of(Session& session, Queue& queue, const Question& question, const plugrad_kernel* kernel,
                  const Problem& problem) {
  const OpRow& row = row_of(question.op->opcode);
  Arrangement dense;
  dense.operands.resize(question.dtypes.size());
  for (size_t i = question.op->outputs; row.only_immediates() && i < dense.operands.size(); ++i)
    dense.operands[i].form = Form::immediate;
  Batch batch(session.device, queue, row, question, kernel);
  batch.add(laid_out(row, question, problem, dense, session.device.info().alignment));
  return batch.seconds_of_a_call();
}

// Nothing if the plugin has no kernel. Throws Breach if it declines the call.
std::optional<Timing> timing_of(Session& session, Queue& queue, uint32_t opcode, uint8_t dtype) {
  const Question question = question_for(opcode, dtype);
  const OpRow& row = row_of(opcode);
  const plugrad_kernel* kernel =
      resolve(session.device.table(), session.device.handle(), question, row.only_immediates() ? PLUGRAD_IMMEDIATE : 0);
  if (!kernel) return std::nullopt;
  note_running("perf." + text_of(question));
  Random random(session.settings.seed);
  std::vector<Problem> problems = row.problems(question, random);
  std::erase_if(problems, [](const Problem& problem) { return problem.outputs[0].count() == 0; });
  const auto [small, large] = std::ranges::minmax_element(problems, {}, bytes_of);
  return Timing{seconds_of(session, queue, question, kernel, *small), seconds_of(session, queue, question, kernel, *large),
                bytes_of(*large), large->outputs[0].shape()};
}

std::string with_digits(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// A row of the table; `failure` if the kernel could not be timed.
struct PerfRow {
  std::string op, dtype;
  Timing timing;
  double of_copy = 0;  // the share of COPY's bytes per second
  std::string failure;
};

// COPY's bytes per second, or 0 if COPY cannot be timed.
double copied_rate(Session& session, Queue& queue) {
  try {
    const std::optional<Timing> timing = timing_of(session, queue, PLUGRAD_OP_COPY, PLUGRAD_F32);
    return timing ? timing->rate() : 0;
  } catch (const Breach&) {
    return 0;
  }
}

std::vector<PerfRow> rows_of(Session& session) {
  Queue queue = session.device.make_queue();
  const double copied = copied_rate(session, queue);
  const Settings& settings = session.settings;
  const std::vector<uint8_t> dtypes = settings.dtypes.empty() ? std::vector<uint8_t>{PLUGRAD_F32} : settings.dtypes;
  std::vector<PerfRow> rows;
  for (const OpInfo& op : kOps) {
    if (!settings.timed.empty() && !std::ranges::count(settings.timed, op.opcode)) continue;
    for (const uint8_t dtype : dtypes) {
      if (!op.is_for(dtype) || (op.opcode == PLUGRAD_OP_CAST && dtype != PLUGRAD_F32)) continue;
      try {
        if (const std::optional<Timing> timing = timing_of(session, queue, op.opcode, dtype))
          rows.push_back({op.name, dtype_label_of(dtype), *timing, copied > 0 ? timing->rate() / copied : 0, ""});
      } catch (const Breach& breach) {
        rows.push_back({op.name, dtype_label_of(dtype), {}, 0, breach.what()});
      }
    }
  }
  return rows;
}

}  // namespace

void write_perf(std::ostream& out, Session& session) {
  out << std::left << std::setw(24) << "op" << std::setw(6) << "dtype" << std::right << std::setw(14) << "small, us"
      << std::setw(14) << "large, us" << std::setw(10) << "GB/s" << std::setw(10) << "of COPY"
      << "  result of the large call\n";
  for (const auto& [op, dtype, t, of_copy, failure] : rows_of(session)) {
    out << std::left << std::setw(24) << op << std::setw(6) << dtype << std::right;
    if (!failure.empty()) out << "  " << failure << "\n";
    else
      out << std::setw(14) << with_digits(t.small_seconds * 1e6, 3) << std::setw(14) << with_digits(t.large_seconds * 1e6, 2)
          << std::setw(10) << with_digits(t.rate() / 1e9, 2) << std::setw(9) << with_digits(100 * of_copy, 0) << "%  "
          << text_of(t.shape) << "\n";
  }
}

void write_perf_json(std::ostream& out, Session& session) {
  out << "[";
  const char* comma = "";
  for (const auto& [op, dtype, t, of_copy, failure] : rows_of(session)) {
    out << comma << "\n  {\"op\": " << quoted(op) << ", \"dtype\": " << quoted(dtype);
    if (!failure.empty()) out << ", \"failure\": " << quoted(failure) << "}";
    else
      out << ", \"small_seconds\": " << t.small_seconds << ", \"large_seconds\": " << t.large_seconds
          << ", \"large_bytes\": " << t.large_bytes << ", \"of_copy\": " << of_copy
          << ", \"shape\": " << quoted(text_of(t.shape)) << "}";
    comma = ",";
  }
  out << "\n]\n";
}

}  // namespace plugrad::conformance
