// Fourier transforms as products with matrices, for devices without a kernel.
#include <core/ops/fourier.hpp>

#include <core/ops/run.hpp>
#include <plugrad/ops/arithmetic.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/views.hpp>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

namespace plugrad::fourier {
namespace {

constexpr int64_t kDirect = 96;  // lengths of a single product

// e^(sign 2 pi i k / n).
std::complex<double> root(int64_t k, int64_t n, double sign) {
  // What remains beside the nearest quarter turn is at most an eighth.
  const int64_t quarters = (8 * (k % n) / n + 1) / 2;
  const double rest = std::numbers::pi / 2 * static_cast<double>(4 * (k % n) - quarters * n) / static_cast<double>(n);
  const std::complex<double> turns[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  const std::complex<double> whole = turns[quarters % 4] * std::complex<double>(std::cos(rest), std::sin(rest));
  return {whole.real(), sign * whole.imag()};
}

Tensor upload(const std::vector<double>& values, const Shape& shape, const Tensor& like) {
  if (like.dtype() == DType::f64) return Tensor::from(values, shape, like.device());
  return Tensor::from(std::vector<float>(values.begin(), values.end()), shape, like.device());
}

// The matrix (inputs, outputs) of a transform of n numbers; a complex number takes two places, its parts.
Tensor matrix(const Transform& how, const Tensor& like) {
  const bool real_in = how.kind == PLUGRAD_FFT_REAL, real_out = how.kind == PLUGRAD_FFT_INVERSE_REAL;
  const double sign = how.kind == PLUGRAD_FFT_BACKWARD || real_out ? 1 : -1;
  const int64_t half = how.n / 2 + 1, ins = real_out ? half : how.n, outs = real_in ? half : how.n;
  const int64_t rows = real_in ? ins : 2 * ins, columns = real_out ? outs : 2 * outs;
  std::vector<double> all(static_cast<size_t>(rows * columns));
  for (int64_t j = 0; j < ins; ++j)
    for (int64_t k = 0; k < outs; ++k) {
      std::complex<double> w = how.scale * root(j * k, how.n, sign);
      if (real_out && j && 2 * j != how.n) w *= 2.0;  // it stands for its conjugate, too
      const bool own_conjugate = real_out && (j == 0 || 2 * j == how.n);
      const auto at = [&](int64_t i, int64_t part) -> double& {
        return all[static_cast<size_t>((real_in ? j : 2 * j + i) * columns + (real_out ? k : 2 * k + part))];
      };
      at(0, 0) = w.real();
      if (!real_out) at(0, 1) = w.imag();
      if (!real_in) at(1, 0) = own_conjugate ? 0 : -w.imag();
      if (!real_in && !real_out) at(1, 1) = w.real();
    }
  return upload(all, {rows, columns}, like);
}

// --- Of pairs (lines, n, 2), all transforms forward (sign -1) or backward.

Tensor transform_lines(const Tensor& pairs, double sign);

Tensor multiplied(const Tensor& pairs, const Tensor& factors) {
  return view_as_real(mul(view_as_complex(pairs), view_as_complex(factors)));
}

// n = first x second: transforms of columns of the first length, roots of unity, and transforms of rows of the second.
Tensor cut_lines(const Tensor& pairs, int64_t first, double sign) {
  const int64_t lines = pairs.size(0), n = pairs.size(1), second = n / first;
  const Tensor columns = transpose(reshape(pairs, {lines, first, second, 2}), 1, 2);
  const Tensor done = transform_lines(reshape(columns, {lines * second, first, 2}), sign);
  std::vector<double> roots(static_cast<size_t>(2 * n));
  for (int64_t j = 0; j < second; ++j)
    for (int64_t k = 0; k < first; ++k) {
      const std::complex<double> w = root(j * k, n, sign);
      roots[static_cast<size_t>(2 * (j * first + k))] = w.real();
      roots[static_cast<size_t>(2 * (j * first + k) + 1)] = w.imag();
    }
  const Tensor turned = multiplied(reshape(done, {lines, second, first, 2}), upload(roots, {second, first, 2}, pairs));
  const Tensor rows = transform_lines(reshape(transpose(turned, 1, 2), {lines * first, second, 2}), sign);
  return reshape(transpose(reshape(rows, {lines, first, second, 2}), 1, 2), {lines, n, 2});
}

// By a convolution with a chirp (Bluestein, "A linear filtering approach to the computation of discrete Fourier transform",
// 1970), whose length is a power of two.
Tensor convolved_lines(const Tensor& pairs, double sign) {
  const int64_t n = pairs.size(1);
  int64_t length = 2;
  while (length < 2 * n - 1) length *= 2;
  std::vector<double> chirp(static_cast<size_t>(2 * n)), filter(static_cast<size_t>(2 * length));
  for (int64_t j = 0; j < n; ++j) {
    // The root's number is j^2 modulo 2 n.
    const std::complex<double> w = root(j * j % (2 * n), 2 * n, sign);
    const auto set = [&w](std::vector<double>& to, int64_t at, double imaginary) {
      to[static_cast<size_t>(2 * at)] = w.real();
      to[static_cast<size_t>(2 * at + 1)] = imaginary;
    };
    set(chirp, j, w.imag());
    set(filter, j, -w.imag());
    if (j) set(filter, length - j, -w.imag());
  }
  const Tensor factors = upload(chirp, {n, 2}, pairs);
  const Tensor padded = pad(multiplied(pairs, factors), {0, 0, 0, length - n});
  const Tensor spectrum = transform_lines(upload(filter, {1, length, 2}, pairs), -1);
  const Tensor product = multiplied(transform_lines(padded, -1), spectrum);
  const Tensor sums = slice(transform_lines(product, 1), 1, 0, n);
  return mul(multiplied(sums, factors), 1.0 / static_cast<double>(length));
}

// The factor of n nearest to its root, from below; 1 for a prime.
int64_t nearest_factor(int64_t n) {
  auto factor = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % factor) --factor;
  return factor;
}

Tensor transform_lines(const Tensor& pairs, double sign) {
  const int64_t lines = pairs.size(0), n = pairs.size(1);
  if (n <= kDirect) {
    const uint32_t kind = sign > 0 ? PLUGRAD_FFT_BACKWARD : PLUGRAD_FFT_FORWARD;
    return reshape(matmul(reshape(pairs, {lines, 2 * n}), matrix({kind, 1, n, 1}, pairs)), {lines, n, 2});
  }
  const int64_t first = nearest_factor(n);
  return first > 1 ? cut_lines(pairs, first, sign) : convolved_lines(pairs, sign);
}

// --- Any kind, of lines of real numbers (lines, n) or pairs (lines, n, 2).

Tensor whole_of(const Tensor& half, int64_t n) {
  const Tensor first = slice(half, 1, 0, 1), real_first = mul(first, upload({1, 0}, {2}, half));
  const Tensor inner = slice(half, 1, 1, (n + 1) / 2);
  const Tensor mirrored = mul(flip(inner, {1}), upload({1, -1}, {2}, half));
  if (n % 2) return cat({real_first, inner, mirrored}, 1);
  return cat({real_first, inner, mul(slice(half, 1, n / 2, n / 2 + 1), upload({1, 0}, {2}, half)), mirrored}, 1);
}

Tensor all_lines(const Tensor& x, const Transform& how) {
  const int64_t lines = x.size(0);
  switch (how.kind) {
    case PLUGRAD_FFT_FORWARD: return mul(transform_lines(x, -1), how.scale);
    case PLUGRAD_FFT_BACKWARD: return mul(transform_lines(x, 1), how.scale);
    case PLUGRAD_FFT_REAL: {
      if (how.n <= kDirect) return reshape(matmul(x, matrix(how, x)), {lines, how.n / 2 + 1, 2});
      const Tensor pairs = stack({x, zeros_like(x)}, -1);
      return mul(slice(transform_lines(pairs, -1), 1, 0, how.n / 2 + 1), how.scale);
    }
    default: {
      if (how.n <= kDirect) return matmul(reshape(x, {lines, 2 * (how.n / 2 + 1)}), matrix(how, x));
      return mul(select(transform_lines(whole_of(x, how.n), 1), -1, 0), how.scale);
    }
  }
}

}  // namespace

Tensor composed(const Tensor& x, const Transform& how) {
  const bool real_in = how.kind == PLUGRAD_FFT_REAL, real_out = how.kind == PLUGRAD_FFT_INVERSE_REAL;
  // The axis goes behind all axes but that of the parts, and comes back.
  const int last = x.rank() - (real_in ? 1 : 2);
  const Tensor moved = movedim(x, {how.axis}, {last});
  Shape line{moved.count() / (moved.size(last) * (real_in ? 1 : 2)), moved.size(last)};
  if (!real_in) line.push_back(2);
  const Tensor lines = all_lines(reshape(moved, line), how);
  Shape shape;
  for (int i = 0; i < last; ++i) shape.push_back(moved.size(i));
  shape.push_back(lines.size(1));
  if (!real_out) shape.push_back(2);
  return contiguous(movedim(reshape(lines, shape), {last}, {how.axis}));
}

}  // namespace plugrad::fourier
