// Weights of 2, 4 or 8 bits an element, and products with them. A weight (n, k) is stored as codes and scales. codes
// (n, k bits / 8) is u8: element j of a row has the bits from (j bits) mod 8 on of byte (j bits) / 8. A row has groups of
// equal length, a multiple of 16. scales (n, groups, 2), f16 or f32, holds the scale s and the minimum m of each group: the
// element of code q is s q + m. scales (n, groups, 1) holds scales alone: the element is s (q - 2^(bits - 1)).
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

struct Quantized {
  Tensor codes, scales;
};
// Returns a weight (n, k) of a floating dtype in codes of 2, 4 or 8 bits, rounded to the nearest. The codes of a group span
// its smallest and largest element, or, if symmetric, plus and minus its largest magnitude. scale_dtype: f32, or f16 for
// weights whose scales and minima f16 holds well: magnitudes from 0.001 to 65504. Records nothing. Throws Error (invalid)
// for a group_size that is not a multiple of 16, or does not divide k.
PLUGRAD_API Quantized quantize(const Tensor& weight, int64_t bits = 4, int64_t group_size = 32, bool symmetric = false,
                               DType scale_dtype = DType::f16);
// Returns the weight (n, k) of codes of this many bits, computed in f32, or in f64 for f64. The gradient flows to
// scales. Throws Error (invalid) if the shapes do not fit, and for a dtype that is not floating.
PLUGRAD_API Tensor dequantize(const Tensor& codes, const Tensor& scales, int64_t bits, DType dtype = DType::f32);
// Returns x (.., k) times the transpose of a quantised weight (n, k): (.., n), in the floating dtype of x. The number of
// bits follows from k. Sums are computed in f32, or f64 for x in f64, and are rounded once; weights are not rounded to x's
// dtype. A row of x with an infinity, or with a number above 2^100, gives any numbers. The gradient flows to x, and to
// scales if they require it. Throws Error (invalid) if the shapes do not fit.
PLUGRAD_API Tensor quantized_matmul(const Tensor& x, const Tensor& codes, const Tensor& scales);
// Returns the product (.., m, k) x (.., k, n) -> (.., m, n) of u8 or i8 and of i8, in i32: exact, modulo 2^32. Batch extents
// broadcast. Throws Error (invalid) for other dtypes, and with both shapes if they do not fit.
PLUGRAD_API Tensor integer_matmul(const Tensor& a, const Tensor& b);

}  // namespace plugrad
