// Losses that are 0 beyond a margin, and their smooth forms. Floating dtypes. For reduction see losses.hpp. Throws Error
// (invalid) with the shapes if they do not fit. Where a loss reaches 0, its gradient is 0.
#pragma once
#include <plugrad/ops/reduce.hpp>

namespace plugrad {

// Returns x where target is 1, and max(0, margin - x) where target is -1.
PLUGRAD_API Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin = 1,
                                        Reduction reduction = Reduction::mean);
// Returns max(0, margin - target (x1 - x2)). target is 1 where x1 should be the larger, else -1. x1, x2 and target
// broadcast.
PLUGRAD_API Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin = 0,
                                       Reduction reduction = Reduction::mean);
// Returns, for vectors x1 and x2, (n, d) or (d), of cosine c, 1 - c where target (n) is 1, and max(0, c - margin) where
// target is -1.
PLUGRAD_API Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin = 0,
                                         Reduction reduction = Reduction::mean);
// Returns max(0, margin + d(anchor, positive) - d(anchor, negative)) for d = pairwise_distance. swap: d(positive, negative)
// counts in place of d(anchor, negative) where it is smaller.
PLUGRAD_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                       double margin = 1, double p = 2, double eps = 1e-6, bool swap = false,
                                       Reduction reduction = Reduction::mean);
// Returns the mean over the c classes i of max(0, margin - x[t] + x[i])^p weight[t], where i = t adds nothing, for the class
// t in target, integers (n) or (). x (n, c) or (c); p is 1 or 2; weight (c).
PLUGRAD_API Tensor multi_margin_loss(const Tensor& x, const Tensor& target, int64_t p = 1, double margin = 1,
                                     const Tensor& weight = {}, Reduction reduction = Reduction::mean);
// Returns the sum over all targets j and all remaining classes i of max(0, 1 - x[j] + x[i]) / c. x (n, c) or (c); target,
// integers of x's shape, lists the targets of each row before the first -1.
PLUGRAD_API Tensor multilabel_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
// Returns ln(1 + e^(-target x)), where target is 1 or -1.
PLUGRAD_API Tensor soft_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
// Returns the mean over the last axis of -(target ln(p) + (1 - target) ln(1 - p)) weight for p = sigmoid(x).
PLUGRAD_API Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& target, const Tensor& weight = {},
                                               Reduction reduction = Reduction::mean);

}  // namespace plugrad
