// Reductions over `axes`, or over all axes if `axes` is empty; negative axes count from the end. keepdim keeps the reduced
// axes with extent 1.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// Returns the sum of the elements. Sums of bools and integers are i64. The sum of no elements is 0.
PLUGRAD_API Tensor sum(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns the mean of the elements, f32 for integers and bools. Integers and bools are summed as i64, which wraps. The mean
// of no elements is NaN.
PLUGRAD_API Tensor mean(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns the largest element; for bools whether any element is true. Equal largest elements share the gradient equally.
// Throws Error (invalid) for no elements.
PLUGRAD_API Tensor max(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns the smallest element; for bools whether all elements are true. Equal smallest elements share the gradient equally.
// Throws Error (invalid) for no elements.
PLUGRAD_API Tensor min(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns the same as max.
PLUGRAD_API Tensor amax(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns the same as min.
PLUGRAD_API Tensor amin(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
struct MinMax {
  Tensor min, max;
};
// Returns the smallest and the largest element: see min and max.
PLUGRAD_API MinMax aminmax(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns the row-major index (i64), within the reduced axes, of the first largest element. Throws Error (invalid) for no
// elements.
PLUGRAD_API Tensor argmax(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns x - ln(sum(e^x)) along an axis.
PLUGRAD_API Tensor log_softmax(const Tensor& x, int axis = -1);

enum class Reduction { none, mean, sum, batchmean };  // batchmean: only for kl_div
// Returns the negative log-likelihood of targets under the softmax of logits (n, c), (n, c, ..) or (c). targets are classes
// (i64) in the shape of logits without c, or floating probabilities in logits' shape. Reduction::none returns the shape
// without c. weight (c), if defined, multiplies the loss of each class. Targets equal to ignore_index give 0; the mean
// divides by the weights of the remaining targets, or, for probabilities, by the number of rows. label_smoothing mixes the
// targets with the uniform distribution.
PLUGRAD_API Tensor cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction = Reduction::mean,
                                 const Tensor& weight = {}, std::optional<int64_t> ignore_index = -100,
                                 double label_smoothing = 0);

}  // namespace plugrad
