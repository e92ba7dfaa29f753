// Equal elements, and places in sorted sequences. Indices and counts are i64. NaN equals nothing, not even NaN.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>
#include <vector>

namespace plugrad {

// The distinct elements or slices; inverse: for each element its place among them; counts: how often each occurs. inverse
// and counts are undefined unless requested.
struct Unique {
  Tensor values, inverse, counts;
};
// The distinct elements of x, sorted also if `sorted` is false; with an axis the distinct slices of the axis, in the order
// of their first different elements. In Python it returns values alone, or a tuple of the requested tensors. Waits for the
// device. With an axis it sorts once for each element of a slice.
PLUGRAD_API Unique unique(const Tensor& x, bool sorted = true, bool return_inverse = false, bool return_counts = false,
                          std::optional<int64_t> axis = std::nullopt);
// The same, but only equal neighbours are joined, and the order stays. Waits for the device.
PLUGRAD_API Unique unique_consecutive(const Tensor& x, bool return_inverse = false, bool return_counts = false,
                                      std::optional<int64_t> axis = std::nullopt);

// Whether each element is among test_elements; with invert, whether it is not. assume_unique changes nothing.
PLUGRAD_API Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique = false,
                        bool invert = false);
PLUGRAD_API Tensor isin(const Tensor& elements, Number test_elements, bool assume_unique = false, bool invert = false);

enum class Side { left, right };
// The place at which each of values would have to be inserted to keep the last axis of sorted_sequence sorted: the first
// such place, or with right (or side right) the last. The sequence has 1 axis, and values any shape; or both have the same
// axes but the last. NaN is larger than every number. out_int32 gives i32. Throws Error (invalid) for other shapes.
PLUGRAD_API Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values, bool out_int32 = false,
                                bool right = false, Side side = Side::left);
PLUGRAD_API Tensor searchsorted(const Tensor& sorted_sequence, Number values, bool out_int32 = false, bool right = false,
                                Side side = Side::left);
// The same with a single sequence of boundaries: i where boundaries[i - 1] < x <= boundaries[i]; with right where
// boundaries[i - 1] <= x < boundaries[i].
PLUGRAD_API Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool out_int32 = false, bool right = false);

// How many elements of x are in each of `bins` parts of equal width between min and max, in x's dtype; max belongs to the
// last part, and elements outside and NaN to none. If min and max are both 0, they are the smallest and the largest element.
// Floating dtypes. Throws Error (invalid) for fewer than 1 bins, for max below min, and for infinite or NaN ends. May wait
// for the device.
PLUGRAD_API Tensor histc(const Tensor& x, int64_t bins = 100, double min = 0, double max = 0);
struct Histogram {
  Tensor hist, bin_edges;
};
// The number of elements of x, or the sum of their weights, between each pair of neighbouring edges, and the edges; the last
// part contains its upper edge, and elements outside and NaN are in none. `bins` are parts of equal width between `range`,
// two numbers, or without it between the smallest and the largest element; or the ascending edges themselves. density
// divides by the sum and by the widths. Floating dtypes. Throws Error (invalid) for fewer than 1 bins, for unfit shapes, and
// for infinite or NaN ends or ends in the wrong order.
PLUGRAD_API Histogram histogram(const Tensor& x, int64_t bins, const std::vector<double>& range = {},
                                const Tensor& weight = {}, bool density = false);
PLUGRAD_API Histogram histogram(const Tensor& x, const Tensor& bins, const Tensor& weight = {}, bool density = false);
// How often each of 0 .. max(x, minlength - 1) occurs in x, of rank 1 and an integer dtype; or the sum of the weights where
// it occurs, in their dtype, or f64 if their dtype is not floating. Gradients flow to weights. Throws Error (invalid) for
// unfit shapes and for negative elements. Waits for the device.
PLUGRAD_API Tensor bincount(const Tensor& x, const Tensor& weights = {}, int64_t minlength = 0);

}  // namespace plugrad
