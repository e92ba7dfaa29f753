// Distinct elements, and positions in sorted sequences. Indices and counts are i64. NaN equals nothing, not even NaN.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>
#include <vector>

namespace plugrad {

// The distinct elements or slices; inverse: for each element its position among the distinct elements; counts: the number of
// times that each distinct element occurs. inverse and counts are undefined unless requested.
struct Unique {
  Tensor values, inverse, counts;
};
// The distinct elements of x, sorted also if `sorted` is false; with an axis the distinct slices of the axis, ordered by
// their first different elements. In Python it returns values alone, or a tuple of the requested tensors. Waits for the
// device. With an axis it sorts once for each element of a slice.
PLUGRAD_API Unique unique(const Tensor& x, bool sorted = true, bool return_inverse = false, bool return_counts = false,
                          std::optional<int64_t> axis = std::nullopt);
// Joins only equal neighbours, and keeps the order; the results are those of unique. Waits for the device.
PLUGRAD_API Unique unique_consecutive(const Tensor& x, bool return_inverse = false, bool return_counts = false,
                                      std::optional<int64_t> axis = std::nullopt);

// Returns whether each element is among test_elements, or with invert whether it is not. assume_unique changes nothing.
PLUGRAD_API Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique = false,
                        bool invert = false);
PLUGRAD_API Tensor isin(const Tensor& elements, Number test_elements, bool assume_unique = false, bool invert = false);

enum class Side { left, right };
// Returns the position at which each of values can be inserted to keep the last axis of sorted_sequence sorted: the first
// such position, or with right (or side right) the last. The sequence has 1 axis, and values any shape; or the sequence and
// values have the same axes but the last. NaN is larger than every number. out_int32 gives i32. Throws Error (invalid) for
// other shapes.
PLUGRAD_API Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values, bool out_int32 = false,
                                bool right = false, Side side = Side::left);
PLUGRAD_API Tensor searchsorted(const Tensor& sorted_sequence, Number values, bool out_int32 = false, bool right = false,
                                Side side = Side::left);
// Returns positions in a single sequence of boundaries: i where boundaries[i - 1] < x <= boundaries[i]; with right where
// boundaries[i - 1] <= x < boundaries[i].
PLUGRAD_API Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool out_int32 = false, bool right = false);

// Returns the number of elements of x in each of `bins` parts of equal width between min and max, in x's dtype. max belongs
// to the last part; elements outside and NaN do not count. If min and max are both 0, they are the smallest and the largest
// element. Floating dtypes. Throws Error (invalid) for fewer than 1 bins, for max below min, and for infinite or NaN ends.
// May wait for the device.
PLUGRAD_API Tensor histc(const Tensor& x, int64_t bins = 100, double min = 0, double max = 0);
struct Histogram {
  Tensor hist, bin_edges;
};
// Returns the number of elements of x, or the sum of their weights, between each pair of neighbouring edges, and the edges.
// The last part contains its upper edge; elements outside and NaN do not count. `bins` is the number of parts of equal width
// between the two numbers of `range`, or by default between the smallest and the largest element; or `bins` holds the
// ascending edges. density divides by the sum and by the widths. Floating dtypes. Throws Error (invalid) for fewer than 1
// bins, for shapes that do not fit, and for infinite or NaN ends or ends in the wrong order.
PLUGRAD_API Histogram histogram(const Tensor& x, int64_t bins, const std::vector<double>& range = {},
                                const Tensor& weight = {}, bool density = false);
PLUGRAD_API Histogram histogram(const Tensor& x, const Tensor& bins, const Tensor& weight = {}, bool density = false);
// Returns the number of times that each number from 0 to max(x, minlength - 1) occurs in x, which has rank 1 and an integer
// dtype. With weights, returns the sums of the weights for each number, in the dtype of weights, or f64 if it is not
// floating. Gradients flow to weights. Throws Error (invalid) for shapes that do not fit and for negative elements. Waits
// for the device. A compiled step counts to minlength - 1, which it needs, and other elements are out of range.
PLUGRAD_API Tensor bincount(const Tensor& x, const Tensor& weights = {}, int64_t minlength = 0);

}  // namespace plugrad
