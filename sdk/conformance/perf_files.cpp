// Reports of times as JSON, and the calls of a profiler's trace.
#include <sdk/conformance/perf.hpp>
#include <sdk/conformance/plugin.hpp>

#include <process/file_text.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>

namespace plugrad::conformance {
namespace {

using Json = nlohmann::json;

Json parsed(const std::string& file, const char* expected) {
  const std::optional<std::string> text = file_text(file);
  if (!text) throw Unloadable(file + ": cannot be read; " + expected + " expected");
  try {
    return Json::parse(*text);
  } catch (const Json::exception&) {
    throw Unloadable(file + ": is not JSON; " + expected + " expected");
  }
}

std::string with_digits(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}
std::string right(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}
std::string left(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string key_of(const Json& row) {
  return row.at("op").get<std::string>() + " " + row.at("dtype").get<std::string>() + " " +
         row.at("shape").get<std::string>();
}

std::string line_of(const Json& row) {
  const double seconds = row.at("seconds"), operations = row.at("operations"), small = row.value("small_seconds", 0.0);
  return right(small > 0 ? with_digits(small * 1e6, 3) : "", 12) + right(with_digits(seconds * 1e6, 2), 12) +
         right(with_digits(row.at("bytes").get<double>() / seconds * 1e-9, 2), 10) +
         right(operations > 0 ? with_digits(operations / seconds * 1e-9, 1) : "", 11) +
         right(with_digits(100 * row.at("of_roof").get<double>(), 0), 8) + "%";
}

// --- Traces.

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

void add_operand(TracedCall& call, const Json& operand) {
  const std::string label = operand.at("dtype");
  const auto* const info = std::ranges::find_if(kDTypes, [&](const DTypeInfo& each) { return label == each.label; });
  if (info == std::end(kDTypes)) throw Unloadable("a trace with the unknown dtype " + label);
  call.question.dtypes.push_back(info->dtype);
  call.shapes.push_back(operand.value("shape", Shape{}));
  call.numbers.push_back(operand.value("number", false));
}

std::optional<TracedCall> call_in(const Json& event) {
  const std::string kind = event.value("cat", "");
  if ((kind != "forward" && kind != "backward") || !event.contains("args") || !event.at("args").contains("outputs"))
    return {};
  const std::string name = upper(event.at("name"));
  const auto* const op = std::ranges::find_if(kOps, [&](const OpInfo& each) { return name == each.name; });
  if (op == std::end(kOps)) return {};
  TracedCall call{op, {op, {}}, {}, {}};
  for (const char* side : {"outputs", "inputs"})
    for (const Json& each : event.at("args").at(side)) add_operand(call, each);
  if (call.shapes.size() != static_cast<size_t>(op->operand_count())) return {};  // an earlier version's op
  call.calls = 1;
  call.seconds = event.value("dur", 0.0) * 1e-6;
  return call;
}

template <class T> void set_attributes(Problem& problem, T attributes) {
  attributes.struct_size = sizeof attributes;
  problem.set_attributes(attributes);
}

// Sets the attributes that networks use, if time does not depend on others. Returns false if it does.
bool give_attributes(const TracedCall& call, Problem& problem) {
  const auto last = static_cast<int32_t>(call.shapes[0].size()) - 1;
  switch (call.op->opcode) {
    case PLUGRAD_OP_SOFTMAX:
    case PLUGRAD_OP_LOG_SOFTMAX:
    case PLUGRAD_OP_SOFTMAX_BACKWARD:
    case PLUGRAD_OP_LOG_SOFTMAX_BACKWARD: return set_attributes(problem, plugrad_axis{0, last}), true;
    case PLUGRAD_OP_LAYER_NORM:
    case PLUGRAD_OP_RMS_NORM:
    case PLUGRAD_OP_BATCH_NORM:
    case PLUGRAD_OP_LAYER_NORM_BACKWARD:
    case PLUGRAD_OP_RMS_NORM_BACKWARD:
    case PLUGRAD_OP_BATCH_NORM_BACKWARD: return set_attributes(problem, plugrad_norm{0, 0, 1e-5}), true;
    case PLUGRAD_OP_ATTENTION:
    case PLUGRAD_OP_ATTENTION_BACKWARD: return set_attributes(problem, plugrad_attention{0, 0, 0.125}), true;
    case PLUGRAD_OP_SGD_STEP: return set_attributes(problem, plugrad_sgd{0, 0, 0.9, 0.01}), true;
    case PLUGRAD_OP_ADAM_STEP: return set_attributes(problem, plugrad_adam{0, 0, 0.9, 0.999, 1e-8, 0.01}), true;
    default: break;
  }
  const OpShape shape = call.op->shape;
  return shape == OpShape::elementwise || shape == OpShape::copy || shape == OpShape::reduction ||
         shape == OpShape::generate || shape == OpShape::update || call.op->opcode == PLUGRAD_OP_MATMUL ||
         call.op->opcode == PLUGRAD_OP_MATMUL_ADD;
}

}  // namespace

std::string json_of(const PerfReport& report) {
  Json rows = Json::array();
  for (const PerfRow& each : report.rows) {
    Json row{{"op", each.op}, {"dtype", each.dtype}, {"shape", each.shape}};
    if (each.calls) row["calls"] = each.calls;
    if (!each.failure.empty()) {
      row["failure"] = each.failure;
    } else {
      if (each.small_seconds > 0) row["small_seconds"] = each.small_seconds;
      row.update(
          {{"seconds", each.seconds}, {"bytes", each.bytes}, {"operations", each.operations}, {"of_roof", each.of_roof}});
    }
    rows.push_back(std::move(row));
  }
  return Json{{"copied_bytes_per_second", report.copied}, {"f32_operations_per_second", report.multiplied}, {"rows", rows}}
             .dump(1) +
         "\n";
}

EarlierTimes times_in(const std::string& file) {
  constexpr const char* kExpected = "what plugrad-conform --perf --json printed";
  const Json report = parsed(file, kExpected);
  EarlierTimes times;
  try {
    for (const Json& row : report.at("rows"))
      if (!row.contains("failure")) times[key_of(row)] = row.at("seconds").get<double>();
  } catch (const Json::exception&) {
    throw Unloadable(file + ": is not a report of times; " + kExpected + " expected");
  }
  return times;
}

std::string table_of(const std::string& json, const std::optional<EarlierTimes>& earlier) {
  const Json report = Json::parse(json);
  const bool compares = earlier.has_value();
  std::string text = "copies of 64 MB: " + with_digits(report.at("copied_bytes_per_second").get<double>() * 1e-9, 1) +
                     " GB/s read and written; large products of f32: " +
                     with_digits(report.at("f32_operations_per_second").get<double>() * 1e-9, 1) + " GFLOP/s\n";
  text += left("op", 24) + left("dtype", 6) + "   small, us   large, us      GB/s    GFLOP/s  of roof" +
          (compares ? "   before / now" : "") + "  result of the large call\n";
  double logarithms = 0;
  size_t compared = 0;
  for (const Json& row : report.at("rows")) {
    text += left(row.at("op"), 24) + left(row.at("dtype"), 6);
    const std::string shape =
        row.at("shape").get<std::string>() +
        (row.contains("calls") ? ", " + std::to_string(row.at("calls").get<uint64_t>()) + " calls in the trace" : "");
    if (row.contains("failure")) {
      text += "  " + row.at("failure").get<std::string>() + ": " + shape + "\n";
      continue;
    }
    text += line_of(row);
    if (compares) {
      const auto found = earlier->find(key_of(row));
      const double ratio = found == earlier->end() ? 0 : found->second / row.at("seconds").get<double>();
      if (ratio > 0) ++compared, logarithms += std::log(ratio);
      text += right(ratio > 0 ? with_digits(ratio, 2) : "-", 15);
    }
    text += "  " + shape + "\n";
  }
  if (compares)
    text += "before / now, geometric mean of " + std::to_string(compared) +
            " rows: " + with_digits(compared ? std::exp(logarithms / static_cast<double>(compared)) : 1, 3) + "\n";
  return text;
}

std::vector<TracedCall> traced_calls(const std::string& file) {
  constexpr const char* kExpected = "a trace that a profiler wrote";
  const Json trace = parsed(file, kExpected);
  std::map<std::string, TracedCall> calls;
  try {
    for (const Json& event : trace.is_array() ? trace : trace.at("traceEvents")) {
      std::optional<TracedCall> call = call_in(event);
      if (!call) continue;
      const std::string key =
          event.at("name").get<std::string>() + event.at("args").at("outputs").dump() + event.at("args").at("inputs").dump();
      const auto [place, is_new] = calls.try_emplace(key, *call);
      if (is_new) continue;
      ++place->second.calls;
      place->second.seconds += call->seconds;
    }
  } catch (const Json::exception& error) {
    throw Unloadable(file + ": is not " + kExpected + ": " + error.what());
  }
  if (calls.empty()) throw Unloadable(file + ": contains no op; " + std::string(kExpected) + " expected");
  std::vector<TracedCall> sorted;
  for (auto& [key, call] : calls) sorted.push_back(std::move(call));
  std::ranges::stable_sort(sorted, std::greater(), &TracedCall::seconds);
  return sorted;
}

std::optional<Problem> problem_of(const TracedCall& call, Random& random) {
  Problem problem;
  if (call.shapes.empty() || !give_attributes(call, problem)) return {};
  for (size_t i = 0; i < call.shapes.size(); ++i) {
    const uint8_t dtype = call.question.dtypes[i];
    const Shape shape = call.numbers[i] ? Shape{} : call.shapes[i];
    const Array array = random_array(dtype, shape, {0.5, 2}, random);
    (i < call.op->outputs ? problem.outputs : problem.inputs).push_back(array);
  }
  return problem;
}

}  // namespace plugrad::conformance
