#include <core/io/onnx/ops/integer_products.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/layers.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/piecewise.hpp>
#include <plugrad/ops/smooth.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>

namespace plugrad::io::onnx {
namespace {

using Activation = std::function<Tensor(const Tensor&)>;
enum class Cell { rnn, gru, lstm };

// The name in ONNX's spelling: some exporters write names in lower case.
std::string canonical(const std::string& name) {
  const auto lower = [](std::string text) {
    for (char& each : text) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
    return text;
  };
  for (const char* each : {"Sigmoid", "Tanh", "Relu", "Softsign", "Softplus", "LeakyRelu", "Elu", "ThresholdedRelu",
                           "Affine", "ScaledTanh", "HardSigmoid"})
    if (lower(each) == lower(name)) return each;
  return name;
}

Activation activation_named(const std::string& name, std::optional<double> alpha, std::optional<double> beta) {
  if (name == "Sigmoid") return [](const Tensor& x) { return sigmoid(x); };
  if (name == "Tanh") return [](const Tensor& x) { return tanh(x); };
  if (name == "Relu") return [](const Tensor& x) { return relu(x); };
  if (name == "Softsign") return [](const Tensor& x) { return softsign(x); };
  if (name == "Softplus") return [](const Tensor& x) { return softplus(x); };
  if (name == "LeakyRelu") return [=](const Tensor& x) { return leaky_relu(x, alpha.value_or(0.01)); };
  if (name == "Elu") return [=](const Tensor& x) { return elu(x, alpha.value_or(1)); };
  if (name == "ThresholdedRelu") return [=](const Tensor& x) { return threshold(x, alpha.value_or(1), 0); };
  if (name == "Affine") return [=](const Tensor& x) { return add(mul(x, alpha.value_or(1)), beta.value_or(0)); };
  if (name == "ScaledTanh") return [=](const Tensor& x) { return mul(tanh(mul(x, beta.value_or(1))), alpha.value_or(1)); };
  if (name == "HardSigmoid")
    return [=](const Tensor& x) { return clamp(add(mul(x, alpha.value_or(0.2)), beta.value_or(0.5)), 0, 1); };
  throw Error(Code::unsupported, "the activation '" + name + "' is not supported");
}

bool takes_alpha(const std::string& name) {
  return name == "LeakyRelu" || name == "Elu" || name == "ThresholdedRelu" || name == "Affine" || name == "ScaledTanh" ||
         name == "HardSigmoid";
}
bool takes_beta(const std::string& name) { return name == "Affine" || name == "ScaledTanh" || name == "HardSigmoid"; }

// The numbers of activation_alpha and activation_beta belong to the functions that take one, in the order of all directions.
std::vector<Activation> activations_of(const Call& c, const std::vector<std::string>& defaults, size_t direction) {
  const std::vector<std::string> names = c.texts("activations");
  const std::vector<double> alphas = c.reals("activation_alpha"), betas = c.reals("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  const auto next = [](const std::vector<double>& all, size_t& at) {
    return at < all.size() ? std::optional<double>(all[at++]) : std::nullopt;
  };
  std::vector<Activation> found;
  for (size_t at = 0; at < (direction + 1) * defaults.size(); ++at) {
    const std::string name = canonical(at < names.size() ? names[at] : defaults[at % defaults.size()]);
    const auto alpha = takes_alpha(name) ? next(alphas, next_alpha) : std::nullopt;
    const auto beta = takes_beta(name) ? next(betas, next_beta) : std::nullopt;
    if (at >= direction * defaults.size()) found.push_back(activation_named(name, alpha, beta));
  }
  return found;
}

// What one direction of a layer computes with, and its state.
struct Direction {
  Tensor weight, recurrence, input_bias, state_bias, peepholes;  // recurrence: (gates * hidden, hidden)
  std::vector<Activation> activations;
  std::optional<double> limit;
  bool linear_before_reset = false, coupled = false, quantized = false;
  int64_t hidden = 0;
  Tensor h, c;

