// Random numbers, from PyTorch's generators.
#include <ATen/Operators.h>
#include <bridge/generator.hpp>
#include <bridge/kernel.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/random.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
using OptG = std::optional<at::Generator>;

// Writes f(x) to x, with numbers of the generator.
template <class F> T& drawn(T& x, const OptG& generator, F f) {
  if (!x.numel()) return x;
  const RandomScope scope(generator, x.device().index());
  return write(x, f(over(x)));
}
bool is_floating(const P& x) { return plugrad::is_floating(x.dtype()); }

T& uniform_(T& x, double from, double to, OptG generator) {
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  return drawn(x, generator, [&](const P& y) { return plugrad::rand(y.shape(), y.dtype(), y.device(), from, to); });
}
T& normal_(T& x, double mean, double deviation, OptG generator) {
  TORCH_CHECK(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
  return drawn(x, generator, [&](const P& y) { return plugrad::randn(y.shape(), y.dtype(), y.device(), mean, deviation); });
}
T& exponential_(T& x, double rate, OptG generator) {
  TORCH_CHECK(rate > 0, "exponential_ expects lambda > 0.0, but found lambda=", rate);
  return drawn(x, generator, [&](const P& y) { return plugrad::exponential(y.shape(), rate, y.dtype(), y.device()); });
}
// Zeros and ones of any dtype, with f32 probabilities.
P flips(const P& like, double p) {
  const P base = plugrad::zeros(like.shape(), DType::f32, like.device());
  return plugrad::cast(plugrad::bernoulli(base, p), like.dtype());
}
T& bernoulli_float_(T& x, double p, OptG generator) {
  TORCH_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  return drawn(x, generator, [&](const P& y) { return flips(y, p); });
}
T& bernoulli_tensor_(T& x, const T& p, OptG generator) {
  const P probabilities = plugrad::expand(over(p, at::kFloat), shape_of(x.sizes()));
  return drawn(x, generator, [&](const P& y) { return plugrad::cast(plugrad::bernoulli(probabilities), y.dtype()); });
}
T bernoulli(const T& x, OptG generator) {
  T made = unused(x.sizes(), x.scalar_type(), x.device().index());
  return bernoulli_tensor_(made, x, std::move(generator));
}

P whole_numbers(const P& like, int64_t from, int64_t to) {
  return plugrad::cast(plugrad::randint(from, to, like.shape(), DType::i64, like.device()), like.dtype());
}
T& random_from_(T& x, int64_t from, std::optional<int64_t> to, OptG generator) {
  if (!to) throw Unsupported{"random_ without an end"};
  TORCH_CHECK(from < *to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", *to);
  return drawn(x, generator, [&](const P& y) { return whole_numbers(y, from, *to); });
}
T& random_to_(T& x, int64_t to, OptG generator) { return random_from_(x, 0, to, std::move(generator)); }
T& random_(T& x, OptG generator) {
  const DType dtype = dtype_of(x.scalar_type());
  const int digits = plugrad::dtype_info(static_cast<uint8_t>(dtype))->digits;  // of whole numbers that x holds exactly
  return random_from_(x, 0,
                      is_floating(over(x)) ? (int64_t{1} << std::min(digits, 62)) + 1 : int64_t{1} << std::min(digits, 62),
                      std::move(generator));
}
T& randperm_out(int64_t n, OptG generator, T& out) {
  const RandomScope scope(generator, out.device().index());
  return write(out, plugrad::cast(plugrad::randperm(n, DType::i64, device_of(out.device())), dtype_of(out.scalar_type())));
}
T multinomial(const T& x, int64_t count, bool replacement, OptG generator) {
  const RandomScope scope(generator, x.device().index());
  return result(plugrad::multinomial(over(x), count, replacement));
}

// Kept elements are scaled by 1 / (1 - p).
std::tuple<T, T> dropout(const T& x, double p, std::optional<bool> training) {
  const P value = over(x);
  if (training && !*training)
    return {result(plugrad::clone(value)), result(plugrad::ones(value.shape(), DType::boolean, value.device()))};
  const RandomScope scope(std::nullopt, x.device().index());
  const P mask = plugrad::ge(plugrad::rand_like(value, DType::f32), p);
  const P kept = plugrad::mul(value, plugrad::cast(mask, value.dtype()));
  return {result(plugrad::mul(kept, p == 1 ? 0 : 1 / (1 - p))), result(mask)};
}
T dropout_backward(const T& grad, const T& mask, double scale) {
  const P g = over(grad);
  return result(plugrad::mul(plugrad::mul(g, plugrad::cast(over(mask), g.dtype())), scale));
}
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::uniform_, uniform_>(library);
  kernel<o::normal_, normal_>(library);
  kernel<o::exponential_, exponential_>(library);
  kernel<o::bernoulli__float, bernoulli_float_>(library);
  kernel<o::bernoulli__Tensor, bernoulli_tensor_>(library);
  kernel<o::bernoulli, bernoulli>(library);
  kernel<o::random__from, random_from_>(library);
  kernel<o::random__to, random_to_>(library);
  kernel<o::random_, random_>(library);
  kernel<o::randperm_generator_out, randperm_out>(library);
  kernel<o::multinomial, multinomial>(library);
  kernel<o::native_dropout, dropout>(library);
  kernel<o::native_dropout_backward, dropout_backward>(library);
}
