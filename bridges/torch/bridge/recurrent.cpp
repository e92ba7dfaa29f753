// Cells of recurrent networks. PyTorch takes these ops for a device of another library without asking whether it has them.
#include <ATen/Operators.h>
#include <bridge/kernel.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/joining.hpp>
#include <plugrad/ops/parts.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <array>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
P with_bias(const P& x, const OptT& bias) { return bias && bias->defined() ? plugrad::add(x, over(*bias)) : x; }

template <size_t kParts> std::array<P, kParts> parts_of(const P& x) {
  std::array<P, kParts> parts;
  const int64_t size = x.size(1) / static_cast<int64_t>(kParts);
  for (size_t i = 0; i < kParts; ++i) parts[i] = plugrad::narrow(x, 1, static_cast<int64_t>(i) * size, size);
  return parts;
}

std::tuple<T, T, T> lstm_cell(const T& input, const T& hidden, const T& cell, const OptT& input_bias,
                              const OptT& hidden_bias) {
  const P gates = with_bias(with_bias(plugrad::add(over(input), over(hidden)), input_bias), hidden_bias);
  const auto [a, b, c, d] = parts_of<4>(gates);
  const P in = plugrad::sigmoid(a), forget = plugrad::sigmoid(b), fresh = plugrad::tanh(c), out = plugrad::sigmoid(d);
  const P next = plugrad::add(plugrad::mul(forget, over(cell)), plugrad::mul(in, fresh));
  return {result(plugrad::mul(out, plugrad::tanh(next))), result(next), result(plugrad::cat({in, forget, fresh, out}, 1))};
}
std::tuple<T, T, T> lstm_cell_backward(const OptT& grad_hidden, const OptT& grad_next, const T& cell, const T& next,
                                       const T& gates, bool has_bias) {
  const P of_hidden = over(grad_hidden), of_next = over(grad_next);
  if (!of_hidden.defined() && !of_next.defined()) return {};
  const auto [in, forget, fresh, out] = parts_of<4>(over(gates));
  const P squashed = plugrad::tanh(over(next));
  P of_cell = of_next, of_out = plugrad::zeros(out.shape(), out.dtype(), out.device());
  if (of_hidden.defined()) {
    of_out = plugrad::sigmoid_backward(plugrad::mul(of_hidden, squashed), out);
    const P through = plugrad::tanh_backward(plugrad::mul(of_hidden, out), squashed);
    of_cell = of_next.defined() ? plugrad::add(through, of_next) : through;
  }
  const P all = plugrad::cat({plugrad::sigmoid_backward(plugrad::mul(of_cell, fresh), in),
                              plugrad::sigmoid_backward(plugrad::mul(of_cell, over(cell)), forget),
                              plugrad::tanh_backward(plugrad::mul(of_cell, in), fresh), of_out},
                             1);
  return {result(all), result(plugrad::mul(of_cell, forget)), has_bias ? result(plugrad::sum(all, {0})) : T()};
}

// The workspace holds reset, update, fresh, hidden and the hidden part of fresh.
std::tuple<T, T> gru_cell(const T& input, const T& hidden_gates, const T& hidden, const OptT& input_bias,
                          const OptT& hidden_bias) {
  const auto [xr, xz, xn] = parts_of<3>(with_bias(over(input), input_bias));
  const auto [hr, hz, hn] = parts_of<3>(with_bias(over(hidden_gates), hidden_bias));
  const P before = over(hidden);
  const P reset = plugrad::sigmoid(plugrad::add(xr, hr)), update = plugrad::sigmoid(plugrad::add(xz, hz));
  const P fresh = plugrad::tanh(plugrad::add(xn, plugrad::mul(reset, hn)));
  const P next = plugrad::add(fresh, plugrad::mul(update, plugrad::sub(before, fresh)));
  return {result(next), result(plugrad::cat({reset, update, fresh, before, hn}, 1))};
}
std::tuple<T, T, T, T, T> gru_cell_backward(const T& grad, const T& workspace, bool has_bias) {
  const auto [reset, update, fresh, before, hidden_part] = parts_of<5>(over(workspace));
  const P g = over(grad);
  const P of_update = plugrad::sigmoid_backward(plugrad::mul(g, plugrad::sub(before, fresh)), update);
  const P of_fresh = plugrad::tanh_backward(plugrad::mul(g, plugrad::sub(1, update)), fresh);
  const P of_reset = plugrad::sigmoid_backward(plugrad::mul(of_fresh, hidden_part), reset);
  const P of_input = plugrad::cat({of_reset, of_update, of_fresh}, 1);
  const P of_hidden = plugrad::cat({of_reset, of_update, plugrad::mul(of_fresh, reset)}, 1);
  const auto bias = [&](const P& x) { return has_bias ? result(plugrad::sum(x, {0})) : T(); };
  return {result(of_input), result(of_hidden), result(plugrad::mul(g, update)), bias(of_input), bias(of_hidden)};
}
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::_thnn_fused_lstm_cell, lstm_cell>(library);
  kernel<o::_thnn_fused_lstm_cell_backward_impl, lstm_cell_backward>(library);
  kernel<o::_thnn_fused_gru_cell, gru_cell>(library);
  kernel<o::_thnn_fused_gru_cell_backward, gru_cell_backward>(library);
}
