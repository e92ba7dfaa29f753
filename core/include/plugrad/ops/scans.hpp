// Scans along an axis: sums, products and extremes of all elements up to and including each element, and differences of
// neighbours. Sums take a single pass over x on a device with the op; products, extremes, and sums on a device without the
// op take log2(n) passes for n elements along the axis.
#pragma once
#include <plugrad/ops/sorting.hpp>

namespace plugrad {

// Returns the sums of the elements up to each element. Sums of bools and integers are i64.
PLUGRAD_API Tensor cumsum(const Tensor& x, int axis);
// Returns the products of the elements up to each element. Products of bools and integers are i64, and wrap. The gradient is
// right at zeros.
PLUGRAD_API Tensor cumprod(const Tensor& x, int axis);
// Returns ln of the sums of e^x up to each element, without overflow. Floating dtypes.
PLUGRAD_API Tensor logcumsumexp(const Tensor& x, int axis);
// Returns the largest element so far, and the position of its last occurrence; once there is a NaN, the position of the last
// NaN. The gradient goes to the element at this position.
PLUGRAD_API ValuesIndices cummax(const Tensor& x, int axis);
// Returns the smallest element so far, and the position of its last occurrence; once there is a NaN, the position of the
// last NaN. The gradient goes to the element at this position.
PLUGRAD_API ValuesIndices cummin(const Tensor& x, int axis);
// Returns the differences between each element and its predecessor, n times, along an axis. prepend and append, if defined,
// are first concatenated before and after x. For bools: whether neighbours differ. The axis shrinks by n, but not below 0.
// Throws Error (invalid) for a negative n and for rank 0.
PLUGRAD_API Tensor diff(const Tensor& x, int64_t n = 1, int axis = -1, const Tensor& prepend = {},
                        const Tensor& append = {});

}  // namespace plugrad
