#include <plugrad/ops/smooth.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/infinity.hpp>
#include <core/ops/native_or.hpp>
#include <core/ops/wide.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/random.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <string>

namespace plugrad {
namespace {}

Tensor mish(const Tensor& x) {
  require_floating("mish", x);
  return rounded_once(x, [](const Tensor& wide) { return mul(wide, tanh(softplus(wide, 1, kInfinity))); });
}

// G. Klambauer et al., "Self-normalizing neural networks", 2017.
Tensor selu(const Tensor& x) {
  require_floating("selu", x);
  return rounded_once(x, [](const Tensor& wide) {
    return mul(elu(wide, 1.6732632423543772848170429916717), 1.0507009873554804934193349852946);
  });
}

Tensor celu(const Tensor& x, double alpha) {
  require_floating("celu", x);
  if (alpha == 0) refuse("celu", "alpha is 0: give another number");
  return rounded_once(x, [alpha](const Tensor& wide) {
    // The exponential of a positive x is not chosen, but may be infinite.
    const Tensor positive = gt(wide, 0), negative = where(positive, 0, wide);
    return where(positive, wide, mul(expm1(div(negative, alpha)), alpha));
  });
}

Tensor softsign(const Tensor& x) {
  // The derivative of the quotient's own steps would overflow and cancel where |x| is large.
  static constexpr auto kRule =
      rule("softsign",
           gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return mul(grad, square(div(1, add(abs(x), 1)))); }));
  require_floating("softsign", x);
  return differentiable(kRule, in_wide("softsign", x, [](const Tensor& wide) { return div(wide, add(abs(wide), 1)); }), x);
}

namespace {
// x - tanh(x), near 0 by Taylor's series of tanh, as the difference would lose the digits.
Tensor without_tanh(const Tensor& x) {
  static constexpr double kSeries[] = {
      0.33333333333333333333,    -0.13333333333333333333,     0.053968253968253968254,    -0.021869488536155202822,
      0.0088632355299021965689,  -0.0035921280365724810169,   0.0014558343870513182682,   -0.00059002744094558598138,
      0.00023912911424355248149, -0.000096915379569294503256, 0.000039278323883316834053, -0.000015918905069328964741,
      6.4516892156554307632e-6,  -2.6147711512907545543e-6,   1.0597268320104654351e-6,   -4.2949110782738058548e-7,
      1.740661896357164778e-7,   -7.0546369464009683252e-8,   2.8591366623052539083e-8};
  const Tensor is_near = lt(abs(x), 0.5), near = where(is_near, x, 0), square = mul(near, near);
  return where(is_near, mul(mul(near, square), polynomial(square, kSeries)), sub(x, tanh(x)));
}
}  // namespace

Tensor tanhshrink(const Tensor& x) {
  static constexpr auto kRule =
      rule("tanhshrink", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return mul(grad, square(tanh(x))); }));
  require_floating("tanhshrink", x);
  return differentiable(kRule, in_wide("tanhshrink", x, without_tanh), x);
}

Tensor logsigmoid(const Tensor& x) {
  require_floating("logsigmoid", x);
  return neg(softplus(neg(x), 1, kInfinity));
}

Tensor softmin(const Tensor& x, int axis) {
  require_floating("softmin", x);
  return softmax(neg(x), axis);
}

Tensor glu(const Tensor& x, int axis) {
  require_floating("glu", x);
  const int at = normal_axis(axis, x.rank(), "glu");
  const int64_t half = x.size(at) / 2;
  if (x.size(at) % 2)
    refuse("glu", "axis " + std::to_string(at) + " of " + x.shape().text() + " has an odd extent: it cannot be halved");
  if (are_halves(x)) return rounded_once(x, [&](const Tensor& wide) { return glu(wide, at); });
  return mul(slice(x, at, 0, half), sigmoid(slice(x, at, half, 2 * half)));
}

namespace {
// 1 at the largest element of each line, with the gradient of y.
Tensor largest_only(const Tensor& y, int axis) {
  const Tensor plain = y.detach(), at = argmax(plain, {axis}, true);
  const Tensor chosen = scatter_add(zeros_like(plain), axis, at, ones(at.shape(), y.dtype(), y.device()));
  return add(sub(chosen, plain), y);
}
}  // namespace

Tensor gumbel_softmax(const Tensor& x, double tau, bool hard, int axis) {
  require_floating("gumbel_softmax", x);
  const int at = normal_axis(axis, x.rank(), "gumbel_softmax");
  if (!(tau > 0)) refuse("gumbel_softmax", "tau is " + number_text(tau) + ": it must be positive");
  const Tensor wide = at_least_f32(x), drawn = exponential(x.shape(), 1, wide.dtype(), x.device());
  const Tensor noise = neg(log(maximum(drawn, 0x1p-25)));  // of a 0 it would be infinite
  const Tensor y = cast(softmax(div(add(wide, noise), tau), at), x.dtype());
  return hard ? largest_only(y, at) : y;
}

}  // namespace plugrad
