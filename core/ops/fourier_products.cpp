// Fourier transforms as products with matrices, for devices without a kernel.
#include <core/ops/fourier.hpp>

#include <core/ops/run.hpp>
#include <plugrad/ops/arithmetic.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/trigonometry.hpp>
#include <plugrad/ops/views.hpp>

#include <cmath>
#include <numbers>

namespace plugrad::fourier {
namespace {

constexpr int64_t kDirect = 96;  // lengths of a single product

// 0 .. n - 1. The numbers are made on the device, since a compiled step copies nothing from the host.
Tensor counting(int64_t n, const Tensor& like) { return arange(0, n, 1, DType::i64, like.device()); }
Tensor products(const Tensor& rows, const Tensor& columns) { return mul(unsqueeze(rows, 1), columns); }

// scale e^(sign 2 pi i k / n) as pairs, for whole numbers k of 0 or more.
Tensor roots(const Tensor& k, int64_t n, double sign, double scale, const Tensor& like) {
  const Tensor rest = remainder(k, n), near = where(gt(mul(rest, 2), n), sub(rest, n), rest);  // at most half a turn
  const Tensor angle = mul(cast(near, like.dtype()), sign * 2 * std::numbers::pi / static_cast<double>(n));
  return mul(stack({cos(angle), sin(angle)}, -1), scale);
}

// The matrix (inputs, outputs) of a transform of n numbers; a complex number takes two places, its parts.
Tensor matrix(const Transform& how, const Tensor& like) {
  const bool real_in = how.kind == PLUGRAD_FFT_REAL, real_out = how.kind == PLUGRAD_FFT_INVERSE_REAL;
  const double sign = how.kind == PLUGRAD_FFT_BACKWARD || real_out ? 1 : -1;
  const int64_t half = how.n / 2 + 1, ins = real_out ? half : how.n, outs = real_in ? half : how.n;
  const Tensor j = counting(ins, like), w = roots(products(j, counting(outs, like)), how.n, sign, how.scale, like);
  if (real_in) return reshape(w, {ins, 2 * outs});
  const Tensor re = select(w, -1, 0), minus_im = neg(select(w, -1, 1));
  if (!real_out) return reshape(stack({w, stack({minus_im, re}, -1)}, 1), {2 * ins, 2 * outs});
  // A number that is its own conjugate counts once, and its imaginary part does not count; the others stand for two.
  const Tensor is_own = own_conjugates(how.n, like.device());
  const Tensor counts = cast(stack({where(is_own, 1, full_like(j, 2)), where(is_own, 0, full_like(j, 2))}, 1), like.dtype());
  return reshape(mul(stack({re, minus_im}, 1), unsqueeze(counts, -1)), {2 * ins, outs});
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
  const Tensor w = roots(products(counting(second, pairs), counting(first, pairs)), n, sign, 1, pairs);
  const Tensor turned = multiplied(reshape(done, {lines, second, first, 2}), w);
  const Tensor rows = transform_lines(reshape(transpose(turned, 1, 2), {lines * first, second, 2}), sign);
  return reshape(transpose(reshape(rows, {lines, first, second, 2}), 1, 2), {lines, n, 2});
}

// By a convolution with a chirp (Bluestein, "A linear filtering approach to the computation of discrete Fourier transform",
// 1970), whose length is a power of two.
Tensor convolved_lines(const Tensor& pairs, double sign) {
  const int64_t n = pairs.size(1);
  int64_t length = 2;
  while (length < 2 * n - 1) length *= 2;
  const Tensor j = counting(n, pairs), factors = roots(mul(j, j), 2 * n, sign, 1, pairs);
  const Tensor m = counting(length, pairs), distance = minimum(m, sub(length, m));
  const Tensor conjugates = roots(mul(distance, distance), 2 * n, -sign, 1, pairs);
  const Tensor filter = where(unsqueeze(lt(distance, n), -1), conjugates, 0);
  const Tensor padded = pad(multiplied(pairs, factors), {0, 0, 0, length - n});
  const Tensor spectrum = transform_lines(unsqueeze(filter, 0), -1);
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

// Pairs with other imaginary parts: 0, or the opposite.
Tensor without_imaginary(const Tensor& pairs) {
  const Tensor re = select(pairs, -1, 0);
  return stack({re, zeros_like(re)}, -1);
}
Tensor conjugates_of(const Tensor& pairs) { return stack({select(pairs, -1, 0), neg(select(pairs, -1, 1))}, -1); }

Tensor whole_of(const Tensor& half, int64_t n) {
  const Tensor first = without_imaginary(slice(half, 1, 0, 1)), inner = slice(half, 1, 1, (n + 1) / 2);
  const Tensor mirrored = conjugates_of(flip(inner, {1}));
  if (n % 2) return cat({first, inner, mirrored}, 1);
  return cat({first, inner, without_imaginary(slice(half, 1, n / 2, n / 2 + 1)), mirrored}, 1);
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
