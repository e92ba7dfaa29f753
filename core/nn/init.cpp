#include <plugrad/nn/init.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/linalg.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/random.hpp>
#include <plugrad/ops/special.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <cmath>
#include <numbers>

namespace plugrad::nn::init {
namespace {
[[noreturn]] void refuse(const char* name, const std::string& why) {
  throw Error(Code::invalid, std::string("[") + name + "] " + why);
}

Tensor written(const char* name, Tensor& tensor, const Tensor& values) {
  if (!is_floating(tensor.dtype())) refuse(name, "the tensor holds integers: give one of a floating dtype");
  const NoGrad unrecorded;
  tensor.copy_(values);
  return tensor;
}

// Return random numbers of the tensor's shape, in a dtype with enough digits.
Tensor uniform_like(const Tensor& tensor, double low, double high) {
  return rand(tensor.shape(), tensor.dtype() == DType::f64 ? DType::f64 : DType::f32, tensor.device(), low, high);
}
Tensor normal_like(const Tensor& tensor) {
  return randn(tensor.shape(), tensor.dtype() == DType::f64 ? DType::f64 : DType::f32, tensor.device());
}

struct Fans {
  double in, out;
};
Fans fans_of(const char* name, const Tensor& tensor) {
  if (tensor.rank() < 2) refuse(name, "the tensor has shape " + tensor.shape().text() + ": expected (out, in, ..)");
  double inner = 1;
  for (int i = 2; i < tensor.rank(); ++i) inner *= static_cast<double>(tensor.size(i));
  return {static_cast<double>(tensor.size(1)) * inner, static_cast<double>(tensor.size(0)) * inner};
}

// Two kinds of random numbers with the same deviation.
Tensor uniform_with(const char* name, Tensor& tensor, double deviation) {
  const double bound = std::sqrt(3.0) * deviation;
  return written(name, tensor, uniform_like(tensor, -bound, bound));
}
Tensor normal_with(const char* name, Tensor& tensor, double deviation) {
  return written(name, tensor, mul(normal_like(tensor), deviation));
}

double xavier_deviation(const char* name, const Tensor& tensor, double gain) {
  const Fans fans = fans_of(name, tensor);
  return gain * std::sqrt(2 / (fans.in + fans.out));
}
double kaiming_deviation(const char* name, const Tensor& tensor, double a, Fan mode, Nonlinearity nonlinearity) {
  const Fans fans = fans_of(name, tensor);
  return calculate_gain(nonlinearity, a) / std::sqrt(mode == Fan::in ? fans.in : fans.out);
}
}  // namespace

Tensor uniform_(Tensor tensor, double a, double b) {
  if (!(a <= b)) refuse("uniform_", "a must not be above b, got " + number_text(a) + " and " + number_text(b));
  return written("uniform_", tensor, uniform_like(tensor, a, b));
}

Tensor normal_(Tensor tensor, double mean, double std) {
  if (!(std >= 0)) refuse("normal_", "std must be 0 or more, got " + number_text(std));
  return written("normal_", tensor, add(mul(normal_like(tensor), std), mean));
}

// By the inverse of the distribution function, without repeated draws.
Tensor trunc_normal_(Tensor tensor, double mean, double std, double a, double b) {
  if (!(a < b) || !(std > 0)) refuse("trunc_normal_", "expected a below b and a positive std");
  const auto below = [&](double x) { return std::erf((x - mean) / (std * std::numbers::sqrt2)); };
  const Tensor place = uniform_like(tensor, below(a), below(b));
  const Tensor drawn = add(mul(erfinv(place), std * std::numbers::sqrt2), mean);
  return written("trunc_normal_", tensor, clamp(drawn, a, b));
}

Tensor constant_(Tensor tensor, double value) {
  const NoGrad unrecorded;
  tensor.fill_(value);
  return tensor;
}
Tensor ones_(Tensor tensor) { return constant_(std::move(tensor), 1); }
Tensor zeros_(Tensor tensor) { return constant_(std::move(tensor), 0); }

Tensor eye_(Tensor tensor) {
  if (tensor.rank() != 2) refuse("eye_", "the tensor has shape " + tensor.shape().text() + ": expected rank 2");
  return written("eye_", tensor, eye(tensor.size(0), tensor.size(1), tensor.dtype(), tensor.device()));
}

double calculate_gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::linear:
    case Nonlinearity::sigmoid: return 1;
    case Nonlinearity::tanh: return 5.0 / 3;
    case Nonlinearity::relu: return std::numbers::sqrt2;
    case Nonlinearity::leaky_relu: return std::sqrt(2 / (1 + slope * slope));
    case Nonlinearity::selu: return 0.75;
  }
  refuse("calculate_gain", "the nonlinearity is unknown");
}

Tensor xavier_uniform_(Tensor tensor, double gain) {
  return uniform_with("xavier_uniform_", tensor, xavier_deviation("xavier_uniform_", tensor, gain));
}
Tensor xavier_normal_(Tensor tensor, double gain) {
  return normal_with("xavier_normal_", tensor, xavier_deviation("xavier_normal_", tensor, gain));
}
Tensor kaiming_uniform_(Tensor tensor, double a, Fan mode, Nonlinearity nonlinearity) {
  return uniform_with("kaiming_uniform_", tensor, kaiming_deviation("kaiming_uniform_", tensor, a, mode, nonlinearity));
}
Tensor kaiming_normal_(Tensor tensor, double a, Fan mode, Nonlinearity nonlinearity) {
  return normal_with("kaiming_normal_", tensor, kaiming_deviation("kaiming_normal_", tensor, a, mode, nonlinearity));
}

Tensor orthogonal_(Tensor tensor, double gain) {
  if (tensor.rank() < 2) refuse("orthogonal_", "the tensor has shape " + tensor.shape().text() + ": expected (rows, ..)");
  const Tensor flat = normal_like(reshape(tensor.detach(), {tensor.size(0), -1}));
  const bool wide = flat.size(0) < flat.size(1);
  const auto [q, r] = linalg::qr(wide ? transpose(flat) : flat);
  const Tensor signed_columns = mul(q, sign(linalg::diagonal(r)));  // makes the distribution uniform
  const Tensor matrix = mul(wide ? transpose(signed_columns) : signed_columns, gain);
  return written("orthogonal_", tensor, reshape(matrix, tensor.shape()));
}

}  // namespace plugrad::nn::init
