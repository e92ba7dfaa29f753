#include <core/optimize/places.hpp>

#include <core/runtime/dispatch/linalg.hpp>
#include <core/runtime/plugins/registry.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <cmath>
#include <utility>

namespace plugrad::optimize {

Vector elements_of(const Tensor& x) {
  if (x.dtype() == DType::f64) return x.to_vector<double>();
  const std::vector<float> elements = (x.dtype() == DType::f32 ? x : cast(x, DType::f32)).to_vector<float>();
  return Vector(elements.begin(), elements.end());
}

Places::Places(const Tensor& x0, const char* name) : name_(name) {
  if (!x0.defined() || !is_floating(x0.dtype()) || x0.count() == 0)
    refuse("x0 is " + (x0.defined() ? dtype_name(x0.dtype()) + (" " + x0.shape().text()) : std::string("undefined")) +
           ": expected a floating tensor with elements");
  shape_ = x0.shape();
  dtype_ = x0.dtype();
  device_ = x0.device();
  count_ = x0.count();
}

void Places::refuse(const std::string& text) const { throw Error(Code::invalid, std::string("[") + name_ + "] " + text); }

Tensor Places::tensor_of(const Vector& x) const {
  if (dtype_ == DType::f64) return Tensor::from(x, shape_, device_);
  const Tensor single = Tensor::from(std::vector<float>(x.begin(), x.end()), shape_, device_);
  return dtype_ == DType::f32 ? single : cast(single, dtype_);
}

Vector Places::like_x(const Tensor& result, const char* what) const {
  if (!result.defined() || result.count() != count_)
    refuse(std::string(what) + " has " + (result.defined() ? "the shape " + result.shape().text() : "no elements") +
           ": expected x's shape " + shape_.text());
  return elements_of(result);
}

Vector Places::spread(const Tensor& given, const char* what, double otherwise) const {
  if (!given.defined()) return Vector(count(), otherwise);
  if (given.count() == 1) return Vector(count(), given.item<double>());
  return like_x(given, what);
}

namespace {
// The f32 next to a bound on the inner side.
double rounded(double bound, double inner) {
  const float single = static_cast<float>(bound);
  if (static_cast<double>(single) == bound || !std::isfinite(bound)) return bound;
  const bool is_outside = (static_cast<double>(single) < bound) == (inner > bound);
  return static_cast<double>(is_outside ? std::nextafter(single, static_cast<float>(inner)) : single);
}
}  // namespace

Box::Box(const Places& places, const Bounds& bounds)
    : lower(places.spread(bounds.lower, "the lower bound", -kInfinity)),
      upper(places.spread(bounds.upper, "the upper bound", kInfinity)) {
  for (size_t i = 0; i < lower.size(); ++i)
    if (!(lower[i] <= upper[i]))
      places.refuse("the lower bound of element " + std::to_string(i) + " is " + std::to_string(lower[i]) +
                    ", its upper bound is " + std::to_string(upper[i]) + ": expected lower <= upper");
  if (places.dtype() != DType::f32) return;
  for (size_t i = 0; i < lower.size(); ++i) {
    const double low = rounded(lower[i], kInfinity), high = rounded(upper[i], -kInfinity);
    if (low <= high) lower[i] = low, upper[i] = high;
  }
}

bool Box::is_open() const {
  for (size_t i = 0; i < lower.size(); ++i)
    if (std::isfinite(lower[i]) || std::isfinite(upper[i])) return false;
  return true;
}

Tensor factorable(const Matrix& matrix) {
  DeviceState* const host = Registry::get().host_device(PLUGRAD_AS_FALLBACK, nullptr, PLUGRAD_LINALG);
  if (!host || !linear_algebra::find(*host))
    throw Error(Code::unsupported, "[optimize] no plugin with a device in host memory has '" PLUGRAD_LINALG
                                   "', which factors matrices: load one, such as the plugin for CPUs");
  const Shape shape{static_cast<int64_t>(matrix.rows), static_cast<int64_t>(matrix.columns)};
  return Tensor::from(matrix.elements, shape, Device(host));
}

Tensor unit_vectors_like(const Tensor& like) {
  const int64_t n = like.count();
  Shape shape{n};
  for (int i = 0; i < like.rank(); ++i) shape.push_back(like.shape()[i]);
  return reshape(eye(n, n, like.dtype(), like.device()), shape);
}

}  // namespace plugrad::optimize
