#include <core/io/onnx/ops/integer_products.hpp>
#include <core/io/onnx/ops/shape_parts.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <core/io/onnx/ops/windows.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/quantization.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/rounding.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>

namespace plugrad::io::onnx {

Tensor along_axis(const Tensor& x, int axis, int rank) {
  if (x.count() == 1) return reshape(x, {});
  if (x.rank() != 1) return x;
  return reshape(x, shape_along(rank, axis, x.count()));
}

namespace {

Tensor to_i32(const Tensor& x) { return cast(x, DType::i32); }

// b as i8, and its zero point as i32 of shape (), (n) or (.., 1, n); undefined where it is known to be 0.
struct SignedInput {
  Tensor tensor, zero;
};
SignedInput as_signed(const Call& c, IntegerInput b, bool transposed) {
  const bool is_unsigned = c.tensor(b.tensor).dtype() == DType::u8;
  const int rank = c.rank(b.tensor);
  const auto zero = [&] {
    Tensor z = c.has(b.zero) ? along_axis(to_i32(c.tensor(b.zero)), std::max(rank - 1, 0), rank)
                             : scalar(0, DType::i32, c.device());
    return is_unsigned ? sub(z, 128) : z;
  };
  SignedInput found;
  found.tensor = c.tensor(b.tensor);
  if (transposed) found.tensor = transpose(found.tensor, 0, 1);
  if (is_unsigned) found.tensor = c.prepared({b.tensor}, [&] { return cast(sub(to_i32(found.tensor), 128), DType::i8); });
  bool plain = !is_unsigned && !c.has(b.zero);
  if (!is_unsigned && c.has(b.zero) && c.known(b.zero))
    plain = std::ranges::all_of(c.integers(b.zero), [](int64_t each) { return each == 0; });
  if (!plain) found.zero = c.prepared({b.tensor, b.zero}, zero);
  return found;
}

// The exact product, from the product of the codes: the zero points are subtracted from the sums.
Tensor corrected_product(const Call& c, const Tensor& a, const Tensor& a_zero, IntegerInput b, bool transposed = false) {
  const SignedInput right = as_signed(c, b, transposed);
  const bool vector = right.tensor.rank() == 1;
  const Tensor matrix = vector ? unsqueeze(right.tensor, 1) : right.tensor;
  const Tensor rows = a.rank() == 1 ? unsqueeze(a, 0) : a;
  Tensor result = integer_matmul(rows, c.prepared({b.tensor}, [&] { return contiguous(matrix); }));
  if (a_zero.defined()) {
    const Tensor columns = c.prepared({b.tensor}, [&] { return to_i32(sum(to_i32(matrix), {-2}, true)); });
    result = sub(result, mul(a_zero, columns));
  }
  if (right.zero.defined()) {
    Tensor sums = to_i32(sum(to_i32(rows), {-1}, true));
    if (a_zero.defined()) sums = sub(sums, mul(a_zero, rows.size(-1)));
    result = sub(result, mul(sums, right.zero));
  }
  if (vector) result = squeeze(result, {-1});
  return a.rank() == 1 ? squeeze(result, {vector ? -1 : -2}) : result;
}

Tensor centered(const Call& c, IntegerInput x, int axis, DType dtype) {
  const Tensor codes = cast(c.tensor(x.tensor), dtype);
  if (!c.has(x.zero)) return codes;
  return sub(codes, along_axis(cast(c.tensor(x.zero), dtype), axis, codes.rank()));
}
}  // namespace

Tensor integer_product(const Call& c, IntegerInput a, IntegerInput b, bool transposed) {
  Tensor zero;
  if (c.has(a.zero))
    zero = along_axis(to_i32(c.tensor(a.zero)), std::max(c.rank(a.tensor) - 2, 0), std::max(c.rank(a.tensor), 2));
  return corrected_product(c, c.tensor(a.tensor), zero, b, transposed);
}

// Sums of up to 258 products of 8 bits are exact in f32; longer ones are split by input channels.
Tensor integer_convolution(const Call& c, IntegerInput x, IntegerInput weight) {
  constexpr int64_t kExact = (int64_t{1} << 24) / (255 * 255);
  const Tensor w = c.prepared({weight.tensor, weight.zero}, [&] { return centered(c, weight, 0, DType::f32); });
  const int64_t channels = w.size(1), products = w.count() / std::max<int64_t>(w.size(0), 1);
  if (products <= kExact) return to_i32(convolved(c, centered(c, x, 1, DType::f32), w, {}));
  const int64_t part = kExact * channels / products;
  if (c.integer("group", 1) != 1 || part < 1)
    return to_i32(convolved(c, centered(c, x, 1, DType::f64), cast(w, DType::f64), {}));
  const Tensor in = centered(c, x, 1, DType::f32);
  Tensor total;
  for (int64_t begin = 0; begin < channels; begin += part) {
    const int64_t end = std::min(begin + part, channels);
    const Tensor sums = to_i32(convolved(c, slice(in, 1, begin, end), slice(w, 1, begin, end), {}));
    total = total.defined() ? add(total, sums) : sums;
  }
  return total;
}

DynamicallyQuantized quantized_dynamically(const Tensor& x) {
  const Tensor low = minimum(amin(x), 0), high = maximum(amax(x), 0);
  Tensor scale = div(sub(high, low), 255);
  scale = where(eq(scale, 0), ones_like(scale), scale);
  const Tensor zero = clamp(round(div(neg(low), scale)), 0, 255);
  const Tensor codes = clamp(add(round(div(x, scale)), zero), 0, 255);
  return {cast(codes, DType::u8), scale, zero};
}

Tensor dynamic_product(const Call& c, const DynamicallyQuantized& a, IntegerInput b) {
  return corrected_product(c, a.codes, to_i32(a.zero), b);
}

namespace {

Values dynamic_quantization(Call& c) {
  const DynamicallyQuantized found = quantized_dynamically(c.tensor(0));
  return {found.codes, found.scale, cast(found.zero, DType::u8)};
}

// round(sums * factor) + zero, in the range of the zero point's type.
Value requantized(const Call& c, const Tensor& sums, const Tensor& factor, size_t zero) {
  const ElementType type = c.type(zero);
  const auto range = range_of(type);
  if (!range) throw Error(Code::unsupported, "results of " + element_name(type) + " are not supported");
  const Tensor rounded = add(round(mul(cast(sums, DType::f32), factor)), cast(c.tensor(zero), DType::f32));
  return c.as(cast(clamp(rounded, range->low, range->high), DType::i32), type);
}

Value quantized_product(Call& c) {
  const Tensor sums = integer_product(c, {0, 2}, {3, 5});
  const Tensor factor = c.prepared({1, 4, 6},
                                   [&] {
                                     const Tensor rows = along_axis(cast(c.tensor(1), DType::f32),
                                                                    std::max(c.rank(0) - 2, 0), std::max(c.rank(0), 2));
                                     return div(mul(rows, cast(c.tensor(4), DType::f32)), cast(c.tensor(6), DType::f32));
                                   },
                                   {0});
  return requantized(c, sums, factor, 7);
}

Value quantized_convolution(Call& c) {
  Tensor sums = integer_convolution(c, {0, 2}, {3, 5});
  if (c.has(8)) sums = add(sums, along_axis(c.tensor(8), 1, sums.rank()));
  const Tensor factor =
      c.prepared({1, 4, 6}, [&] { return div(mul(c.tensor(1), along_axis(c.tensor(4), 1, c.rank(0))), c.tensor(6)); }, {0});
  return requantized(c, sums, factor, 7);
}

// x (f32) times b (int8), with x quantised dynamically.
Value dynamic_matmul(Call& c) {
  const DynamicallyQuantized x = quantized_dynamically(c.tensor(0));
  const Tensor product = mul(cast(dynamic_product(c, x, {1, 3}), DType::f32), mul(x.scale, c.tensor(2)));
  return c.has(4) ? add(product, c.tensor(4)) : product;
}

Value integer_matmul_to_float(Call& c) {
  const Tensor factor = c.prepared({2, 3}, [&] { return mul(c.tensor(2), c.tensor(3)); });
  const Tensor product = mul(cast(integer_product(c, {0, 4}, {1, 5}), DType::f32), factor);
  return c.has(6) ? add(product, c.tensor(6)) : product;
}

constexpr Operator kIntegers[] = {
    {"DynamicQuantizeLinear", dynamic_quantization},
    {"MatMulInteger", [](Call& c) { return Value(integer_product(c, {0, 2}, {1, 3})); }},
    {"ConvInteger", [](Call& c) { return Value(integer_convolution(c, {0, 2}, {1, 3})); }},
    {"QLinearMatMul", quantized_product},
    {"QLinearConv", quantized_convolution},
    {"com.microsoft.DynamicQuantizeMatMul", dynamic_matmul},
    {"com.microsoft.MatMulIntegerToFloat", integer_matmul_to_float},
};
}  // namespace

std::span<const Operator> integer_operators() { return kIntegers; }

}  // namespace plugrad::io::onnx
