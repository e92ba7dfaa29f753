// Linear layers, embeddings, dropout and changes of shape. New parameters are f32 on the default device unless the
// constructor says otherwise.
#pragma once
#include <plugrad/nn/module.hpp>
#include <plugrad/ops/layers.hpp>

#include <optional>

namespace plugrad::nn {

// y = x W^T + b for x (.., in) -> (.., out); weight (out, in), bias (out). Both start uniform in +-1/sqrt(in), as in
// PyTorch.
class PLUGRAD_API Linear final : public Module {
 public:
  // Throws Error (invalid) for sizes below 1.
  Linear(int64_t in_features, int64_t out_features, bool bias = true, DType dtype = DType::f32,
         Device device = default_device());
  void members(Members& all) override;
  Tensor forward(const Tensor& x) const override;
  Tensor weight, bias;

 protected:
  std::string detail() const override;
};

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = std::nullopt;  // a row of initial value 0 without a gradient; may count from the end
  DType dtype = DType::f32;
  Device device = default_device();
};
// The rows of weight (n, d) at indices (i64, any shape): (.., d). The weight starts standard normal.
class PLUGRAD_API Embedding final : public Module {
 public:
  // Throws Error (invalid) for sizes below 1, and for a padding_idx out of range.
  Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options = {});
  void members(Members& all) override;
  Tensor forward(const Tensor& indices) const override;
  Tensor weight;

 protected:
  std::string detail() const override;

 private:
  std::optional<int64_t> padding_idx_;
};

// Returns x itself.
class PLUGRAD_API Identity final : public Module {
 public:
  Tensor forward(const Tensor& x) const override { return x; }
};

// Joins the axes start_dim .. end_dim into a single axis.
class PLUGRAD_API Flatten final : public Module {
 public:
  explicit Flatten(int start_dim = 1, int end_dim = -1) : start_dim_(start_dim), end_dim_(end_dim) {}
  Tensor forward(const Tensor& x) const override;

 private:
  int start_dim_, end_dim_;
};

// Splits the axis dim into axes of these extents; a single extent may be -1.
class PLUGRAD_API Unflatten final : public Module {
 public:
  Unflatten(int dim, Shape extents) : dim_(dim), extents_(std::move(extents)) {}
  Tensor forward(const Tensor& x) const override;

 private:
  int dim_;
  Shape extents_;
};

// While training, sets elements to 0 with probability p and divides the remaining elements by 1 - p; else it returns x.
// Dropout1d to Dropout3d drop whole channels of x (n, c, ..). Throws Error (invalid) for a p outside [0, 1].
template <Tensor (*function)(const Tensor& x, double p, bool training)> class DropoutOf : public Module {
 public:
  explicit DropoutOf(double p = 0.5) : p_(p) {}
  Tensor forward(const Tensor& x) const override { return function(x, p_, training()); }

 protected:
  std::string detail() const override { return "p=" + number_text(p_); }

 private:
  double p_;
};
class PLUGRAD_API Dropout final : public DropoutOf<plugrad::dropout> {
  using DropoutOf::DropoutOf;
};
class PLUGRAD_API Dropout1d final : public DropoutOf<plugrad::dropout1d> {
  using DropoutOf::DropoutOf;
};
class PLUGRAD_API Dropout2d final : public DropoutOf<plugrad::dropout2d> {
  using DropoutOf::DropoutOf;
};
class PLUGRAD_API Dropout3d final : public DropoutOf<plugrad::dropout3d> {
  using DropoutOf::DropoutOf;
};
// Dropout for SELU; it keeps mean and variance.
class PLUGRAD_API AlphaDropout final : public DropoutOf<plugrad::alpha_dropout> {
  using DropoutOf::DropoutOf;
};

}  // namespace plugrad::nn
