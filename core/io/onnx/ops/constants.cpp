#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <cmath>

namespace plugrad::io::onnx {
namespace {

Value constant(Call& c) {
  if (c.has_attribute("value")) {
    ElementType type = ElementType::none;
    const Tensor value = c.tensor_attribute("value", type);
    return Value(value, type);
  }
  if (c.has_attribute("value_int")) return Tensor::from<int64_t>({c.integer("value_int", 0)}, {}, c.device());
  if (c.has_attribute("value_float")) return scalar(c.real("value_float", 0), DType::f32, c.device());
  if (c.has_attribute("value_ints")) {
    const std::vector<int64_t> all = c.integers("value_ints");
    return Tensor::from<int64_t>(all, {static_cast<int64_t>(all.size())}, c.device());
  }
  if (c.has_attribute("value_floats")) {
    const std::vector<double> all = c.reals("value_floats");
    return cast(Tensor::from<double>(all, {static_cast<int64_t>(all.size())}, c.device()), DType::f32);
  }
  throw Error(Code::unsupported, "a constant of strings or a sparse constant is not supported");
}

Value constant_of_shape(Call& c) {
  const Shape shape(c.integers(0));
  if (!c.has_attribute("value")) return zeros(shape, DType::f32, c.device());
  ElementType type = ElementType::none;
  const Tensor value = c.tensor_attribute("value", type);
  return Value(contiguous(expand(reshape(value, {}), shape)), type);
}

Value range(Call& c) {
  const DType dtype = c.tensor(0).dtype();
  if (!is_floating(dtype)) {
    const int64_t begin = c.integer(0), end = c.integer(1), step = c.integer(2);
    if (!step) throw Error(Code::invalid, "the step is 0");
    const bool empty = step > 0 ? begin >= end : begin <= end;
    if (empty) return c.like(zeros({0}, dtype, c.device()));
    return c.made([&] { return arange(begin, end, step, dtype, c.device()); });
  }
  const double begin = c.real(size_t{0}), step = c.real(size_t{2});
  const int64_t count = Call::countable(std::max(0.0, std::ceil((c.real(size_t{1}) - begin) / step)));
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(begin + static_cast<double>(i) * step);
  return c.made(numbers, {count}, dtype);
}

Value eye_like(Call& c) {
  const auto type = static_cast<ElementType>(c.integer("dtype", static_cast<int64_t>(c.type(0))));
  const Shape shape = c.shape(0);
  if (shape.rank() != 2) throw Error(Code::invalid, "a matrix is expected");
  const Tensor column = add(reshape(c.arange(shape[0]), {shape[0], 1}), c.integer("k", 0));
  return c.as(cast(eq(column, reshape(c.arange(shape[1]), {1, shape[1]})), carrier_of(type)), type);
}

Values dropout(Call& c) {
  const bool training = c.has(2) && c.integer(2);
  if (training && (c.has(1) ? c.real(size_t{1}) : 0.5) != 0)
    throw Error(Code::unsupported, "dropout in training mode is not supported: export the model for inference");
  Values all{c.value(0)};
  const DType mask = c.opset() < 10 ? c.tensor(0).dtype() : DType::boolean;
  if (c.wants(1)) all.push_back(ones(c.shape(0), mask, c.device()));
  return all;
}

Value triangle(Call& c) {
  const int64_t diagonal = c.has(1) ? c.integer(1) : 0;
  return c.like(c.integer("upper", 1) ? triu(c.tensor(0), diagonal) : tril(c.tensor(0), diagonal));
}

constexpr Operator kConstants[] = {
    {"Constant", constant}, {"ConstantOfShape", constant_of_shape},
    {"Range", range},       {"EyeLike", eye_like},
    {"Dropout", dropout},   {"Trilu", triangle},
};
}  // namespace

std::span<const Operator> constant_operators() { return kConstants; }

}  // namespace plugrad::io::onnx
