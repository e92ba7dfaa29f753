#include <tools/advise/trace.hpp>

#include <plugrad/runtime/error.hpp>
#include <tools/plugrad/json.hpp>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

namespace plugrad::tool {
namespace {

// Sums ops with the same name and dtypes.
class Sums {
 public:
  void add(const TracedOp& op) {
    const auto [place, first] = sums_.try_emplace({op.op, op.dtypes()}, op);
    TracedOp& sum = place->second;
    ++sum.calls;
    if (first) return;
    sum.bytes += op.bytes;
    sum.seconds += op.seconds;
  }
  std::vector<TracedOp> sorted() const {
    std::vector<TracedOp> all;
    for (const auto& [key, op] : sums_) all.push_back(op);
    std::ranges::stable_sort(all, std::greater(), &TracedOp::seconds);
    return all;
  }

 private:
  std::map<std::pair<std::string, std::string>, TracedOp> sums_;
};

KernelOperand operand_in(const Json& json) { return {json.at("dtype").as<std::string>(), json.value("number", false)}; }

TracedOp op_in(const Json& event) {
  const Json arguments = event.at("args");
  TracedOp op;
  op.op = event.at("name").as<std::string>();
  for (const Json& each : arguments.at("outputs").elements()) op.operands.push_back(operand_in(each));
  op.outputs = op.operands.size();
  for (const Json& each : arguments.at("inputs").elements()) op.operands.push_back(operand_in(each));
  op.bytes = arguments.value("bytes", uint64_t{0});
  op.seconds = event.value("dur", 0.0) * 1e-6;
  return op;
}

bool is_op(const Json& event) {
  const std::string kind = event.value("cat", std::string());
  return (kind == "forward" || kind == "backward") && event.contains("args") && event.at("args").contains("outputs");
}

}  // namespace

std::string TracedOp::dtypes() const {
  std::string text;
  for (size_t i = 0; i < operands.size(); ++i)
    text += (i ? i == outputs ? " <- " : ", " : "") + operands[i].dtype + (operands[i].number ? " number" : "");
  return text;
}

std::vector<TracedOp> ops_of_trace(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw Error(Code::io_error, "[" + file + "] cannot be read: expected a trace that a profiler wrote");
  Sums sums;
  try {
    const Json trace = Json::parse({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
    for (const Json& event : (trace.is_array() ? trace : trace.at("traceEvents")).elements())
      if (event.is_object() && is_op(event)) sums.add(op_in(event));
  } catch (const JsonError& error) {
    throw Error(Code::invalid, "[" + file + "] is not a profiler's trace: " + error.what());
  }
  std::vector<TracedOp> ops = sums.sorted();
  if (ops.empty()) throw Error(Code::invalid, "[" + file + "] contains no op: expected a trace that a profiler wrote");
  return ops;
}

std::vector<TracedOp> ops_of_events(const std::vector<ProfileEvent>& events) {
  Sums sums;
  for (const ProfileEvent& event : events) {
    if (event.kind != EventKind::op) continue;
    TracedOp op;
    op.op = event.name;
    for (const ProfileOperand& each : event.operands) {
      op.operands.push_back({each.dtype, each.number});
      op.outputs += each.output;
    }
    op.bytes = event.bytes;
    op.seconds = static_cast<double>(event.self) * 1e-9;
    sums.add(op);
  }
  return sums.sorted();
}

}  // namespace plugrad::tool
