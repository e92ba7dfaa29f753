// The speed of the kernels beside the device's own copies and products.
#include <sdk/conformance/op_rows.hpp>
#include <sdk/conformance/perf.hpp>
#include <sdk/conformance/running.hpp>
#include <sdk/conformance/session.hpp>
#include <sdk/conformance/trial.hpp>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <ostream>

namespace plugrad::conformance {
namespace {

constexpr double kPatience = 0.05;  // seconds that a call may take

uint64_t bytes_of(const Problem& problem) {
  uint64_t bytes = 0;
  for (const std::vector<Array>* arrays : {&problem.outputs, &problem.inputs})
    for (const Array& array : *arrays) bytes += array.bytes().size();
  return bytes;
}

// Times calls of a device.
class Timer {
 public:
  explicit Timer(Session& session) : session_(session), queue_(session.device.make_queue()) {}

  const plugrad_kernel* kernel_for(const Question& question, const std::vector<bool>& numbers) const {
    const bool some = std::ranges::find(numbers, true) != numbers.end();
    return resolve(session_.device.table(), session_.device.handle(), question, some ? PLUGRAD_IMMEDIATE : 0);
  }
  // numbers: which operands are immediates. Nothing if the plugin has no kernel. Throws Breach if it declines the call.
  std::optional<double> seconds_of(const Question& question, const Problem& problem, const std::vector<bool>& numbers) {
    const OpRow& row = row_of(question.op->opcode);
    const plugrad_kernel* const kernel = kernel_for(question, numbers);
    if (!kernel) return {};
    note_running("perf." + text_of(question));
    Arrangement dense;
    dense.operands.resize(question.dtypes.size());
    for (size_t i = 0; i < numbers.size(); ++i)
      if (numbers[i]) dense.operands[i].form = Form::immediate;
    Batch batch(session_.device, queue_, row, question, kernel);
    batch.add(laid_out(row, question, problem, dense, session_.device.info().alignment));
    return batch.seconds_of_a_call();
  }

 private:
  Session& session_;
  Queue queue_;
};

// The bound that memory and arithmetic set: the speed of copies of as many bytes, and of a large product in the dtype.
class Roofline {
 public:
  explicit Roofline(Timer& timer) : timer_(timer) {}

  // Returns the least time of a call, or 0 if nothing bounds it.
  double seconds_for(uint64_t bytes, double operations, uint8_t dtype) {
    const double product = operations > 0 ? product_rate(dtype) : 0;
    return std::max(copy_seconds(bytes), product > 0 ? operations / product : 0);
  }
  // Returns bytes per second of copies of as many bytes, or 0 without a kernel for COPY.
  double copy_rate(uint64_t bytes) {
    constexpr uint64_t kLeast = 1 << 12, kMost = 1 << 28;
    const uint64_t size = std::bit_ceil(std::clamp(bytes, kLeast, kMost));
    const auto [known, is_new] = copies_.try_emplace(size, 0);
    if (!is_new) return known->second;
    const Shape shape{static_cast<int64_t>(size / 8)};
    Problem problem{{Array(PLUGRAD_F32, shape)}, {Array(PLUGRAD_F32, shape)}, {}};
    return known->second = rate(PLUGRAD_OP_COPY, PLUGRAD_F32, problem, static_cast<double>(size));
  }
  // Returns operations per second of a large product, or 0 without a kernel for it. The product is smaller on a slow device.
  double product_rate(uint8_t dtype) {
    constexpr int64_t kLeast = 128, kMost = 512;
    const auto [known, is_new] = products_.try_emplace(dtype, 0);
    for (int64_t side = kLeast; is_new && side <= kMost; side *= 2) {
      Random random(1);
      const Array matrix = random_array(dtype, {side, side}, {-1, 1}, random);
      Problem problem{{Array(dtype, {side, side})}, {matrix, matrix}, {}};
      const double operations = 2.0 * static_cast<double>(side * side * side);
      known->second = rate(PLUGRAD_OP_MATMUL, dtype, problem, operations);
      if (known->second <= 0 || 8 * operations / known->second > kPatience) break;
    }
    return known->second;
  }

