// Vectors of the algorithms as tensors of the caller's function, and back.
#pragma once
#include <core/optimize/vectors.hpp>
#include <plugrad/optimize/minimize.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <string>

namespace plugrad::optimize {

// The elements of a floating tensor.
Vector elements_of(const Tensor& x);

// The shape, dtype and device of x0, in which the caller's functions take x. name: of the public function, for errors.
class Places {
 public:
  // Throws Error (invalid) unless x0 is a floating tensor with elements.
  Places(const Tensor& x0, const char* name);
  Tensor tensor_of(const Vector& x) const;
  // The elements of a result in x's shape. Throws Error (invalid) for another number of elements.
  Vector like_x(const Tensor& result, const char* what) const;
  // As like_x, but a single element serves for all, and an undefined tensor gives `otherwise`.
  Vector spread(const Tensor& given, const char* what, double otherwise) const;
  size_t count() const { return static_cast<size_t>(count_); }
  DType dtype() const { return dtype_; }
  [[noreturn]] void refuse(const std::string& text) const;

 private:
  Shape shape_;
  DType dtype_;
  Device device_;
  int64_t count_;
  const char* name_;
};

// Bounds of x by element. In f32 they are rounded inwards, so that x lies within them.
struct Box {
  Box(const Places& places, const Bounds& bounds);
  // Whether x has no bounds.
  bool is_open() const;
  Vector lower, upper;
};

// A tensor (rows, columns) of f64 on a device that factors matrices: on x0's device, if it does, or on a device in host
// memory. Throws Error (unsupported) if there is none.
Tensor factorable(const Matrix& matrix);

// The rows of the unit matrix of n = like.count(), each in the shape of `like`: n x like's shape.
Tensor unit_vectors_like(const Tensor& like);

}  // namespace plugrad::optimize
