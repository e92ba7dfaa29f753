#include <plugrad/ops/quantization.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/autocast_rules.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/rounding.hpp>
#include <plugrad/ops/views.hpp>

#include <cmath>

namespace plugrad {
namespace {

constexpr int64_t kGroupStep = 16;

void require_bits(const char* name, int64_t bits) {
  if (bits != 2 && bits != 4 && bits != 8) refuse(name, "bits is " + std::to_string(bits) + ", expected 2, 4 or 8");
}

// Checks a weight's codes and scales. Returns k.
int64_t require_weight(const char* name, const Tensor& codes, const Tensor& scales, int64_t bits) {
  const int64_t k = codes.size(1) * 8 / bits, groups = scales.size(1), parts = scales.size(2);
  const bool fits = scales.size(0) == codes.size(0) && groups > 0 && k % groups == 0 && k / groups % kGroupStep == 0;
  if (!fits || parts < 1 || parts > 2)
    refuse(name, "codes is " + codes.shape().text() + ", of " + std::to_string(bits) + " bits, and scales " +
                     scales.shape().text() +
                     ": expected (n, k bits / 8) and (n, groups, 1 or 2), with groups of a multiple of 16");
  return k;
}

void require_codes(const char* name, const Tensor& codes, const Tensor& scales) {
  require_dtype(name, codes, DType::u8, "codes");
  require_defined(scales, name);
  if (scales.dtype() != DType::f16 && scales.dtype() != DType::f32)
    refuse(name, std::string("scales has dtype ") + dtype_name(scales.dtype()) + ", expected f16 or f32: cast it");
  if (codes.device() != scales.device()) throw_not_together(name, codes, scales);
  if (codes.rank() != 2 || scales.rank() != 3)
    refuse(name, "codes is " + codes.shape().text() + " and scales " + scales.shape().text() +
                     ": expected (n, k bits / 8) and (n, groups, 1 or 2)");
}

// The codes (n, bytes) as numbers (n, groups, k / groups) in f32: those of symmetric codes are not shifted yet.
Tensor unpacked(const Tensor& codes, int64_t groups, int64_t bits, int64_t k) {
  const NoGrad constant;
  Tensor rest = cast(codes, DType::f32);
  std::vector<Tensor> parts;
  for (int64_t shift = bits; shift < 8; shift += bits) {
    const Tensor higher = floor(mul(rest, std::ldexp(1.0, static_cast<int>(-bits))));
    parts.push_back(sub(rest, mul(higher, std::ldexp(1.0, static_cast<int>(bits)))));
    rest = higher;
  }
  parts.push_back(rest);
  return reshape(parts.size() == 1 ? rest : stack(parts, -1), {codes.size(0), groups, k / groups});
}

// The reverse: numbers (n, k) in f32 as bytes.
Tensor packed(const Tensor& numbers, int64_t bits) {
  if (bits == 8) return cast(numbers, DType::u8);
  const Tensor each = unflatten(numbers, 1, {-1, 8 / bits});
  Tensor bytes = select(each, 2, 0);
  for (int64_t i = 1; i < 8 / bits; ++i)
    bytes = add(bytes, mul(select(each, 2, i), std::ldexp(1.0, static_cast<int>(i * bits))));
  return cast(bytes, DType::u8);
}

// The largest numbers of the dtype that are not above these numbers, or next to the largest.
Tensor lowered(const Tensor& x, DType dtype) {
  if (dtype != DType::f16) return x;
  constexpr double kUlp = 0x1p-10;
  const Tensor nearest = cast(cast(x, dtype), DType::f32);
  const Tensor below = cast(cast(sub(x, mul(abs(x), kUlp)), dtype), DType::f32);
  return where(gt(nearest, x), below, nearest);
}

// dtype: f32 or f64.
Tensor weight_of(const Tensor& codes, const Tensor& scales, int64_t bits, int64_t k, DType dtype) {
  const Tensor q = cast(unpacked(codes, scales.size(1), bits, k), dtype), pairs = cast(scales, dtype);
  const Tensor s = slice(pairs, 2, 0, 1);
  const Tensor elements = scales.size(2) == 2 ? add(mul(q, s), slice(pairs, 2, 1, 2))
                                              : mul(sub(q, std::ldexp(1.0, static_cast<int>(bits - 1))), s);
  return reshape(elements, {codes.size(0), k});
}

// In f32 for halves: the weight is not rounded to a half.
Tensor composed(const Tensor& x, const Tensor& codes, const Tensor& scales, int64_t bits) {
  const Tensor wide = at_least_f32(x);
  return cast(matmul(wide, transpose(weight_of(codes, scales, bits, x.size(-1), wide.dtype()))), x.dtype());
}

Tensor product(const Tensor& x, const Tensor& codes, const Tensor& scales, int64_t bits) {
  const NoGrad unrecorded;
  const Tensor out = empty(Op::QUANTIZED_MATMUL, device_of(x), {x.size(0), codes.size(0)}, dtype_of(x));
  if (!out.count() || try_run(Op::QUANTIZED_MATMUL, {out}, {x, codes, scales})) return out;
  count_decomposition(x);
  return composed(x, codes, scales, bits);
}

// x is (m, k).
Tensor rows_times(const Tensor& x, const Tensor& codes, const Tensor& scales, int64_t bits) {
  static constexpr auto kRule = rule(
      "quantized_matmul",
      gradient<kInput1, kInput2, kPayload>([](const Tensor& grad, const Tensor& bytes, const Tensor& pairs, int64_t each) {
        const Tensor wide = at_least_f32(grad);
        const Tensor weight = weight_of(bytes, pairs, each, bytes.size(1) * 8 / each, wide.dtype());
        return cast(matmul(wide, weight), grad.dtype());
      }),
      kNoGradient, kNoGradient);
  if (scales.requires_grad() && recording()) return composed(x, codes, scales, bits);
  return differentiable(kRule, bits, product(x, codes, scales, bits), x, codes, scales);
}

// Sums of so many products of 15 bits are below 2^24: exact in f32, in any order.
constexpr int64_t kExact = 512;

// (.., m, k) x (.., k, n) by products of f32.
Tensor composed_of_f32(const Tensor& a, const Tensor& b) {
  if (!a.size(-1)) return cast(matmul(cast(a, DType::f32), cast(b, DType::f32)), DType::i32);
  Tensor sum;
  for (int64_t first = 0; first < a.size(-1); first += kExact) {
    const int64_t last = std::min(a.size(-1), first + kExact);
    const Tensor left = cast(slice(a, -1, first, last), DType::f32), right = cast(slice(b, -2, first, last), DType::f32);
    const Tensor part = cast(matmul(left, right), DType::i32);
    sum = first ? add(sum, part) : part;
  }
  return sum;
}

// (m, k) x (k, n)
Tensor product_of_bytes(const Tensor& a, const Tensor& b) {
  const Tensor out = empty(Op::INTEGER_MATMUL, device_of(a), {a.size(0), b.size(1)}, static_cast<uint8_t>(DType::i32));
  if (!out.count() || try_run(Op::INTEGER_MATMUL, {out}, {a, b})) return out;
  count_decomposition(a);
  return composed_of_f32(a, b);
}

}  // namespace

Tensor integer_matmul(const Tensor& a, const Tensor& b) {
  constexpr const char* kName = "integer_matmul";
  require_defined(a, kName);
  require_dtype(kName, b, DType::i8, "b");
  if (a.dtype() != DType::u8 && a.dtype() != DType::i8)
    refuse(kName, std::string("a has dtype ") + dtype_name(a.dtype()) + ", expected u8 or i8: cast it");
  if (a.device() != b.device()) throw_not_together(kName, a, b);
  if (a.rank() < 2 || b.rank() < 2 || a.size(-1) != b.size(-2))
    refuse(kName, "a is " + a.shape().text() + " and b " + b.shape().text() + ": expected (.., m, k) and (.., k, n)");
  const NoGrad unrecorded;
  const WithoutAutocast exact;  // bf16 would round the sums of the composition
  if (b.rank() > 2 || !a.size(-1)) return composed_of_f32(a, b);
  Shape shape = a.shape();
  shape[shape.size() - 1] = b.size(-1);
  return reshape(product_of_bytes(reshape(a, {-1, a.size(-1)}), b), shape);
}

Quantized quantize(const Tensor& weight, int64_t bits, int64_t group_size, bool symmetric, DType scale_dtype) {
  constexpr const char* kName = "quantize";
  require_floating(kName, weight);
  require_bits(kName, bits);
  if (weight.rank() != 2 || group_size < kGroupStep || group_size % kGroupStep || weight.size(1) % group_size)
    refuse(kName, "weight is " + weight.shape().text() + " and group_size " + std::to_string(group_size) +
                      ": expected (n, k) and a multiple of 16 that divides k");
  if (scale_dtype != DType::f16 && scale_dtype != DType::f32)
    refuse(kName, std::string("scale_dtype is ") + dtype_name(scale_dtype) + ", expected f16 or f32");
  const NoGrad unrecorded;
  const Tensor groups = unflatten(cast(weight, DType::f32), 1, {-1, group_size});
  const double highest = std::ldexp(1.0, static_cast<int>(bits)) - 1, middle = std::ldexp(1.0, static_cast<int>(bits - 1));
  const auto stored = [&](const Tensor& x) { return cast(x, scale_dtype); };
  Tensor scales, zeros;
  if (symmetric) {
    scales = stored(div(max(abs(groups), {2}, true), middle - 1));
  } else {
    const Tensor low = lowered(min(groups, {2}, true), scale_dtype);
    scales = stored(cat({div(sub(max(groups, {2}, true), low), highest), low}, 2));
  }
  const Tensor s = cast(slice(scales, 2, 0, 1), DType::f32), divisor = where(eq(s, 0), 1, s);
  const Tensor shifted = symmetric ? groups : sub(groups, cast(slice(scales, 2, 1, 2), DType::f32));
  const Tensor steps = round(div(shifted, divisor));
  const Tensor codes = clamp(symmetric ? add(steps, middle) : steps, Number(0), Number(highest));
  return {packed(reshape(codes, weight.shape()), bits), scales};
}

Tensor dequantize(const Tensor& codes, const Tensor& scales, int64_t bits, DType dtype) {
  constexpr const char* kName = "dequantize";
  require_codes(kName, codes, scales);
  require_bits(kName, bits);
  if (!is_floating(dtype)) refuse(kName, std::string("dtype is ") + dtype_name(dtype) + ", expected a floating dtype");
  const int64_t k = require_weight(kName, codes, scales, bits);
  return cast(weight_of(codes, scales, bits, k, dtype == DType::f64 ? DType::f64 : DType::f32), dtype);
}

Tensor quantized_matmul(const Tensor& x, const Tensor& codes, const Tensor& scales) {
  constexpr const char* kName = "quantized_matmul";
  if (autocasting()) [[unlikely]] {
    const Tensor narrow = x.defined() && x.dtype() != DType::f64 ? narrowed(x) : x;
    const WithoutAutocast plain;
    return quantized_matmul(narrow, codes, scales);
  }
  require_floating(kName, x);
  require_codes(kName, codes, scales);
  if (x.device() != codes.device()) throw_not_together(kName, x, codes);
  const int64_t k = x.rank() ? x.size(-1) : 0, bits = k ? codes.size(1) * 8 / k : 0;
  if (codes.size(1) * 8 != bits * k || (bits != 2 && bits != 4 && bits != 8))
    refuse(kName, "x is " + x.shape().text() + " and codes " + codes.shape().text() +
                      ": expected (.., k) and (n, k bits / 8) of 2, 4 or 8 bits");
  require_weight(kName, codes, scales, bits);
  if (x.rank() == 2) return rows_times(x, codes, scales, bits);
  Shape shape = x.shape();
  shape[shape.size() - 1] = codes.size(0);
  return reshape(rows_times(reshape(x, {-1, k}), codes, scales, bits), shape);
}

}  // namespace plugrad
