#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plugrad::io::onnx {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

template <double (*F)(double)> Value window_function(Call& c) {
  const int64_t count = Call::countable(static_cast<double>(c.integer(0))),
                period = c.integer("periodic", 1) ? count : count - 1;
  std::vector<double> all;
  for (int64_t k = 0; k < count; ++k)
    all.push_back(F(period ? kTwoPi * static_cast<double>(k) / static_cast<double>(period) : 0));
  const auto type = static_cast<ElementType>(c.integer("output_datatype", 1));
  return c.as(c.made(all, {count}, carrier_of(type)), type);
}
double hann(double a) { return 0.5 - 0.5 * std::cos(a); }
double hamming(double a) { return 25.0 / 46 - 21.0 / 46 * std::cos(a); }
double blackman(double a) { return 0.42 - 0.5 * std::cos(a) + 0.08 * std::cos(2 * a); }

// Real and imaginary parts; the imaginary part of a real signal is undefined.
struct Complex {
  Tensor real, imaginary;
};

// The matrices (rows, columns) of cosines and sines of 2 pi row column / period, with a factor for each row.
Complex waves(const Call& c, int64_t rows, int64_t columns, int64_t period, double sign, const std::vector<double>& factors,
              DType dtype) {
  Call::countable(static_cast<double>(rows) * static_cast<double>(columns));
  std::vector<double> cosines, sines;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      const double angle = kTwoPi * static_cast<double>(i * j % period) / static_cast<double>(period);
      cosines.push_back(factors[static_cast<size_t>(i)] * std::cos(angle));
      sines.push_back(factors[static_cast<size_t>(i)] * sign * std::sin(angle));
    }
  return {c.made(cosines, {rows, columns}, dtype), c.made(sines, {rows, columns}, dtype)};
}

// A transform of the last axis, of `period` places, as a product.
Complex transform(const Call& c, Complex x, int64_t period, bool inverse, bool onesided) {
  const int last = x.real.rank() - 1;
  int64_t length = x.real.size(last);
  if (length > period) {
    x.real = slice(x.real, last, 0, period);
    if (x.imaginary.defined()) x.imaginary = slice(x.imaginary, last, 0, period);
    length = period;
  }
  Call::positive(period, "the length of the transform");
  const int64_t columns = onesided && !inverse ? period / 2 + 1 : period;
  const std::vector<double> factors(static_cast<size_t>(length), inverse ? 1 / static_cast<double>(period) : 1);
  const Complex w = waves(c, length, columns, period, inverse ? 1 : -1, factors, x.real.dtype());
  if (!x.imaginary.defined()) return {matmul(x.real, w.real), matmul(x.real, w.imaginary)};
  return {sub(matmul(x.real, w.real), matmul(x.imaginary, w.imaginary)),
          add(matmul(x.real, w.imaginary), matmul(x.imaginary, w.real))};
}

// A real signal from the half of a Hermitian spectrum.
Tensor real_signal(const Call& c, const Complex& x, int64_t period) {
  const int64_t rows = std::min(x.real.size(-1), period / 2 + 1);
  Call::countable(static_cast<double>(rows) * static_cast<double>(period));
  std::vector<double> factors;
  for (int64_t k = 0; k < rows; ++k)
    factors.push_back((k == 0 || 2 * k == period ? 1.0 : 2.0) / static_cast<double>(period));
  const Complex w = waves(c, rows, period, period, -1, factors, x.real.dtype());
  const int last = x.real.rank() - 1;
  const Tensor real = matmul(slice(x.real, last, 0, rows), w.real);
  return x.imaginary.defined() ? add(real, matmul(slice(x.imaginary, last, 0, rows), w.imaginary)) : real;
}

