// Reductions over `axes`, or over all if none is given; negative axes count from the end. keepdim keeps them with extent 1.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// Sums of bool and integers are i64. The sum of no elements is 0.
PLUGRAD_API Tensor sum(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// f32 for integers and bools; their sum is an i64 and wraps. The mean of no elements is NaN.
PLUGRAD_API Tensor mean(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// The largest element; of bools: whether any is true. Ties share the gradient equally. Throws Error (invalid) for no
// elements.
PLUGRAD_API Tensor max(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// The smallest element; of bools: whether all are true. Ties share the gradient equally. Throws Error (invalid) for no
// elements.
PLUGRAD_API Tensor min(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// The same as max.
PLUGRAD_API Tensor amax(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// The same as min.
PLUGRAD_API Tensor amin(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
struct MinMax {
  Tensor min, max;
};
// Both.
PLUGRAD_API MinMax aminmax(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// The row-major index (i64), within the reduced axes, of the first largest element. Throws Error (invalid) for no elements.
PLUGRAD_API Tensor argmax(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns x - ln(sum(e^x)) along an axis.
PLUGRAD_API Tensor log_softmax(const Tensor& x, int axis = -1);

enum class Reduction { none, mean, sum, batchmean };  // batchmean: only of kl_div
// The negative log-likelihood of targets under the softmax of logits (n, c), (n, c, ..) or (c). targets are classes (i64) in
// the shape of logits without c, or probabilities in logits' shape and dtype. Reduction::none returns the shape without c.
// weight (c), if defined, multiplies the loss of each class. Targets equal to ignore_index give 0; the mean divides by the
// weights of the remaining targets, or, for probabilities, by the number of rows. label_smoothing mixes the targets with
// the uniform distribution.
PLUGRAD_API Tensor cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction = Reduction::mean,
                                 const Tensor& weight = {}, std::optional<int64_t> ignore_index = -100,
                                 double label_smoothing = 0);

}  // namespace plugrad
