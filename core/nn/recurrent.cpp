#include <plugrad/nn/recurrent.hpp>

#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/joining.hpp>
#include <plugrad/ops/layers.hpp>
#include <plugrad/ops/parts.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <cmath>

namespace plugrad::nn {
namespace {
[[noreturn]] void refuse_rnn(const std::string& why) { throw Error(Code::invalid, "[recurrent] " + why); }

struct State {
  Tensor h, c;
};

// Returns part i of x's last axis, split into parts of `extent` elements.
Tensor part(const Tensor& x, int64_t i, int64_t extent) { return slice(x, -1, i * extent, (i + 1) * extent); }

State gru_step(const Tensor& from_input, const Tensor& from_state, const Tensor& h) {
  const int64_t hidden = h.size(-1);
  const Tensor both = sigmoid(add(part(from_input, 0, 2 * hidden), part(from_state, 0, 2 * hidden)));  // r and z
  const Tensor n = tanh(add(part(from_input, 2, hidden), mul(part(both, 0, hidden), part(from_state, 2, hidden))));
  return {add(n, mul(part(both, 1, hidden), sub(h, n))), {}};
}

State lstm_step(const Tensor& sum, const Tensor& c) {
  const int64_t hidden = c.size(-1);
  const Tensor both = sigmoid(part(sum, 0, 2 * hidden));  // i and f
  const Tensor next = add(mul(part(both, 1, hidden), c), mul(part(both, 0, hidden), tanh(part(sum, 2, hidden))));
  return {mul(sigmoid(part(sum, 3, hidden)), tanh(next)), next};
}

// One step; from_input is W_ih x + b_ih.
State step(RecurrentKind kind, const RecurrentWeights& weights, const Tensor& from_input, const State& state) {
  const Tensor from_state = linear(state.h, weights.weight_hh, weights.bias_hh);
  if (kind == RecurrentKind::gru) return gru_step(from_input, from_state, state.h);
  const Tensor sum = add(from_input, from_state);
  if (kind == RecurrentKind::lstm) return lstm_step(sum, state.c);
  return {kind == RecurrentKind::rnn_tanh ? tanh(sum) : relu(sum), {}};
}

// x (l, n, in) -> (l, n, hidden); `state` becomes the last state. A single product with x serves all steps.
Tensor run_direction(RecurrentKind kind, const RecurrentWeights& weights, const Tensor& x, bool reverse, State& state) {
  const std::vector<Tensor> inputs = unbind(linear(x, weights.weight_ih, weights.bias_ih), 0);
  std::vector<Tensor> outputs(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t at = reverse ? inputs.size() - 1 - i : i;
    state = step(kind, weights, inputs[at], state);
    outputs[at] = state.h;
  }
  return stack(outputs, 0);
}

State rows_of(const State& state, int64_t start, int64_t count) {
  return {narrow(state.h, 0, start, count), state.c.defined() ? narrow(state.c, 0, start, count) : Tensor()};
}

// The rows of a, then of b.
State joined(const State& a, const State& b) { return {cat({a.h, b.h}), a.c.defined() ? cat({a.c, b.c}) : Tensor()}; }

// The same for packed sequences: x (sum of sizes, in) -> (sum of sizes, hidden). The first rows of the state are those of
// the longest sequences. Forwards, rows leave the computation as their sequences end; in reverse, they join it.
Tensor run_packed(RecurrentKind kind, const RecurrentWeights& weights, const Tensor& x, const std::vector<int64_t>& sizes,
                  bool reverse, State& state) {
  const Tensor inputs = linear(x, weights.weight_ih, weights.bias_ih);
  const State first = state;
  State now = rows_of(first, 0, reverse ? sizes.back() : sizes.front()), ended;
  std::vector<Tensor> outputs(sizes.size());
  int64_t start = reverse ? x.size(0) : 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t at = reverse ? sizes.size() - 1 - i : i;
    const int64_t count = sizes[at], before = now.h.size(0);
    if (count < before) {
      const State leaving = rows_of(now, count, before - count);
      ended = ended.h.defined() ? joined(leaving, ended) : leaving;
      now = rows_of(now, 0, count);
    }
    if (count > before) now = joined(now, rows_of(first, before, count - before));
    if (reverse) start -= count;
    now = step(kind, weights, narrow(inputs, 0, start, count), now);
    if (!reverse) start += count;
    outputs[at] = now.h;
  }
  state = ended.h.defined() ? joined(now, ended) : now;
  return cat(outputs);
}

// The states of all layers and directions, each (n, hidden).
std::vector<State> first_states(RecurrentKind kind, const Tensor& x, int64_t n, const Tensor& h, const Tensor& c,
                                int64_t count, int64_t hidden) {
  const Shape expected{count, n, hidden};
  for (const Tensor* each : {&h, &c})
    if (each->defined() && each->shape() != expected)
      refuse_rnn("a state has shape " + each->shape().text() + ": expected " + expected.text());
  const Tensor nothing = zeros({n, hidden}, x.dtype(), x.device());
  std::vector<State> states;
  for (int64_t i = 0; i < count; ++i) {
    states.push_back({h.defined() ? select(h, 0, i) : nothing, {}});
    if (kind == RecurrentKind::lstm) states.back().c = c.defined() ? select(c, 0, i) : nothing;
  }
  return states;
}

void require_fitting(const Tensor& x, const std::vector<RecurrentWeights>& weights, size_t directions) {
  if (weights.empty() || weights.size() % directions) refuse_rnn("there are no weights, or not the same for each direction");
  const int64_t in = weights[0].weight_ih.size(-1);
  if (!x.defined() || x.rank() < 2 || x.rank() > 3 || x.size(-1) != in)
    refuse_rnn("x has shape " + (x.defined() ? x.shape().text() : std::string("of nothing")) + ": expected rank 3, or 2 " +
               "without a batch, and a last extent of " + std::to_string(in));
}

// All layers, on x (l, n, in), or on packed sequences with these sizes. `states` become the last states.
Tensor run_layers(RecurrentKind kind, Tensor x, const std::vector<int64_t>& sizes,
                  const std::vector<RecurrentWeights>& weights, std::vector<State>& states,
                  const RecurrentOptions& options) {
  const size_t directions = options.bidirectional ? 2 : 1;
  const auto run = [&](size_t i, bool reverse) {
    return sizes.empty() ? run_direction(kind, weights[i], x, reverse, states[i])
                         : run_packed(kind, weights[i], x, sizes, reverse, states[i]);
  };
  for (size_t first = 0; first < weights.size(); first += directions) {
    if (first) x = dropout(x, options.dropout, options.dropout > 0);
    const Tensor forwards = run(first, false);
    x = directions == 1 ? forwards : cat({forwards, run(first + 1, true)}, -1);
  }
  return x;
}

Recurrence results_of(const Tensor& output, const std::vector<State>& states) {
  std::vector<Tensor> last_h, last_c;
  for (const State& each : states) {
    last_h.push_back(each.h);
    if (each.c.defined()) last_c.push_back(each.c);
  }
  return {output, stack(last_h, 0), last_c.empty() ? Tensor() : stack(last_c, 0)};
}
}  // namespace

