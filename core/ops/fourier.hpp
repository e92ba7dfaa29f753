// The op FFT, on real tensors: complex numbers are pairs along the last axis.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad::fourier {

struct Transform {
  uint32_t kind;  // PLUGRAD_FFT_FORWARD, ...
  int axis;       // from 0
  int64_t n;      // the length: what ends up or begins as n / 2 + 1 numbers counts as n
  double scale;
};

// Returns the transform of x, f32 or f64, and records it. It runs as the device's kernel, or as products with matrices.
Tensor transformed(const Tensor& x, const Transform& how);

// The same by products, unrecorded. A length is cut into factors; one with a large prime factor becomes a convolution.
Tensor composed(const Tensor& x, const Transform& how);

// Which of the n / 2 + 1 numbers of a half are their own conjugates, and so stand for one of the n numbers and not for two:
// bool (n / 2 + 1). It is made on the device, since a compiled step copies nothing from the host.
Tensor own_conjugates(int64_t n, Device device);

}  // namespace plugrad::fourier
