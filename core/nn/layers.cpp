#include <plugrad/nn/layers.hpp>

#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <cmath>

namespace plugrad::nn {

Linear::Linear(int64_t in_features, int64_t out_features, bool with_bias, DType dtype, Device device) {
  if (in_features < 1 || out_features < 1)
    throw Error(Code::invalid, "[linear] sizes must be at least 1: in " + std::to_string(in_features) + ", out " +
                                   std::to_string(out_features));
  const double bound = 1 / std::sqrt(static_cast<double>(in_features));
  weight = rand({out_features, in_features}, dtype, device, -bound, bound).requires_grad_();
  if (with_bias) bias = rand({out_features}, dtype, device, -bound, bound).requires_grad_();
}

void Linear::members(Members& all) { all("weight", weight), all("bias", bias); }

Tensor Linear::forward(const Tensor& x) const { return plugrad::linear(x, weight, bias); }

std::string Linear::detail() const {
  return std::to_string(weight.size(1)) + ", " + std::to_string(weight.size(0)) + (bias.defined() ? "" : ", bias=false");
}

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options)
    : padding_idx_(options.padding_idx) {
  if (num_embeddings < 1 || embedding_dim < 1)
    throw Error(Code::invalid, "[embedding] sizes must be at least 1: " + std::to_string(num_embeddings) + " rows of " +
                                   std::to_string(embedding_dim));
  weight = randn({num_embeddings, embedding_dim}, options.dtype, options.device);
  if (padding_idx_) {
    const int64_t row = *padding_idx_ < 0 ? *padding_idx_ + num_embeddings : *padding_idx_;
    if (row < 0 || row >= num_embeddings)
      throw Error(Code::invalid, "[embedding] padding_idx " + std::to_string(*padding_idx_) + " is out of range for " +
                                     std::to_string(num_embeddings) + " rows");
    slice(weight, 0, row, row + 1).fill_(0);
  }
  weight.requires_grad_();
}

void Embedding::members(Members& all) { all("weight", weight); }

Tensor Embedding::forward(const Tensor& indices) const { return plugrad::embedding(weight, indices, padding_idx_); }

std::string Embedding::detail() const { return std::to_string(weight.size(0)) + ", " + std::to_string(weight.size(1)); }

Tensor Flatten::forward(const Tensor& x) const { return flatten(x, start_dim_, end_dim_); }

Tensor Unflatten::forward(const Tensor& x) const { return unflatten(x, dim_, extents_); }

}  // namespace plugrad::nn
