#include <core/ops/channels.hpp>

#include <core/ops/argument.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/views.hpp>

#include <string>

namespace plugrad {

void require_shape(const char* name, const char* role, const Tensor& x, const Shape& shape) {
  if (x.defined() && x.shape() != shape)
    refuse(name, std::string(role) + " has shape " + x.shape().text() + ": expected " + shape.text());
}

void require_channels(const char* name, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  require_floating(name, x);
  if (x.rank() < 2) refuse(name, "x has shape " + x.shape().text() + ": expected (n, c, ..)");
  require_shape(name, "weight", weight, {x.size(1)});
  require_shape(name, "bias", bias, {x.size(1)});
}

Shape channel_shape(const Tensor& x) {
  Shape shape{x.size(1)};
  for (int i = 2; i < x.rank(); ++i) shape.push_back(1);
  return shape;
}

Tensor scaled(Tensor y, const Tensor& weight, const Tensor& bias, const Shape& shape, DType dtype) {
  if (weight.defined()) y = mul(y, reshape(at_least_f32(weight), shape));
  if (bias.defined()) y = add(y, reshape(at_least_f32(bias), shape));
  return cast(y, dtype);
}

void move_towards(Tensor running, const Tensor& value, double momentum) {
  if (!running.defined()) return;
  const NoGrad unrecorded;
  const Tensor kept = mul(at_least_f32(running), 1 - momentum);
  running.copy_(add(kept, mul(value, momentum)));
}

}  // namespace plugrad
