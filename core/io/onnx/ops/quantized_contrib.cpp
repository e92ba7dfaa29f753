#include <core/io/onnx/ops/integer_products.hpp>
#include <core/io/onnx/ops/shape_parts.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <core/io/onnx/ops/windows.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/rounding.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

namespace plugrad::io::onnx {
namespace {

// Input i in f32; its scale and its zero point, numbers, are inputs i + 1 and i + 2.
Tensor real_input(const Call& c, size_t i) {
  Tensor x = cast(c.tensor(i), DType::f32);
  if (c.has(i + 2)) x = sub(x, reshape(cast(c.tensor(i + 2), DType::f32), {}));
  return mul(x, reshape(c.tensor(i + 1), {}));
}

// The codes of x for the scale and the zero point that are inputs i and i + 1; the type is the zero point's, else uint8.
Value coded(const Call& c, const Tensor& x, size_t i) {
  const ElementType type = c.has(i + 1) ? c.type(i + 1) : ElementType::u8;
  const auto range = range_of(type);
  if (!range) throw Error(Code::unsupported, "codes of " + element_name(type) + " are not supported");
  Tensor codes = round(div(x, reshape(c.tensor(i), {})));
  if (c.has(i + 1)) codes = add(codes, reshape(cast(c.tensor(i + 1), DType::f32), {}));
  return c.as(cast(clamp(codes, range->low, range->high), DType::i32), type);
}

template <Tensor (*F)(const Tensor&, const Tensor&)> Value of_two(Call& c) {
  return coded(c, F(real_input(c, 0), real_input(c, 3)), 6);
}

Value coded_softmax(Call& c) {
  const Tensor x = real_input(c, 0);
  const int64_t axis = c.integer("axis", -1);
  if (c.integer("opset", 13) >= 13) return coded(c, softmax(x, Call::axis(axis, x.rank())), 3);
  const int first = Call::axis(axis, x.rank());
  return coded(c, reshape(softmax(reshape(x, matrix_shape(x.shape(), first)), 1), x.shape()), 3);
}

void require_channels_first(const Call& c) {
  if (c.integer("channels_last", 0)) throw Error(Code::unsupported, "channels_last is not supported");
}

Value coded_average(Call& c) {
  require_channels_first(c);
  return coded(c, average_pooled_value(c, real_input(c, 0)), 3);
}

Value coded_global_average(Call& c) {
  require_channels_first(c);
  const Tensor x = real_input(c, 0);
  return coded(c, mean(x, spatial_axes(x.rank()), true), 3);
}

Value coded_mean(Call& c) {
  const Tensor x = real_input(c, 0);
  std::vector<int64_t> axes = c.integers("axes");
  for (int64_t& each : axes) each = Call::axis(each, x.rank());
  return coded(c, mean(x, axes, c.integer("keepdims", 1) != 0), 3);
}

Value coded_concatenation(Call& c) {
  std::vector<Tensor> parts;
  for (size_t i = 2; i + 1 < c.inputs(); i += 3) parts.push_back(real_input(c, i));
  if (parts.empty()) throw Error(Code::invalid, "there are no inputs");
  return coded(c, cat(parts, Call::axis(c.integer("axis", 0), parts[0].rank())), 0);
}

// alpha (a - zero of a)(b - zero of b) + C, in i32; scaled to f32, or coded where a scale of the result is given.
Value coded_product(Call& c) {
  if (c.integer("transA", 0)) throw Error(Code::unsupported, "transA is not supported");
  const bool transposed = c.integer("transB", 0);
  Tensor sums = integer_product(c, {0, 2}, {3, 5}, transposed);
  if (c.has(6)) sums = add(sums, c.tensor(6));
  const Tensor scale = mul(reshape(c.tensor(1), {}), along_axis(c.tensor(4), 1, 2));
  const Tensor x = mul(mul(cast(sums, DType::f32), scale), c.real("alpha", 1));
  return c.has(7) ? coded(c, x, 7) : Value(x);
}

constexpr Operator kQuantizedContrib[] = {
    {"com.microsoft.QLinearAdd", of_two<add>},
    {"com.microsoft.QLinearMul", of_two<mul>},
    {"com.microsoft.QLinearSigmoid", [](Call& c) { return coded(c, sigmoid(real_input(c, 0)), 3); }},
    {"com.microsoft.QLinearLeakyRelu",
     [](Call& c) { return coded(c, leaky_relu(real_input(c, 0), c.real("alpha", 0.01)), 3); }},
    {"com.microsoft.QLinearSoftmax", coded_softmax},
    {"com.microsoft.QLinearAveragePool", coded_average},
    {"com.microsoft.QLinearGlobalAveragePool", coded_global_average},
    {"com.microsoft.QLinearReduceMean", coded_mean},
    {"com.microsoft.QLinearConcat", coded_concatenation},
    {"com.microsoft.QGemm", coded_product},
};
}  // namespace

std::span<const Operator> quantized_contrib_operators() { return kQuantizedContrib; }

}  // namespace plugrad::io::onnx
