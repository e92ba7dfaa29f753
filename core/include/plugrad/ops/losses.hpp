// Losses. The operands have the same floating dtype, and the same shape unless the comment says otherwise. Reduction::none
// returns the loss of each element; mean and sum reduce all losses. Throws Error (invalid) with the differing dtypes or
// shapes.
#pragma once
#include <plugrad/ops/reduce.hpp>

namespace plugrad {

// Returns (x - target)^2.
PLUGRAD_API Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
// Returns |x - target|. The gradient is 0 where x equals target.
PLUGRAD_API Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
// Returns (x - target)^2 / 2 where |x - target| is at most delta, else delta (|x - target| - delta / 2).
PLUGRAD_API Tensor huber_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                              double delta = 1);
// Returns (x - target)^2 / (2 beta) where |x - target| is below beta, else |x - target| - beta / 2. beta 0 gives l1_loss.
PLUGRAD_API Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                                  double beta = 1);
// Returns -(target ln(x) + (1 - target) ln(1 - x)) weight for probabilities x. Logarithms below -100 count as -100; weight
// broadcasts to x. The derivative divides by 1e-12 at least, so the derivative is finite at x = 0 and 1.
PLUGRAD_API Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const Tensor& weight = {},
                                        Reduction reduction = Reduction::mean);
// Returns -(pos_weight target ln(p) + (1 - target) ln(1 - p)) weight for p = sigmoid(x), without overflow. weight and
// pos_weight broadcast to x and are 1 if undefined.
PLUGRAD_API Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const Tensor& weight = {},
                                                    const Tensor& pos_weight = {}, Reduction reduction = Reduction::mean);
// Returns the negative log-likelihood of the counts target under Poisson distributions. With log_input their mean is e^x,
// and the loss is e^x - target x; without log_input the mean is x, and the loss is x - target ln(x + eps). full adds
// Stirling's approximation of ln(target!) for targets above 1.
PLUGRAD_API Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, bool log_input = true, bool full = false,
                                    double eps = 1e-8, Reduction reduction = Reduction::mean);
// Returns the negative log-likelihood of target under normal distributions of mean x and variance var: (ln(v) + (x -
// target)^2 / v) / 2, where v is var, but eps at least; this limit does not change the gradient. x, target and var
// broadcast. full adds ln(2 pi) / 2.
PLUGRAD_API Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var, bool full = false,
                                     double eps = 1e-6, Reduction reduction = Reduction::mean);
// Returns target (ln(target) - x), where x holds logarithms of probabilities; 0 where target is 0. With log_target, target
// holds logarithms too. The mean is over all elements; Reduction::batchmean divides the sum by the extent of the first axis.
PLUGRAD_API Tensor kl_div(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                          bool log_target = false);
// Returns -weight[t] x[t] for the class t in target (i64), where x (n, c), (n, c, ..) or (c) holds logarithms of
// probabilities and target has the shape of x without c. Targets equal to ignore_index give 0. The mean divides by the
// weights of the remaining targets. A class out of range is an Error (index_error); some devices report it later.
PLUGRAD_API Tensor nll_loss(const Tensor& x, const Tensor& target, const Tensor& weight = {},
                            std::optional<int64_t> ignore_index = -100, Reduction reduction = Reduction::mean);

}  // namespace plugrad
