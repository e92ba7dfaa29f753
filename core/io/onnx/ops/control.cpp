#include <core/io/onnx/ops/tables.hpp>
#include <core/io/onnx/run.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <limits>

namespace plugrad::io::onnx {
namespace {

constexpr int64_t kMostRounds = 1'000'000;  // each round keeps what it computed from constants

// Values of a loop differ from one iteration to the next: at most their shapes are known before.
Value in_loop(Value value) { return raised(std::move(value), Level::shapes); }

Value constant_number(const Tensor& tensor, int64_t number) {
  Value value(tensor);
  value.level = Level::shapes;
  value.host = std::make_shared<HostElements>(number);
  return value;
}

Values branch(Call& c) {
  Values results = c.run().run(c.graph(c.integer(0) ? "then_branch" : "else_branch"));
  for (Value& each : results) each = raised(std::move(each), c.value(0).level);
  return results;
}

void set_inputs(const Call& c, const Graph& graph, size_t first, const Values& values) {
  for (size_t i = 0; i < values.size() && first + i < graph.inputs.size(); ++i)
    c.run().set(graph.inputs[first + i], values[i]);
}

// The scan output of a loop without rounds: its body declares the other extents; undeclared ones are 0.
Value no_rounds(const Call& c, const TypeMessage& type) {
  const auto element = static_cast<ElementType>(type.element);
  Shape shape{0};
  for (const TypeMessage::Extent& each : type.shape) shape.push_back(std::max<int64_t>(each.value.value_or(0), 0));
  return Value(zeros(shape, carrier_of(element), c.device()), element);
}

// Stacks what each iteration gave along a new axis.
Value stacked(const Call& c, const Values& parts, int axis, const TypeMessage& type) {
  if (parts.empty()) return no_rounds(c, type);
  std::vector<Tensor> tensors;
  for (const Value& each : parts) {
    if (!each.tensor.defined()) throw Error(Code::invalid, "a scan output is not a tensor");
    tensors.push_back(each.tensor);
  }
  return c.as(stack(tensors, axis), parts[0].type);
}

struct LoopState {
  Values carried;
  std::vector<Values> scans;
};

// Takes the results of an iteration apart.
void take(LoopState& state, Values results, size_t first) {
  const size_t count = state.carried.size();
  for (size_t i = 0; i < count; ++i) state.carried[i] = in_loop(results.at(first + i));
  for (size_t i = 0; i < state.scans.size(); ++i) state.scans[i].push_back(results.at(first + count + i));
}

Values loop(Call& c) {
  const Graph& body = c.graph("body");
  const int64_t most = c.has(0) ? c.integer(0) : std::numeric_limits<int64_t>::max();
  bool again = !c.has(1) || c.integer(1);
  LoopState state;
  for (size_t i = 2; i < body.inputs.size(); ++i) state.carried.push_back(i < c.inputs() ? in_loop(c.value(i)) : Value());
  if (body.outputs.size() < 1 + state.carried.size()) throw Error(Code::invalid, "the body has too few outputs");
  state.scans.resize(body.outputs.size() - 1 - state.carried.size());
  const auto number = [&](int64_t i, DType dtype) {
    return constant_number(c.made([&] { return full({}, i, dtype, c.device()); }), i);
  };
  const Value on = number(1, DType::boolean);
  for (int64_t i = 0; again && i < most; ++i) {
    if (i >= kMostRounds) throw Error(Code::unsupported, "a loop of over " + std::to_string(kMostRounds) + " rounds");
    set_inputs(c, body, 0, {number(i, DType::i64), on});
    set_inputs(c, body, 2, state.carried);
    Values results = c.run().run(body);
    const Value condition = results[0];
    take(state, std::move(results), 1);
    again = i + 1 < most && c.host_integers(condition).at(0);
  }
  Values results = state.carried;
  for (size_t i = 0; i < state.scans.size(); ++i)
    results.push_back(stacked(c, state.scans[i], 0, body.output_types[1 + state.carried.size() + i]));
  return results;
}

int64_t number_at(const std::vector<int64_t>& all, size_t i) { return i < all.size() ? all[i] : 0; }

Values scan(Call& c) {
  if (c.opset() < 9) throw Error(Code::unsupported, "version 8 of Scan is not supported: convert the model to opset 9");
  const Graph& body = c.graph("body");
  const size_t inputs = static_cast<size_t>(c.integer("num_scan_inputs", 1));
  if (inputs < 1 || inputs > c.inputs()) throw Error(Code::invalid, "num_scan_inputs does not fit the inputs");
  const size_t states = c.inputs() - inputs;
  if (body.outputs.size() < states) throw Error(Code::invalid, "the body has too few outputs");
  const auto in_axes = c.integers("scan_input_axes"), in_back = c.integers("scan_input_directions");
  const auto out_axes = c.integers("scan_output_axes"), out_back = c.integers("scan_output_directions");
  LoopState state;
  for (size_t i = 0; i < states; ++i) state.carried.push_back(in_loop(c.value(i)));
  state.scans.resize(body.outputs.size() - states);
  const auto axis = [&](size_t i) { return Call::axis(number_at(in_axes, i), c.rank(states + i)); };
  const int64_t length = c.tensor(states).size(axis(0));
  if (length > kMostRounds) throw Error(Code::unsupported, "a scan of over " + std::to_string(kMostRounds) + " rounds");
  for (int64_t t = 0; t < length; ++t) {
    set_inputs(c, body, 0, state.carried);
    for (size_t i = 0; i < inputs; ++i) {
      const int64_t at = number_at(in_back, i) ? length - 1 - t : t;
      Value part = c.like(select(c.tensor(states + i), axis(i), at), states + i);
      c.run().set(body.inputs.at(states + i), part);
    }
    take(state, c.run().run(body), 0);
  }
  Values results = state.carried;
  for (size_t i = 0; i < state.scans.size(); ++i) {
    Values parts = state.scans[i];
    if (number_at(out_back, i)) std::ranges::reverse(parts);
    const int rank = parts.empty() ? 1 : parts[0].tensor.rank() + 1;
    results.push_back(stacked(c, parts, Call::axis(number_at(out_axes, i), rank), body.output_types[states + i]));
  }
  return results;
}

constexpr Operator kControl[] = {
    {"If", branch, Operator::Kind::flow},
    {"Loop", loop, Operator::Kind::flow},
    {"Scan", scan, Operator::Kind::flow},
};
}  // namespace

std::span<const Operator> control_operators() { return kControl; }

}  // namespace plugrad::io::onnx