Recurrence recurrent(RecurrentKind kind, const Tensor& x, const std::vector<RecurrentWeights>& weights, const Tensor& h,
                     const Tensor& c, const RecurrentOptions& options) {
  require_fitting(x, weights, options.bidirectional ? 2 : 1);
  const bool batched = x.rank() == 3, swapped = batched && options.batch_first;
  const Tensor in = !batched ? unsqueeze(x, 1) : swapped ? transpose(x, 0, 1) : x;
  if (!in.size(0)) refuse_rnn("x has no steps: its shape is " + x.shape().text());
  const auto with_batch = [&](const Tensor& state) { return state.defined() && !batched ? unsqueeze(state, 1) : state; };
  std::vector<State> states = first_states(kind, in, in.size(1), with_batch(h), with_batch(c),
                                           static_cast<int64_t>(weights.size()), weights[0].weight_hh.size(-1));
  const Tensor out = run_layers(kind, in, {}, weights, states, options);
  const Recurrence result = results_of(swapped ? transpose(out, 0, 1) : out, states);
  if (batched) return result;
  return {squeeze(result.output, {1}), squeeze(result.h, {1}), result.c.defined() ? squeeze(result.c, {1}) : Tensor()};
}

Recurrence recurrent_packed(RecurrentKind kind, const Tensor& data, const std::vector<int64_t>& batch_sizes,
                            const std::vector<RecurrentWeights>& weights, const Tensor& h, const Tensor& c,
                            const RecurrentOptions& options) {
  require_fitting(data, weights, options.bidirectional ? 2 : 1);
  int64_t sum = 0;
  for (size_t i = 0; i < batch_sizes.size(); ++i) {
    if (batch_sizes[i] < 1 || (i > 0 && batch_sizes[i] > batch_sizes[i - 1]))
      refuse_rnn("batch_sizes must be at least 1 and must not increase");
    sum += batch_sizes[i];
  }
  if (batch_sizes.empty() || data.rank() != 2 || data.size(0) != sum)
    refuse_rnn("packed data has shape " + data.shape().text() + ": expected rank 2, and " + std::to_string(sum) +
               " rows, the sum of batch_sizes");
  std::vector<State> states =
      first_states(kind, data, batch_sizes[0], h, c, static_cast<int64_t>(weights.size()), weights[0].weight_hh.size(-1));
  const Tensor output = run_layers(kind, data, batch_sizes, weights, states, options);
  return results_of(output, states);
}

