#include <plugrad/ops/layers.hpp>

#include <core/ops/argument.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <cmath>
#include <string>

namespace plugrad {
namespace {
void require_probability(const char* name, const Tensor& x, double p) {
  require_inexact(name, x);
  if (!(p >= 0 && p <= 1)) refuse(name, "p is " + number_text(p) + ": expected a probability, from 0 to 1");
}

// True where an element of this shape is dropped.
Tensor dropped(const Tensor& x, const Shape& shape, double p) { return lt(rand(shape, DType::f32, x.device()), p); }

Tensor with_dropped(const Tensor& x, const Tensor& mask, double p) { return where(mask, 0, p == 1 ? x : div(x, 1 - p)); }

// x's shape with extents of 1 behind the first `kept` axes.
Shape leading_shape(const Tensor& x, int kept) {
  Shape shape = x.shape();
  for (int i = kept; i < x.rank(); ++i) shape[static_cast<size_t>(i)] = 1;
  return shape;
}

// channels: the axis of the channels.
Tensor channels_dropped(const char* name, const Tensor& x, double p, bool training, int channels) {
  require_probability(name, x, p);
  return training && p > 0 ? with_dropped(x, dropped(x, leading_shape(x, channels + 1), p), p) : x;
}

void require_rank(const char* name, const Tensor& x, int low, int high) {
  require_defined(x, name);
  if (x.rank() < low || x.rank() > high)
    refuse(name,
           "x has shape " + x.shape().text() + ": expected rank " + std::to_string(low) + " or " + std::to_string(high));
}
}  // namespace

Tensor dropout(const Tensor& x, double p, bool training) {
  require_probability("dropout", x, p);
  return training && p > 0 ? with_dropped(x, dropped(x, x.shape(), p), p) : x;
}

Tensor dropout1d(const Tensor& x, double p, bool training) {
  require_rank("dropout1d", x, 2, 3);
  return channels_dropped("dropout1d", x, p, training, x.rank() - 2);
}
Tensor dropout2d(const Tensor& x, double p, bool training) {
  require_rank("dropout2d", x, 3, 4);
  return channels_dropped("dropout2d", x, p, training, 1);
}
Tensor dropout3d(const Tensor& x, double p, bool training) {
  require_rank("dropout3d", x, 4, 5);
  return channels_dropped("dropout3d", x, p, training, x.rank() - 4);
}

namespace {
// G. Klambauer et al., "Self-normalizing neural networks", 2017.
Tensor alpha_dropped(const char* name, const Tensor& x, double p, bool training, const Shape& shape) {
  constexpr double kLowest = -1.7580993408473766;  // selu(-infinity)
  require_probability(name, x, p);
  if (!training || p == 0) return x;
  if (p == 1) return mul(x, 0);
  const double scale = 1 / std::sqrt((1 - p) * (1 + p * kLowest * kLowest)), shift = -scale * kLowest * p;
  const Tensor mask = dropped(x, shape, p);
  return rounded_once(x, [&](const Tensor& wide) { return add(mul(where(mask, kLowest, wide), scale), shift); });
}
}  // namespace

Tensor alpha_dropout(const Tensor& x, double p, bool training) {
  require_defined(x, "alpha_dropout");
  return alpha_dropped("alpha_dropout", x, p, training, x.shape());
}
Tensor feature_alpha_dropout(const Tensor& x, double p, bool training) {
  require_defined(x, "feature_alpha_dropout");
  if (x.rank() < 2) refuse("feature_alpha_dropout", "x has shape " + x.shape().text() + ": expected (n, c, ..)");
  return alpha_dropped("feature_alpha_dropout", x, p, training, leading_shape(x, 2));
}

}  // namespace plugrad
