#include <core/io/onnx/ops/integer_products.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/rounding.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

namespace plugrad::io::onnx {
namespace {

// A scale or a zero point that broadcasts to x: one number, one for each place of an axis, or one for each block of it.
Tensor broadcast_to_input(const Call& c, const Tensor& t) {
  const Shape x = c.shape(0);
  const int64_t block = c.integer("block_size", 0);
  if (t.count() == 1 && !block) return reshape(t, {});
  const int axis = Call::axis(c.integer("axis", 1), x.rank());
  if (!block) return along_axis(t, axis, x.rank());
  return slice(repeat_interleave(t, block, axis), axis, 0, x[static_cast<size_t>(axis)]);
}

Value dequantized(Call& c) {
  const ElementType type = static_cast<ElementType>(c.integer("output_dtype", static_cast<int64_t>(c.type(1))));
  const DType dtype = c.type(1) == ElementType::f64 ? DType::f64 : DType::f32;
  Tensor x = cast(c.tensor(0), DType::i32);
  if (c.has(2)) x = sub(x, broadcast_to_input(c, cast(c.tensor(2), DType::i32)));
  return c.as(mul(cast(x, dtype), broadcast_to_input(c, cast(c.tensor(1), dtype))), type);
}

Value quantized(Call& c) {
  const int64_t given = c.integer("output_dtype", 0);
  const ElementType type = given ? static_cast<ElementType>(given) : c.has(2) ? c.type(2) : ElementType::u8;
  const auto range = range_of(type);
  if (!range) throw Error(Code::unsupported, "codes of " + element_name(type) + " are not supported");
  const DType dtype = c.type(0) == ElementType::f64 ? DType::f64 : DType::f32;
  Tensor x = round(div(cast(c.tensor(0), dtype), broadcast_to_input(c, cast(c.tensor(1), dtype))));
  if (c.has(2)) x = add(x, broadcast_to_input(c, cast(c.tensor(2), dtype)));
  return c.as(cast(clamp(x, range->low, range->high), DType::i32), type);
}

// Quantises x and returns the numbers of its codes: the same roundings as with codes.
Value fake_quantized(Call& c) {
  const auto range = range_of(c.has(2) ? c.type(2) : ElementType::u8);
  if (!range) throw Error(Code::unsupported, "codes of " + element_name(c.type(2)) + " are not supported");
  const DType dtype = c.type(1) == ElementType::f64 ? DType::f64 : DType::f32;
  const Tensor scale = broadcast_to_input(c, cast(c.tensor(1), dtype));
  Tensor x = round(div(cast(c.tensor(0), dtype), scale));
  if (!c.has(2)) return c.like(mul(clamp(x, range->low, range->high), scale), 1);
  const Tensor zero = c.prepared({2}, [&] { return broadcast_to_input(c, cast(c.tensor(2), dtype)); }, {0});
  x = clamp(add(x, zero), range->low, range->high);
  return c.like(mul(sub(x, zero), scale), 1);
}

constexpr Operator kQuantizations[] = {
    {"plugrad.FakeQuantize", fake_quantized},
    {"DequantizeLinear", dequantized},
    {"QuantizeLinear", quantized},
    {"com.microsoft.DequantizeLinear", dequantized},
    {"com.microsoft.QuantizeLinear", quantized},
};
}  // namespace

std::span<const Operator> quantization_operators() { return kQuantizations; }

}  // namespace plugrad::io::onnx