// --- The modules.

namespace {
Tensor uniform_parameter(const Shape& shape, double bound, const RecurrentOptions& options) {
  return rand(shape, options.dtype, options.device, -bound, bound).requires_grad_();
}
int64_t gates_of(RecurrentKind kind) { return kind == RecurrentKind::lstm ? 4 : kind == RecurrentKind::gru ? 3 : 1; }
}  // namespace

RecurrentBase::RecurrentBase(RecurrentKind kind, int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : kind_(kind), input_size_(input_size), hidden_size_(hidden_size), options_(options) {
  if (input_size < 1 || hidden_size < 1 || options.num_layers < 1)
    refuse_rnn("sizes and num_layers must be at least 1, got " + std::to_string(input_size) + ", " +
               std::to_string(hidden_size) + " and " + std::to_string(options.num_layers));
  if (!(options.dropout >= 0 && options.dropout <= 1)) refuse_rnn("dropout must lie in [0, 1]");
  const int64_t rows = gates_of(kind) * hidden_size, directions = options.bidirectional ? 2 : 1;
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  for (int64_t i = 0; i < options.num_layers * directions; ++i) {
    RecurrentWeights made;
    made.weight_ih = uniform_parameter({rows, i < directions ? input_size : directions * hidden_size}, bound, options);
    made.weight_hh = uniform_parameter({rows, hidden_size}, bound, options);
    if (options.bias) made.bias_ih = uniform_parameter({rows}, bound, options);
    if (options.bias) made.bias_hh = uniform_parameter({rows}, bound, options);
    weights_.push_back(std::move(made));
  }
}

void RecurrentBase::members(Members& all) {
  const size_t directions = options_.bidirectional ? 2 : 1;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const std::string suffix = "_l" + std::to_string(i / directions) + (i % directions ? "_reverse" : "");
    all("weight_ih" + suffix, weights_[i].weight_ih), all("weight_hh" + suffix, weights_[i].weight_hh);
    all("bias_ih" + suffix, weights_[i].bias_ih), all("bias_hh" + suffix, weights_[i].bias_hh);
  }
}

std::string RecurrentBase::detail() const {
  return std::to_string(input_size_) + ", " + std::to_string(hidden_size_) +
         (options_.num_layers > 1 ? ", num_layers=" + std::to_string(options_.num_layers) : "") +
         (options_.bidirectional ? ", bidirectional=true" : "");
}

Recurrence RecurrentBase::run(const Tensor& x, const Tensor& h, const Tensor& c) const {
  RecurrentOptions options = options_;
  if (!training()) options.dropout = 0;
  return recurrent(kind_, x, weights_, h, c, options);
}

}  // namespace plugrad::nn
