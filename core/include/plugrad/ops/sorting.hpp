// Order along an axis. NaN is larger than every number, -0 equals 0, false is smaller than true, and equal elements keep
// their order. Negative axes count from the end; rank 0 counts as 1 element. Indices are i64 and have no gradient; the
// gradient of a value goes to the element at its index. In Python, axis= in place of dim= gives the values without the
// indices.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <concepts>

namespace plugrad {

// Elements of a tensor, and their positions along an axis.
struct ValuesIndices {
  Tensor values, indices;
};

// Returns the positions that sort x along an axis. The order is stable also if stable is false.
PLUGRAD_API Tensor argsort(const Tensor& x, int axis = -1, bool descending = false, bool stable = false);
// Returns x sorted along an axis, and the elements' former positions.
PLUGRAD_API ValuesIndices sort(const Tensor& x, int axis = -1, bool descending = false, bool stable = false);
// Returns x sorted along its first axis.
PLUGRAD_API Tensor msort(const Tensor& x);
// Returns the k largest (or smallest) elements along an axis, sorted also if `sorted` is false. Throws Error (invalid) for a
// k below 0 or above the extent.
PLUGRAD_API ValuesIndices topk(const Tensor& x, int64_t k, int axis = -1, bool largest = true, bool sorted = true);
// Returns the k-th smallest element along an axis, counted from 1. Throws Error (invalid) for a k below 1 or above the
// extent.
PLUGRAD_API ValuesIndices kthvalue(const Tensor& x, int64_t k, int axis = -1, bool keepdim = false);

// Returns the largest element along an axis, and the position of its first occurrence; if x has a NaN, NaN and the position
// of the first NaN. In Python this function is max with a single number as dim. Throws Error (invalid) for no elements.
PLUGRAD_API ValuesIndices max_with_indices(const Tensor& x, int axis, bool keepdim = false);
// Returns the smallest element along an axis, and the position of its first occurrence; if x has a NaN, NaN and the position
// of the first NaN. In Python this function is min with a single number as dim. Throws Error (invalid) for no elements.
PLUGRAD_API ValuesIndices min_with_indices(const Tensor& x, int axis, bool keepdim = false);
template <std::same_as<int> Axis> ValuesIndices max(const Tensor& x, Axis axis, bool keepdim = false) {
  return max_with_indices(x, axis, keepdim);
}
template <std::same_as<int> Axis> ValuesIndices min(const Tensor& x, Axis axis, bool keepdim = false) {
  return min_with_indices(x, axis, keepdim);
}

// Returns the middle element of the sorted elements; of an even number of elements, the lower of the two middle elements.
// NaN if there is a NaN or if there are no elements. In the form without an axis, all elements equal to the result share the
// gradient.
PLUGRAD_API Tensor median(const Tensor& x);
PLUGRAD_API ValuesIndices median(const Tensor& x, int axis, bool keepdim = false);
// Returns the median of the elements except NaN; NaN if all elements are NaN.
PLUGRAD_API Tensor nanmedian(const Tensor& x);
PLUGRAD_API ValuesIndices nanmedian(const Tensor& x, int axis, bool keepdim = false);
// Returns the most frequent element along an axis, and the position of its last occurrence; of several such elements, the
// smallest. NaN equals nothing. Throws Error (invalid) for no elements.
PLUGRAD_API ValuesIndices mode(const Tensor& x, int axis = -1, bool keepdim = false);

}  // namespace plugrad
