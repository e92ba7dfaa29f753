#include <tools/advise/trace.hpp>

#include <plugrad/runtime/error.hpp>
#include <plugrad/sdk/ops.hpp>
#include <tools/plugrad/json.hpp>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <utility>

namespace plugrad::tool {
namespace {

uint64_t bytes_of(const std::string& dtype, const std::vector<int64_t>& shape) {
  const auto* const info = std::ranges::find_if(kDTypes, [&](const DTypeInfo& each) { return dtype == each.label; });
  uint64_t bytes = info == std::end(kDTypes) ? 0 : static_cast<uint64_t>(element_size(info->dtype));
  for (const int64_t extent : shape) bytes *= static_cast<uint64_t>(extent);
  return bytes;
}

// Sums ops with the same name and dtypes, and groups of neighbours.
class Sums {
 public:
  void add(const TracedOp& op) {
    follow(op);
    const auto [place, first] = sums_.try_emplace({op.op, op.dtypes()}, op);
    TracedOp& sum = place->second;
    ++sum.calls;
    if (first) return;
    sum.bytes += op.bytes;
    sum.seconds += op.seconds;
  }
  Traced sorted() {
    close();
    Traced all;
    for (const auto& [key, op] : sums_) all.ops.push_back(op);
    for (const auto& [key, group] : groups_) all.groups.push_back(group);
    std::ranges::stable_sort(all.ops, std::greater(), &TracedOp::seconds);
    std::ranges::stable_sort(all.groups, std::greater(), &TracedGroup::saved);
    all.rate = rate_;
    return all;
  }

 private:
  static constexpr uint64_t kLeastBytes = 1 << 16;  // smaller calls cost their fixed time, not the time of memory
  static constexpr uint64_t kLarge = 1 << 20;

  static OpShape shape_of(const TracedOp& op) {
    const auto* const info = std::ranges::find_if(kOps, [&](const OpInfo& each) { return each.name == upper(op.op); });
    return info == std::end(kOps) ? OpShape::generate : info->shape;
  }
  static bool is_product(const TracedOp& op) { return op.op == "matmul" || op.op == "matmul_add"; }

  void follow(const TracedOp& op) {
    const bool is_elementwise = shape_of(op) == OpShape::elementwise;
    if (is_elementwise && op.bytes >= kLarge && op.seconds > 0)
      rate_ = std::max(rate_, static_cast<double>(op.bytes) / op.seconds);
    const bool follows = is_elementwise && !open_.empty() && open_.back().shape == op.shape;
    if (!follows) close();
    if ((is_elementwise || is_product(op)) && op.bytes >= kLeastBytes) open_.push_back(op);
  }

  // Ends the group of the latest neighbours. A product takes its time in any case.
  void close() {
    const std::vector<TracedOp> ops = std::exchange(open_, {});
    if (ops.size() < 2) return;
    double seconds = 0, bytes = 0, between = 0, all = 0;
    std::string text;
    for (size_t i = 0; i < ops.size(); ++i) {
      text += (i ? ", " : "") + ops[i].op;
      all += ops[i].seconds;
      if (i + 1 < ops.size()) between += static_cast<double>(ops[i].result_bytes) * (is_product(ops[i]) ? 1 : 2);
      if (is_product(ops[i])) continue;
      seconds += ops[i].seconds;
      bytes += static_cast<double>(ops[i].bytes);
    }
    for (size_t d = 0; d < ops[0].shape.size(); ++d) text += (d ? " x " : " over ") + std::to_string(ops[0].shape[d]);
    TracedGroup& group = groups_[text];
    group.text = text;
    ++group.calls;
    group.seconds += all;
    group.saved += bytes > 0 ? seconds * std::min(between / bytes, 1.0) : 0;
  }

  std::map<std::pair<std::string, std::string>, TracedOp> sums_;
  std::map<std::string, TracedGroup> groups_;
  std::vector<TracedOp> open_;
  double rate_ = 0;
};

KernelOperand operand_in(const Json& json) { return {json.at("dtype").as<std::string>(), json.value("number", false)}; }

TracedOp op_in(const Json& event) {
  const Json arguments = event.at("args");
  TracedOp op;
  op.op = event.at("name").as<std::string>();
  for (const Json& each : arguments.at("outputs").elements()) op.operands.push_back(operand_in(each));
  op.outputs = op.operands.size();
  if (op.outputs) {
    op.shape = arguments.at("outputs").elements()[0].value("shape", std::vector<int64_t>());
    op.result_bytes = bytes_of(op.operands[0].dtype, op.shape);
  }
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

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c); });
  return text;
}

std::string TracedOp::dtypes() const {
  std::string text;
  for (size_t i = 0; i < operands.size(); ++i)
    text += (i ? i == outputs ? " <- " : ", " : "") + operands[i].dtype + (operands[i].number ? " number" : "");
  return text;
}

Traced traced_file(const std::string& file) {
  std::ifstream in(file);
  std::string text;
  if (!std::getline(in, text, '\0') && !in.eof())
    throw Error(Code::io_error, "[" + file + "] cannot be read: expected a trace that a profiler wrote");
  Sums sums;
  try {
    const Json trace = Json::parse(text);
    for (const Json& event : (trace.is_array() ? trace : trace.at("traceEvents")).elements())
      if (event.is_object() && is_op(event)) sums.add(op_in(event));
  } catch (const JsonError& error) {
    throw Error(Code::invalid, "[" + file + "] is not a profiler's trace: " + error.what());
  }
  Traced traced = sums.sorted();
  if (traced.ops.empty())
    throw Error(Code::invalid, "[" + file + "] contains no op: expected a trace that a profiler wrote");
  return traced;
}

Traced traced_events(const std::vector<ProfileEvent>& events) {
  Sums sums;
  for (const ProfileEvent& event : events) {
    if (event.kind != EventKind::op) continue;
    TracedOp op;
    op.op = event.name;
    for (const ProfileOperand& each : event.operands) {
      op.operands.push_back({each.dtype, each.number});
      op.outputs += each.output;
    }
    if (op.outputs) {
      const std::span<const int64_t> shape = event.operands[0].shape();
      op.shape.assign(shape.begin(), shape.end());
      op.result_bytes = bytes_of(op.operands[0].dtype, op.shape);
    }
    op.bytes = event.bytes;
    op.seconds = static_cast<double>(event.self) * 1e-9;
    sums.add(op);
  }
  return sums.sorted();
}

}  // namespace plugrad::tool
