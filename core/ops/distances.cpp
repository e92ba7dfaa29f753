#include <plugrad/ops/distances.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/autocast_rules.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/statistics.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <algorithm>

#include <cmath>
#include <string>

namespace plugrad {
namespace {
// f of both, in their common dtype, rounded once. The dtype must be floating.
template <class F> Tensor of_vectors(const char* name, const Tensor& a, const Tensor& b, F f) {
  require_inexact(name, a);
  require_inexact(name, b);
  const DType dtype = promote_types(a.dtype(), b.dtype());
  return is_complex(dtype) ? f(cast(a, dtype), cast(b, dtype))
                           : cast(f(at_least_f32(cast(a, dtype)), at_least_f32(cast(b, dtype))), dtype);
}
}  // namespace

Tensor dist(const Tensor& x, const Tensor& y, double p) {
  if (autocasting()) [[unlikely]]
    return in_f32(dist, x, y, p);
  return of_vectors("dist", x, y, [&](const Tensor& a, const Tensor& b) { return norm(sub(a, b), p); });
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  if (autocasting()) [[unlikely]]
    return in_f32(pairwise_distance, x1, x2, p, eps, keepdim);
  return of_vectors("pairwise_distance", x1, x2, [&](const Tensor& a, const Tensor& b) {
    const Tensor difference = add(sub(a, b), eps);
    if (!difference.rank()) return norm(difference, p);
    return norm(difference, p, {-1}, keepdim);
  });
}

// --- All pairs.

namespace {
// (x - y)^2 = x^2 + y^2 - 2 x y. Where rounding leaves nothing, the distance and its gradient are 0.
Tensor euclidean_by_product(const Tensor& a, const Tensor& b) {
  const Tensor squares = add(sum(mul(a, a), {-1}, true), transpose(sum(mul(b, b), {-1}, true)));
  const Tensor square = sub(squares, mul(matmul(a, transpose(b)), 2)), none = le(square, 0);
  return where(none, 0, sqrt(where(none, 1, square)));
}

// The largest |x| along the last axis. Unlike in max, ties do not share the gradient: each gets the whole gradient.
Tensor largest_of_last(const Tensor& x) {
  Tensor largest, chosen;
  {
    const NoGrad constant;
    const Tensor size = abs(x), kept = max(size, {-1}, true);
    largest = squeeze(kept, {-1});
    chosen = mul(sign(x), cast(eq(size, kept), x.dtype()));
  }
  const Tensor moved = sub(x, x.detach());  // 0, with the gradient of x
  return add(largest, sum(mul(moved, chosen), {-1}));
}

Tensor row_distances(const Tensor& a, const Tensor& b, double p) {
  if (p == 2 && (a.size(-2) > 25 || b.size(-2) > 25)) return euclidean_by_product(a, b);
  const Tensor differences = sub(unsqueeze(a, -2), unsqueeze(b, -3));
  if (!a.size(-1)) return sum(differences, {-1});
  return std::isinf(p) ? largest_of_last(differences) : norm(differences, p, {-1});
}
}  // namespace

Tensor cdist(const Tensor& x1, const Tensor& x2, double p) {
  if (autocasting()) [[unlikely]]
    return in_f32(cdist, x1, x2, p);
  require_floating("cdist", x1);
  require_floating("cdist", x2);
  if (x1.rank() < 2 || x2.rank() < 2 || x1.size(-1) != x2.size(-1))
    refuse("cdist", "x1 is " + x1.shape().text() + " and x2 " + x2.shape().text() + ": expected (.., n, m) and (.., k, m)");
  if (!(p >= 0)) refuse("cdist", "p is " + number_text(p) + ": expected 0 or more");
  return of_vectors("cdist", x1, x2, [&](const Tensor& a, const Tensor& b) { return row_distances(a, b, p); });
}

// --- Directions.

namespace {
// The length along an axis, at least eps. As in PyTorch, the gradient is the gradient of the length itself.
Tensor length_of(const Tensor& x, int axis, double eps) {
  const Tensor length = norm(x, 2, {axis}, true), plain = length.detach();
  return add(length, sub(maximum(plain, eps), plain));
}
}  // namespace

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int axis, double eps) {
  if (autocasting()) [[unlikely]]
    return in_f32(cosine_similarity, x1, x2, axis, eps);
  require_real("cosine_similarity", x1);
  require_real("cosine_similarity", x2);
  return of_vectors("cosine_similarity", x1, x2, [&](const Tensor& x, const Tensor& y) {
    const Shape shape = broadcast_shapes(x.shape(), y.shape());
    const Tensor a = expand(x, shape), b = expand(y, shape);
    const int at = normal_axis(axis, std::max(shape.rank(), 1), "cosine_similarity");
    return sum(mul(div(a, length_of(a, at, eps)), div(b, length_of(b, at, eps))), {at});
  });
}

Tensor normalize(const Tensor& x, double p, int axis, double eps) {
  if (autocasting()) [[unlikely]]
    return in_f32(normalize, x, p, axis, eps);
  require_inexact("normalize", x);
  const int at = normal_axis(axis, std::max(x.rank(), 1), "normalize");
  const Tensor wide = at_least_f32(x);
  return cast(div(wide, clamp(norm(wide, p, {at}, true), eps)), x.dtype());
}

Tensor renorm(const Tensor& x, double p, int axis, double maxnorm) {
  if (autocasting()) [[unlikely]]
    return in_f32(renorm, x, p, axis, maxnorm);
  require_inexact("renorm", x);
  if (x.rank() < 2) refuse("renorm", "x has shape " + x.shape().text() + ": expected two axes or more");
  if (!(p > 0) || !(maxnorm >= 0)) refuse("renorm", "p must be positive, and maxnorm not negative");
  Shape others;
  for (int i = 0, at = normal_axis(axis, x.rank(), "renorm"); i < x.rank(); ++i)
    if (i != at) others.push_back(i);
  const Tensor wide = at_least_f32(x), size = norm(wide, p, others, true);
  return cast(mul(wide, where(gt(size, maxnorm), div(maxnorm, add(size, 1e-7)), 1)), x.dtype());
}

}  // namespace plugrad
