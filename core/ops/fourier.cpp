#include <core/ops/fourier.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/arithmetic.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad::fourier {
namespace {

Shape shape_of(const Tensor& x, const Transform& how) {
  Shape shape = x.shape();
  if (how.kind == PLUGRAD_FFT_REAL) shape.push_back(2);
  else if (how.kind == PLUGRAD_FFT_INVERSE_REAL) shape = Shape(std::span(view_of(x).shape, view_of(x).rank - 1u));
  shape[how.axis] = how.kind == PLUGRAD_FFT_REAL ? how.n / 2 + 1 : how.n;
  return shape;
}

Tensor computed(const Tensor& x, const Transform& how) {
  const NoGrad unrecorded;
  const Tensor out = empty(Op::FFT, device_of(x), shape_of(x, how), dtype_of(x));
  const plugrad_fft attributes{sizeof attributes, how.axis, how.kind, 0, how.scale};
  if (!out.count() || try_run(Op::FFT, {out}, {x}, attributes)) return out;
  count_decomposition(x);
  return composed(x, how);
}

// Pairs of a half, of which those that stand for two of the whole are multiplied by a factor.
Tensor with_inner(const Tensor& pairs, const Transform& how, double factor) {
  const Tensor is_own = own_conjugates(how.n, pairs.device());
  Shape shape;
  for (int i = 0; i < pairs.rank(); ++i) shape.push_back(i == how.axis ? is_own.size(0) : 1);
  return where(reshape(is_own, shape), pairs, mul(pairs, factor));
}

// The transposed transform: dL/dx from dL/dy.
Tensor transposed(const Tensor& grad, const Transform& how) {
  switch (how.kind) {
    case PLUGRAD_FFT_FORWARD: return transformed(grad, {PLUGRAD_FFT_BACKWARD, how.axis, how.n, how.scale});
    case PLUGRAD_FFT_BACKWARD: return transformed(grad, {PLUGRAD_FFT_FORWARD, how.axis, how.n, how.scale});
    case PLUGRAD_FFT_REAL:
      return transformed(with_inner(grad, how, 0.5), {PLUGRAD_FFT_INVERSE_REAL, how.axis, how.n, how.scale});
    default: return with_inner(transformed(grad, {PLUGRAD_FFT_REAL, how.axis, how.n, how.scale}), how, 2);
  }
}

}  // namespace

Tensor own_conjugates(int64_t n, Device device) {
  const Tensor j = arange(0, n / 2 + 1, 1, DType::i64, device);
  return logical_or(eq(j, 0), eq(mul(j, 2), n));
}

Tensor transformed(const Tensor& x, const Transform& how) {
  static constexpr auto kRule =
      rule("fft", gradient<kPayload>([](const Tensor& grad, const Transform& how) { return transposed(grad, how); }));
  return differentiable(kRule, how, computed(x, how), x);
}

}  // namespace plugrad::fourier
