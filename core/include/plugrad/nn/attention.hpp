// Attention over several heads (Vaswani et al., 2017), and a layer of a transformer's encoder.
#pragma once
#include <plugrad/nn/layers.hpp>
#include <plugrad/nn/normalizations.hpp>

namespace plugrad::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;  // of the weights, while training
  bool bias = true;
  int64_t kdim = 0, vdim = 0;  // elements of a key and of a value; 0: as many as of a query
  bool batch_first = false;
  DType dtype = DType::f32;
  Device device = default_device();
};

struct AttentionOptions {
  Tensor key_padding_mask{};  // (n, s): true, or -inf, where a key has no weight
  bool need_weights = true;   // false computes without the matrix of weights, and faster
  Tensor attn_mask{};         // (l, s) or (n heads, l, s): true, or -inf, where a query does not see a key
  bool average_attn_weights = true;
  bool is_causal = false;  // query i sees the keys 0 .. i; without effect beside attn_mask: it states the mask's form
};

// output has the shape of query. weights are (n, l, s), or (n, heads, l, s) if not averaged; undefined without need_weights.
struct Attention {
  Tensor output, weights;
};

// The parameters of attention over several heads: in_proj_weight (3 embed_dim, embed_dim), or the three separate weights
// (embed_dim, ..) in place of it; biases may be undefined.
struct AttentionWeights {
  Tensor in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias;
};

// Projects query (l, n, embed_dim), key (s, n, kdim) and value (s, n, vdim), lets each head attend to its part, and projects
// the joined results. n comes first if batch_first, and may be left out. dropout applies always. Throws Error (invalid) if
// shapes do not fit.
PLUGRAD_API Attention multi_head_attention(const Tensor& query, const Tensor& key, const Tensor& value, int64_t num_heads,
                                           const AttentionWeights& weights, const AttentionOptions& options = {},
                                           double dropout = 0, bool batch_first = false);

class PLUGRAD_API MultiheadAttention final : public Module {
 public:
  // Throws Error (invalid) unless num_heads divides embed_dim.
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, const MultiheadAttentionOptions& options = {});
  void members(Members& all) override;
  // multi_head_attention with this module's parameters; dropout applies while training.
  Attention attend(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionOptions& options = {}) const;
  // Self-attention: attend(x, x, x).output.
  Tensor forward(const Tensor& x) const override;
  Tensor in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias;
  Linear out_proj;

 protected:
  std::string detail() const override;

 private:
  int64_t embed_dim_, num_heads_;
  MultiheadAttentionOptions options_;
};

struct TransformerEncoderLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  Tensor (*activation)(const Tensor& x) = nullptr;  // null: relu
  double layer_norm_eps = 1e-5;
  bool batch_first = false, norm_first = false, bias = true;
  DType dtype = DType::f32;
  Device device = default_device();
};

// Self-attention and a network of two linear layers, each with dropout, added to its input, and normalised.
class PLUGRAD_API TransformerEncoderLayer final : public Module {
 public:
  TransformerEncoderLayer(int64_t d_model, int64_t nhead, const TransformerEncoderLayerOptions& options = {});
  void members(Members& all) override;
  // x as MultiheadAttention's query; the options' need_weights is ignored.
  Tensor encode(const Tensor& x, AttentionOptions options) const;
  Tensor forward(const Tensor& x) const override { return encode(x, {}); }
  MultiheadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;

 private:
  Tensor attended(const Tensor& x, const AttentionOptions& options) const;
  Tensor fed_forward(const Tensor& x) const;
  TransformerEncoderLayerOptions options_;
};

}  // namespace plugrad::nn
