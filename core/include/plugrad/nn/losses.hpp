// Losses with their options, as functions of an output and a target: nn::CrossEntropyLoss{.label_smoothing = 0.1}(x, y), or
// as FitOptions::loss. plugrad/ops/losses.hpp, margin_losses.hpp and reduce.hpp define the losses and their errors.
#pragma once
#include <plugrad/ops/losses.hpp>
#include <plugrad/ops/margin_losses.hpp>

namespace plugrad::nn {

// A loss with the reduction as its only option.
template <Tensor (*function)(const Tensor& x, const Tensor& target, Reduction reduction)> struct LossOf {
  Reduction reduction = Reduction::mean;
  Tensor operator()(const Tensor& x, const Tensor& target) const { return function(x, target, reduction); }
};
using MSELoss = LossOf<plugrad::mse_loss>;
using L1Loss = LossOf<plugrad::l1_loss>;
using SoftMarginLoss = LossOf<plugrad::soft_margin_loss>;
using MultiLabelMarginLoss = LossOf<plugrad::multilabel_margin_loss>;

struct HuberLoss {
  Reduction reduction = Reduction::mean;
  double delta = 1;
  Tensor operator()(const Tensor& x, const Tensor& target) const { return huber_loss(x, target, reduction, delta); }
};
struct SmoothL1Loss {
  Reduction reduction = Reduction::mean;
  double beta = 1;
  Tensor operator()(const Tensor& x, const Tensor& target) const { return smooth_l1_loss(x, target, reduction, beta); }
};
struct CrossEntropyLoss {
  Tensor weight = {};
  std::optional<int64_t> ignore_index = -100;
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0;
  Tensor operator()(const Tensor& logits, const Tensor& targets) const {
    return cross_entropy(logits, targets, reduction, weight, ignore_index, label_smoothing);
  }
};
struct NLLLoss {
  Tensor weight = {};
  std::optional<int64_t> ignore_index = -100;
  Reduction reduction = Reduction::mean;
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return nll_loss(x, target, weight, ignore_index, reduction);
  }
};
struct BCELoss {
  Tensor weight = {};
  Reduction reduction = Reduction::mean;
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return binary_cross_entropy(x, target, weight, reduction);
  }
};
struct BCEWithLogitsLoss {
  Tensor weight = {};
  Reduction reduction = Reduction::mean;
  Tensor pos_weight = {};
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return binary_cross_entropy_with_logits(x, target, weight, pos_weight, reduction);
  }
};
struct KLDivLoss {
  Reduction reduction = Reduction::mean;
  bool log_target = false;
  Tensor operator()(const Tensor& x, const Tensor& target) const { return kl_div(x, target, reduction, log_target); }
};
struct PoissonNLLLoss {
  bool log_input = true, full = false;
  double eps = 1e-8;
  Reduction reduction = Reduction::mean;
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return poisson_nll_loss(x, target, log_input, full, eps, reduction);
  }
};
struct GaussianNLLLoss {
  bool full = false;
  double eps = 1e-6;
  Reduction reduction = Reduction::mean;
  Tensor operator()(const Tensor& x, const Tensor& target, const Tensor& var) const {
    return gaussian_nll_loss(x, target, var, full, eps, reduction);
  }
};
struct HingeEmbeddingLoss {
  double margin = 1;
  Reduction reduction = Reduction::mean;
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return hinge_embedding_loss(x, target, margin, reduction);
  }
};
struct MarginRankingLoss {
  double margin = 0;
  Reduction reduction = Reduction::mean;
  Tensor operator()(const Tensor& x1, const Tensor& x2, const Tensor& target) const {
    return margin_ranking_loss(x1, x2, target, margin, reduction);
  }
};
struct CosineEmbeddingLoss {
  double margin = 0;
  Reduction reduction = Reduction::mean;
  Tensor operator()(const Tensor& x1, const Tensor& x2, const Tensor& target) const {
    return cosine_embedding_loss(x1, x2, target, margin, reduction);
  }
};
struct TripletMarginLoss {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;
  Reduction reduction = Reduction::mean;
  Tensor operator()(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const {
    return triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction);
  }
};
struct MultiMarginLoss {
  int64_t p = 1;
  double margin = 1;
  Tensor weight = {};
  Reduction reduction = Reduction::mean;
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return multi_margin_loss(x, target, p, margin, weight, reduction);
  }
};
struct MultiLabelSoftMarginLoss {
  Tensor weight = {};
  Reduction reduction = Reduction::mean;
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return multilabel_soft_margin_loss(x, target, weight, reduction);
  }
};

}  // namespace plugrad::nn