  Tensor clipped(const Tensor& x) const { return limit ? clamp(x, -*limit, *limit) : x; }
  Tensor gate(const Tensor& all, int64_t i) const { return slice(all, all.rank() - 1, i * hidden, (i + 1) * hidden); }
  Tensor peephole(int64_t i) const { return slice(peepholes, 0, i * hidden, (i + 1) * hidden); }
  Tensor act(size_t i, const Tensor& x) const { return activations[i](clipped(x)); }
};

// Returns a state as dynamic quantisation to uint8 rounds it.
Tensor as_quantized(const Direction& d, const Tensor& x) {
  if (!d.quantized) return x;
  const DynamicallyQuantized q = quantized_dynamically(x);
  return mul(sub(cast(q.codes, DType::f32), q.zero), q.scale);
}

void lstm_step(Direction& d, const Tensor& from_input) {
  const Tensor all = add(from_input, matmul(as_quantized(d, d.h), transpose(d.recurrence, 0, 1)));
  Tensor input = d.gate(all, 0), output = d.gate(all, 1), forget = d.gate(all, 2);
  if (d.peepholes.defined()) {
    input = add(input, mul(d.peephole(0), d.c));
    forget = add(forget, mul(d.peephole(2), d.c));
  }
  input = d.act(0, input);
  forget = d.coupled ? sub(1, input) : d.act(0, forget);
  d.c = add(mul(forget, d.c), mul(input, d.act(1, d.gate(all, 3))));
  if (d.peepholes.defined()) output = add(output, mul(d.peephole(1), d.c));
  d.h = mul(d.act(0, output), d.activations[2](d.c));
}

void gru_step(Direction& d, const Tensor& from_input) {
  const int64_t h = d.hidden;
  const auto rows = [&](const Tensor& t, int64_t begin, int64_t end) {
    return t.defined() ? slice(t, 0, begin, end) : Tensor();
  };
  const auto linear_of = [&](const Tensor& x, int64_t begin, int64_t end) {
    return linear(x, rows(d.recurrence, begin, end), rows(d.state_bias, begin, end));
  };
  Tensor update, hidden;
  if (d.linear_before_reset) {
    const Tensor all = linear_of(d.h, 0, 3 * h);
    update = d.act(0, add(d.gate(from_input, 0), d.gate(all, 0)));
    const Tensor reset = d.act(0, add(d.gate(from_input, 1), d.gate(all, 1)));
    hidden = d.act(1, add(d.gate(from_input, 2), mul(reset, d.gate(all, 2))));
  } else {
    const Tensor both = linear_of(d.h, 0, 2 * h);
    update = d.act(0, add(d.gate(from_input, 0), d.gate(both, 0)));
    const Tensor reset = d.act(0, add(d.gate(from_input, 1), d.gate(both, 1)));
    hidden = d.act(1, add(d.gate(from_input, 2), linear_of(mul(reset, d.h), 2 * h, 3 * h)));
  }
  d.h = add(mul(sub(1, update), hidden), mul(update, d.h));
}

void rnn_step(Direction& d, const Tensor& from_input) {
  d.h = d.act(0, add(from_input, matmul(d.h, transpose(d.recurrence, 0, 1))));
}

// Runs one direction over x (length, batch, input), and returns its states (length, batch, hidden). lengths (batch, 1) may
// be undefined; beyond a sequence's length the state stays and the result is 0.
Tensor run_direction(Direction& d, Cell cell, const Tensor& x, const Tensor& lengths, bool backward) {
  const int64_t length = x.size(0), batch = x.size(1);
  const Tensor flat = as_quantized(d, reshape(x, {length * batch, x.size(2)}));
  const Tensor all = reshape(linear(flat, d.weight, d.input_bias), {length, batch, d.weight.size(0)});
  std::vector<Tensor> states(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    const int64_t t = backward ? length - 1 - i : i;
    const Tensor h = d.h, c = d.c, from_input = select(all, 0, t);
    if (cell == Cell::lstm) lstm_step(d, from_input);
    else if (cell == Cell::gru) gru_step(d, from_input);
    else rnn_step(d, from_input);
    Tensor& state = states[static_cast<size_t>(t)];
    state = d.h;
    if (!lengths.defined()) continue;
    const Tensor inside = gt(lengths, t);
    state = where(inside, d.h, zeros_like(d.h));
    d.h = where(inside, d.h, h);
    if (c.defined()) d.c = where(inside, d.c, c);
  }
  return stack(states, 0);
}

Tensor lengths_of(const Call& c, int64_t length, int64_t batch) {
  if (!c.has(4)) return {};
  if (c.known(4)) {
    const std::vector<int64_t> all = c.integers(4);
    if (std::ranges::all_of(all, [&](int64_t each) { return each == length; })) return {};
  }
  return reshape(cast(c.tensor(4), DType::i64), {batch, 1});
}

// Weights of com.microsoft's LSTM: (directions, input, gates) in 8 bits, with a scale for a direction or for each gate.
Tensor dequantized_weight(const Call& c, size_t weight, size_t scale) {
  return c.prepared({weight, scale, scale + 1}, [&] {
    const Shape s = c.shape(scale);
    if (!s.rank()) throw Error(Code::invalid, "a scale has no axes");
    const Shape shape = s.rank() == 1 || s.back() == 1 ? Shape{s[0], 1, 1} : Shape{s[0], 1, s[1]};
    Tensor w = cast(c.tensor(weight), DType::f32);
    if (c.has(scale + 1)) w = sub(w, reshape(cast(c.tensor(scale + 1), DType::f32), shape));
    return contiguous(transpose(mul(w, reshape(c.tensor(scale), shape)), 1, 2));
  });
}

// Constant recurrent weights (directions, gates, hidden) with their columns contiguous: each step multiplies a few rows by
// the transposed matrix, which is fastest row by row.
Tensor by_columns(const Call& c, size_t weight) {
  if (!c.known(weight)) return c.tensor(weight);
  return c.prepared({weight}, [&] { return transpose(contiguous(transpose(c.tensor(weight), 1, 2)), 1, 2); });
}

struct Layer {
  Cell cell;
  int64_t gates;
  std::vector<std::string> defaults;
  bool quantized = false;
};

Direction direction_of(const Call& c, const Layer& layer, const Tensor& weight, const Tensor& recurrence, size_t k) {
  const int at = static_cast<int>(k);
  Direction d;
  d.weight = select(weight, 0, at);
  d.recurrence = select(recurrence, 0, at);
  d.hidden = d.recurrence.size(1);
  if (c.has(3)) {
    const Tensor both = select(c.tensor(3), 0, at);
    const int64_t half = layer.gates * d.hidden;
    d.input_bias = slice(both, 0, 0, half);
    d.state_bias = slice(both, 0, half, 2 * half);
    if (layer.cell != Cell::gru) d.input_bias = c.prepared({3}, [&] { return add(d.input_bias, d.state_bias); });
  }
  if (layer.cell == Cell::lstm && c.has(7)) d.peepholes = select(c.tensor(7), 0, at);
  d.activations = activations_of(c, layer.defaults, k);
  if (c.has_attribute("clip")) d.limit = c.real("clip", 0);
  d.linear_before_reset = c.integer("linear_before_reset", 0);
  d.coupled = c.integer("input_forget", 0);
  d.quantized = layer.quantized;
  return d;
}

Values recurrent_layer(Call& c, const Layer& layer) {
  const bool batch_first = c.integer("layout", 0);
  const Tensor x = batch_first ? transpose(c.tensor(0), 0, 1) : c.tensor(0);
  const Tensor weight = layer.quantized ? dequantized_weight(c, 1, 8) : c.tensor(1);
  const Tensor recurrence = layer.quantized ? dequantized_weight(c, 2, 10) : by_columns(c, 2);
  const std::string mode = c.text("direction", "forward");
  const size_t count = mode == "bidirectional" ? 2 : 1;
  const int64_t length = x.size(0), batch = x.size(1);
  if (!length) throw Error(Code::unsupported, "a sequence of length 0 is not supported");
  const Tensor lengths = lengths_of(c, length, batch);
  const auto initial = [&](size_t i, size_t k, int64_t hidden) {
    if (!c.has(i)) return zeros({batch, hidden}, x.dtype(), c.device());
    return select(batch_first ? transpose(c.tensor(i), 0, 1) : c.tensor(i), 0, static_cast<int>(k));
  };
  std::vector<Tensor> all, last_h, last_c;
  for (size_t k = 0; k < count; ++k) {
    Direction d = direction_of(c, layer, weight, recurrence, k);
    d.h = initial(5, k, d.hidden);
    if (layer.cell == Cell::lstm) d.c = initial(6, k, d.hidden);
    all.push_back(run_direction(d, layer.cell, x, lengths, mode == "reverse" || k == 1));
    last_h.push_back(d.h);
    last_c.push_back(d.c);
  }
  const Tensor y = stack(all, 1);  // (length, directions, batch, hidden)
  const auto state = [&](const std::vector<Tensor>& states) {
    return batch_first ? transpose(stack(states, 0), 0, 1) : stack(states, 0);
  };
  Values results{c.like(batch_first ? permute(y, {2, 0, 1, 3}) : y), c.like(state(last_h))};
  if (layer.cell == Cell::lstm) results.push_back(c.like(state(last_c)));
  return results;
}

const std::vector<std::string>& lstm_activations() {
  static const std::vector<std::string> names{"Sigmoid", "Tanh", "Tanh"};
  return names;
}

constexpr Operator kRecurrent[] = {
    {"LSTM", [](Call& c) { return recurrent_layer(c, {Cell::lstm, 4, lstm_activations()}); }},
    {"GRU", [](Call& c) { return recurrent_layer(c, {Cell::gru, 3, {"Sigmoid", "Tanh"}}); }},
    {"RNN", [](Call& c) { return recurrent_layer(c, {Cell::rnn, 1, {"Tanh"}}); }},
    {"com.microsoft.DynamicQuantizeLSTM",
     [](Call& c) { return recurrent_layer(c, {Cell::lstm, 4, lstm_activations(), true}); }},
};
}  // namespace

std::span<const Operator> recurrent_operators() { return kRecurrent; }

}  // namespace plugrad::io::onnx
