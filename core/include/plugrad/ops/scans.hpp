// Sums, products and extremes of all elements up to each element, along an axis, and differences of neighbours. Sums take a
// single pass over x on a device with the op; products, extremes, and sums on a device without it take log2(n) passes for n
// elements along the axis.
#pragma once
#include <plugrad/ops/sorting.hpp>

namespace plugrad {

// Sums of bools and integers are i64.
PLUGRAD_API Tensor cumsum(const Tensor& x, int axis);
// Products of bools and integers are i64, and wrap. The gradient is right at zeros.
PLUGRAD_API Tensor cumprod(const Tensor& x, int axis);
// ln of the sums of e^x, without overflow. Floating dtypes.
PLUGRAD_API Tensor logcumsumexp(const Tensor& x, int axis);
// The largest element so far, and the position of its last occurrence; once there is a NaN, the position of the last NaN.
// The gradient goes to the element at this position.
PLUGRAD_API ValuesIndices cummax(const Tensor& x, int axis);
// The smallest element so far, and the position of its last occurrence; once there is a NaN, the position of the last NaN.
// The gradient goes to the element at this position.
PLUGRAD_API ValuesIndices cummin(const Tensor& x, int axis);
// Each element less its predecessor, n times, along an axis of x with prepend before it and append after it, if they are
// defined. Of bools: whether they differ. The axis shrinks by n, but not below 0. Throws Error (invalid) for a negative n
// and for rank 0.
PLUGRAD_API Tensor diff(const Tensor& x, int64_t n = 1, int axis = -1, const Tensor& prepend = {},
                        const Tensor& append = {});

}  // namespace plugrad