Value fourier(Call& c) {
  const Tensor& x = c.tensor(0);
  const int last = x.rank() - 1;
  const bool inverse = c.integer("inverse", 0), onesided = c.integer("onesided", 0);
  const int64_t given = c.has(2) ? c.integer(2) : c.integer("axis", c.opset() < 20 ? 1 : -2);
  const int axis = Call::axis(given, x.rank());
  const auto part = [&](int64_t k) { return transpose(select(x, last, k), axis, last - 1); };
  const Complex parts{part(0), x.size(last) == 2 ? part(1) : Tensor()};
  const bool halved = inverse && onesided;
  const int64_t period = c.has(1) ? c.integer(1) : halved ? 2 * (x.size(axis) - 1) : x.size(axis);
  if (period < 1) throw Error(Code::invalid, "the length of the transform is " + std::to_string(period));
  if (halved) return c.like(unsqueeze(transpose(real_signal(c, parts, period), axis, last - 1), last));
  const Complex found = transform(c, parts, period, inverse, onesided);
  return c.like(stack({transpose(found.real, axis, last - 1), transpose(found.imaginary, axis, last - 1)}, last));
}

Value short_time_fourier(Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t step = c.integer(1), length = c.has(3) ? c.integer(3) : c.tensor(2).size(0);
  const auto frames = [&](const Tensor& signal) {
    const Tensor all = unfold(signal, 1, length, step);
    return c.has(2) ? mul(all, c.tensor(2)) : all;
  };
  Complex parts{frames(x.rank() == 3 ? select(x, 2, 0) : x), {}};
  if (x.rank() == 3 && x.size(2) == 2) parts.imaginary = frames(select(x, 2, 1));
  const Complex found = transform(c, parts, length, false, c.integer("onesided", 1));
  return c.like(stack({found.real, found.imaginary}, found.real.rank()));
}

// Triangular filters at equal distances on the mel scale, 2595 log10(1 + f / 700).
Value mel_weights(Call& c) {
  const int64_t bins = Call::positive(c.integer(0), "num_mel_bins"), length = Call::positive(c.integer(1), "dft_length");
  const int64_t rate = Call::positive(c.integer(2), "sample_rate"), rows = length / 2 + 1;
  Call::countable(static_cast<double>(rows) * static_cast<double>(bins));
  const auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  const double low = mel(c.real(size_t{3})), high = mel(c.real(size_t{4})),
               step = (high - low) / static_cast<double>(bins + 2);
  std::vector<int64_t> place;
  for (int64_t k = 0; k < bins + 2; ++k) {
    const double frequency = 700 * (std::pow(10, (static_cast<double>(k) * step + low) / 2595) - 1);
    place.push_back(Call::countable(std::floor(frequency * static_cast<double>(length + 1) / static_cast<double>(rate))));
  }
  std::vector<double> all(static_cast<size_t>(rows * bins));
  const auto at = [&](int64_t row, int64_t bin) -> double& {
    if (row < 0 || row >= rows) throw Error(Code::invalid, "a filter lies beyond the spectrum");
    return all[static_cast<size_t>(row * bins + bin)];
  };
  for (size_t bin = 0; bin < static_cast<size_t>(bins); ++bin) {
    const int64_t first = place[bin], center = place[bin + 1], end = place[bin + 2], column = static_cast<int64_t>(bin);
    if (center == first) at(center, column) = 1;
    for (int64_t j = first; center > first && j <= center; ++j)
      at(j, column) = static_cast<double>(j - first) / static_cast<double>(center - first);
    for (int64_t j = center; end > center && j < end; ++j)
      at(j, column) = static_cast<double>(end - j) / static_cast<double>(end - center);
  }
  const auto type = static_cast<ElementType>(c.integer("output_datatype", 1));
  return c.as(c.made(all, {rows, bins}, carrier_of(type)), type);
}

constexpr Operator kSignals[] = {
    {"HannWindow", window_function<hann>},
    {"HammingWindow", window_function<hamming>},
    {"BlackmanWindow", window_function<blackman>},
    {"DFT", fourier},
    {"STFT", short_time_fourier},
    {"MelWeightMatrix", mel_weights},
};
}  // namespace

std::span<const Operator> signal_operators() { return kSignals; }

}  // namespace plugrad::io::onnx
