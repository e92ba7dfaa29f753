#include <plugrad/ops/piecewise.hpp>

#include <core/ops/argument.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <string>

namespace plugrad {

Tensor relu6(const Tensor& x) {
  require_floating("relu6", x);
  return hardtanh(x, 0, 6);
}

Tensor hardsigmoid(const Tensor& x) {
  require_floating("hardsigmoid", x);
  return rounded_once(
      x, [](const Tensor& wide) { return where(le(wide, -3), 0, where(ge(wide, 3), 1, div(add(wide, 3), 6))); });
}

Tensor hardswish(const Tensor& x) {
  require_floating("hardswish", x);
  return rounded_once(x, [](const Tensor& wide) {
    return where(le(wide, -3), 0, where(ge(wide, 3), wide, div(mul(wide, add(wide, 3)), 6)));
  });
}

Tensor threshold(const Tensor& x, double threshold, double value) {
  require_floating("threshold", x);
  return where(le(x, threshold), value, x);
}

namespace {
void require_distance(const char* name, double lambd) {
  if (!(lambd >= 0)) refuse(name, "lambd is " + number_text(lambd) + ": expected 0 or more");
}
}  // namespace

Tensor softshrink(const Tensor& x, double lambd) {
  require_floating("softshrink", x);
  require_distance("softshrink", lambd);
  // x * 0 is NaN where x is.
  return where(gt(x, lambd), sub(x, lambd), where(lt(x, -lambd), add(x, lambd), mul(x, 0)));
}

Tensor hardshrink(const Tensor& x, double lambd) {
  require_floating("hardshrink", x);
  require_distance("hardshrink", lambd);
  return where(le(abs(x), lambd), 0, x);
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  require_floating("prelu", x);
  require_floating("prelu", weight);
  const int64_t channels = x.rank() > 1 ? x.size(1) : 1;
  if (weight.rank() > 1 || (weight.count() != 1 && weight.count() != channels))
    refuse("prelu", "weight has shape " + weight.shape().text() + " and x " + x.shape().text() +
                        ": expected one element, or " + std::to_string(channels));
  Shape shape{weight.count()};
  for (int i = 2; i < x.rank(); ++i) shape.push_back(1);
  const Tensor slopes = reshape(weight, x.rank() ? shape : Shape{});
  return where(gt(x, 0), x, mul(slopes, x));
}

Tensor rrelu(const Tensor& x, double lower, double upper, bool training) {
  require_floating("rrelu", x);
  if (!(lower <= upper))
    refuse("rrelu", "lower " + number_text(lower) + " is above upper " + number_text(upper) + ": exchange them");
  if (!training) return leaky_relu(x, (lower + upper) / 2);
  const Tensor slopes = add(mul(rand(x.shape(), accumulator_of(x.dtype()), x.device()), upper - lower), lower);
  return where(gt(x, 0), x, mul(cast(slopes, x.dtype()), x));
}

}  // namespace plugrad