 private:
  double copy_seconds(uint64_t bytes) {
    const double copied = copy_rate(bytes);
    return copied > 0 ? static_cast<double>(bytes) / copied : 0;
  }
  double rate(uint32_t opcode, uint8_t dtype, const Problem& problem, double amount) {
    try {
      const std::optional<double> seconds = timer_.seconds_of(question_for(opcode, dtype), problem, {});
      return seconds ? amount / *seconds : 0;
    } catch (const Breach&) {
      return 0;
    }
  }

  Timer& timer_;
  std::map<uint64_t, double> copies_;
  std::map<uint8_t, double> products_;
};

// The products and sums of products of an op with contractions; 0 for the other ops, which memory bounds.
double operations_of(const OpInfo& op, const Problem& problem) {
  const auto count = [](const Array& array) { return static_cast<double>(array.count()); };
  const auto extent = [](const Array& array, size_t from_end) {
    const Shape& shape = array.shape();
    return shape.size() >= from_end ? static_cast<double>(shape[shape.size() - from_end]) : 1;
  };
  const std::vector<Array>&out = problem.outputs, &in = problem.inputs;
  switch (op.opcode) {
    case PLUGRAD_OP_MATMUL:
    case PLUGRAD_OP_MATMUL_ADD: return 2 * count(out[0]) * extent(in[0], 1);
    case PLUGRAD_OP_ATTENTION: return 2 * count(in[0]) * extent(in[1], 2) + 2 * count(out[0]) * extent(in[1], 2);
    case PLUGRAD_OP_ATTENTION_BACKWARD: return 6 * count(in[1]) * extent(in[2], 2) + 4 * count(in[0]) * extent(in[2], 2);
    case PLUGRAD_OP_CONVOLUTION:
    case PLUGRAD_OP_CONVOLUTION_BIAS: return 2 * count(out[0]) * count(in[1]) / static_cast<double>(in[1].shape()[0]);
    case PLUGRAD_OP_CONVOLUTION_INPUT_GRAD: return 2 * count(in[0]) * count(in[1]) / static_cast<double>(in[1].shape()[0]);
    case PLUGRAD_OP_CONVOLUTION_WEIGHT_GRAD:
      return 2 * count(in[0]) * count(out[0]) / static_cast<double>(out[0].shape()[0]);
    default: return 0;
  }
}

std::vector<bool> numbers_of(const OpInfo& op) {
  std::vector<bool> numbers(static_cast<size_t>(op.operand_count()));
  if (row_of(op.opcode).only_immediates()) std::fill(numbers.begin() + op.outputs, numbers.end(), true);
  return numbers;
}

void add(PerfRow& row, Timer& timer, Roofline& roof, const Question& question, const Problem& problem,
         const std::vector<bool>& numbers) {
  const std::optional<double> seconds = timer.seconds_of(question, problem, numbers);
  if (!seconds) {
    row.failure = "the device has no kernel for it";
    return;
  }
  row.seconds = *seconds;
  row.bytes = bytes_of(problem);
  row.operations = operations_of(*question.op, problem);
  if (row.shape.empty()) row.shape = text_of(problem.outputs[0].shape());
  row.of_roof = roof.seconds_for(row.bytes, row.operations, question.dtypes[0]) / row.seconds;
}

// A call of a product as in a network; the problems of the tests are too small to show what a device can do. Without shapes
// for other ops.
TracedCall network_call(const OpInfo& op, const Question& question) {
  TracedCall call{&op, question, {}, std::vector<bool>(static_cast<size_t>(op.operand_count()))};
  const Shape square{512, 512}, rows{8, 256, 64}, scores{8, 256, 256};
  if (op.opcode == PLUGRAD_OP_MATMUL) call.shapes = {square, square, square};
  if (op.opcode == PLUGRAD_OP_MATMUL_ADD) call.shapes = {square, square, square, square};
  if (op.opcode == PLUGRAD_OP_ATTENTION) call.shapes = {rows, {8, 256, 1}, rows, rows, rows, scores};
  return call;
}

// A small call, and a large one: the smallest and the largest of the problems that test the op.
std::optional<PerfRow> tested_row(Session& session, Timer& timer, Roofline& roof, const OpInfo& op, uint8_t dtype) {
  const Question question = question_for(op.opcode, dtype);
  const std::vector<bool> numbers = numbers_of(op);
  if (!timer.kernel_for(question, numbers)) return {};
  PerfRow row{op.name, dtype_label_of(dtype)};
  try {
    Random random(session.settings.seed);
    std::vector<Problem> problems = row_of(op.opcode).problems(question, random);
    std::erase_if(problems, [](const Problem& problem) { return problem.outputs[0].count() == 0; });
    const auto [small, large] = std::ranges::minmax_element(problems, {}, bytes_of);
    row.small_seconds = *timer.seconds_of(question, *small, numbers);
    const std::optional<Problem> network = problem_of(network_call(op, question), random);
    const bool is_fast = network && operations_of(op, *network) < kPatience * roof.product_rate(dtype);
    add(row, timer, roof, question, is_fast ? *network : *large, numbers);
  } catch (const Breach& breach) {
    row.failure = breach.what();
  }
  return row;
}

PerfRow traced_row(Session& session, Timer& timer, Roofline& roof, const TracedCall& traced) {
  PerfRow row{traced.op->name, dtype_label_of(traced.question.dtypes[0])};
  row.calls = traced.calls;
  for (size_t i = 0; i < traced.shapes.size(); ++i)
    row.shape += (i == 0                    ? ""
                  : i == traced.op->outputs ? " <- "
                                            : ", ") +
                 (traced.numbers[i] ? "number" : text_of(traced.shapes[i]));
  Random random(session.settings.seed);
  const std::optional<Problem> problem = problem_of(traced, random);
  if (!problem) {
    row.failure = "a trace does not say its attributes";
    return row;
  }
  try {
    add(row, timer, roof, traced.question, *problem, traced.numbers);
  } catch (const Breach& breach) {
    row.failure = breach.what();
  }
  return row;
}

bool is_selected(const Settings& settings, uint8_t dtype) {
  return settings.dtypes.empty() || std::ranges::count(settings.dtypes, dtype);
}
bool is_selected(const Settings& settings, const OpInfo& op) {
  return settings.timed.empty() || std::ranges::count(settings.timed, op.opcode);
}

std::vector<PerfRow> rows_of(Session& session, Timer& timer, Roofline& roof) {
  const Settings& settings = session.settings;
  std::vector<PerfRow> rows;
  if (!settings.trace.empty()) {
    for (const TracedCall& each : traced_calls(settings.trace))
      if (is_selected(settings, *each.op) && is_selected(settings, each.question.dtypes[0]))
        rows.push_back(traced_row(session, timer, roof, each));
    return rows;
  }
  const std::vector<uint8_t> dtypes = settings.dtypes.empty() ? std::vector<uint8_t>{PLUGRAD_F32} : settings.dtypes;
  for (const OpInfo& op : kOps) {
    if (!is_selected(settings, op)) continue;
    for (const uint8_t dtype : dtypes) {
      if (!op.is_for(dtype) || (op.opcode == PLUGRAD_OP_CAST && dtype != PLUGRAD_F32)) continue;
      if (std::optional<PerfRow> row = tested_row(session, timer, roof, op, dtype)) rows.push_back(std::move(*row));
    }
  }
  return rows;
}

}  // namespace

void write_perf(std::ostream& out, Session& session) {
  Timer timer(session);
  Roofline roof(timer);
  PerfReport report;
  report.rows = rows_of(session, timer, roof);
  constexpr uint64_t kBeyondCaches = 1 << 27;
  report.copied = roof.copy_rate(kBeyondCaches);
  report.multiplied = roof.product_rate(PLUGRAD_F32);
  out << json_of(report);
}

}  // namespace plugrad::conformance
