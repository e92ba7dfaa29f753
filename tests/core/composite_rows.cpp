// Gradients of functions that are composed of other ops.
#include <tests/core/gradient_rows.hpp>

#include <cmath>

namespace plugrad::test {
namespace {
constexpr double kLow = -2, kHigh = 2;
using Rows = std::vector<GradientRow>;
using I = const Inputs&;

Rows activation_rows() {
  return {
      {"softmax", "Last", {{2, 4}}, kLow, kHigh, [](I x) { return softmax(x[0], -1); }},
      {"softmax", "Middle", {{2, 3, 2}}, kLow, kHigh, [](I x) { return exp(softmax(x[0], 1)); }},
      {"softmax", "RankZero", {{}}, kLow, kHigh, [](I x) { return softmax(x[0], 0) * x[0]; }},
      {"silu", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return silu(x[0]); }},
      {"gelu", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return gelu(x[0]); }},
      {"gelu", "Tanh", {{2, 3}}, kLow, kHigh, [](I x) { return gelu(x[0], Approximation::tanh); }},
      {"softplus", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return softplus(x[0]); }},
      {"softplus", "Threshold", {{2, 3}}, kLow, kHigh, [](I x) { return softplus(x[0], 2, 30); }},
      {"softplus", "Linear", {{2, 3}}, 15, 18, [](I x) { return softplus(x[0], 2, 20) * x[0]; }},
      {"leaky_relu", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return leaky_relu(x[0], 0.125) * x[0]; }, {0}},
      {"elu", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return elu(x[0], 1.5) * x[0]; }, {0}},
      {"hardtanh", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return hardtanh(x[0], -1, 0.5) * x[0]; }, {-1, 0.5}},
      {"clamp", "Both", {{2, 3}}, kLow, kHigh, [](I x) { return clamp(x[0], -1, 0.5) * x[0]; }, {-1, 0.5}},
      {"clamp", "Below", {{2, 3}}, kLow, kHigh, [](I x) { return clamp(x[0], 0.5) * x[0]; }, {0.5}},
      {"clamp", "Above", {{2, 3}}, kLow, kHigh, [](I x) { return clamp(x[0], {}, 0.5) * x[0]; }, {0.5}},
  };
}

Rows angle_rows() {
  return {
      {"sin", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return sin(x[0]); }},
      {"sin", "Twice", {{2, 3}}, kLow, kHigh, [](I x) { return sin(sin(x[0]) * x[0]); }},
      {"cos", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return cos(x[0]); }},
      {"tan", "Plain", {{2, 3}}, -1.2, 1.2, [](I x) { return tan(x[0]); }},
      {"asin", "Plain", {{2, 3}}, -0.9, 0.9, [](I x) { return asin(x[0]); }},
      {"acos", "Plain", {{2, 3}}, -0.9, 0.9, [](I x) { return acos(x[0]); }},
      {"atan", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return atan(x[0]); }},
      {"atan2", "Above", {{2, 3}, {3}}, 0.5, 2, [](I x) { return atan2(x[0], x[1]); }},
      {"atan2", "Left", {{2, 3}, {3}}, 0.5, 2, [](I x) { return atan2(neg(x[0]), neg(x[1])); }},
      {"sinh", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return sinh(x[0]); }},
      {"cosh", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return cosh(x[0]); }},
      {"asinh", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return asinh(x[0]); }},
      {"acosh", "Plain", {{2, 3}}, 1.5, 3, [](I x) { return acosh(x[0]); }},
      {"atanh", "Plain", {{2, 3}}, -0.9, 0.9, [](I x) { return atanh(x[0]); }},
  };
}

Rows division_rows() {
  return {
      {"floor_divide", "Tensors", {{2, 3}, {3}}, 0.6, 0.95, [](I x) { return floor_divide(x[0], x[1] * 0.4) * x[0]; }},
      {"remainder", "Tensors", {{2, 3}, {3}}, 1.1, 1.4, [](I x) { return remainder(x[0] * 2, neg(x[1])); }},
      {"remainder", "Number", {{2, 3}}, 1.1, 1.9, [](I x) { return exp(remainder(x[0], -2)); }},
      {"fmod", "Tensors", {{2, 3}, {3}}, 1.1, 1.4, [](I x) { return fmod(neg(x[0]) * 2, x[1]); }},
      {"fmod", "Number", {{2, 3}}, 1.1, 1.9, [](I x) { return exp(fmod(x[0], 1)); }},
  };
}

Rows statistics_rows() {
  return {
      {"logsumexp", "All", {{2, 3}}, kLow, kHigh, [](I x) { return logsumexp(x[0]); }},
      {"logsumexp", "Kept", {{2, 3, 2}}, kLow, kHigh, [](I x) { return x[0] * logsumexp(x[0], {0, -1}, true); }},
      {"prod", "All", {{2, 3}}, kLow, kHigh, [](I x) { return prod(x[0]); }},
      {"prod", "Kept", {{2, 5, 2}}, kLow, kHigh, [](I x) { return prod(x[0], {1}, true); }},
      {"prod", "WithZero", {{2, 3}}, kLow, kHigh, [](I x) { return prod(cat({x[0], x[0] * 0}, 1), {1}); }},
      {"var", "All", {{2, 3}}, kLow, kHigh, [](I x) { return exp(var(x[0])); }},
      {"var", "Kept", {{2, 3, 2}}, kLow, kHigh, [](I x) { return x[0] * var(x[0], {0, 1}, true, 0); }},
      {"stddev", "All", {{2, 3}}, kLow, kHigh, [](I x) { return stddev(x[0]); }, {}, true},
      {"stddev", "Inner", {{2, 3}}, kLow, kHigh, [](I x) { return stddev(x[0], {-1}, false, 0.5); }, {}, true},
      {"norm", "Euclidean", {{2, 3}}, kLow, kHigh, [](I x) { return norm(x[0], 2, {1}); }},
      {"norm", "Absolute", {{2, 3}}, kLow, kHigh, [](I x) { return exp(norm(x[0], 1, {0}, true)); }, {0}},
      {"norm", "Cubic", {{2, 3}}, kLow, kHigh, [](I x) { return norm(x[0], 3); }, {0}},
      {"norm", "Half", {{4}}, 0.5, 2.5, [](I x) { return norm(x[0], 0.5); }},
      {"norm", "Largest", {{2, 3}}, 0.5, 2.5, [](I x) { return exp(norm(x[0], HUGE_VAL, {1})); }, {}, true},
      {"norm", "Smallest", {{2, 3}}, 0.5, 2.5, [](I x) { return exp(norm(x[0], -HUGE_VAL, {1})); }, {}, true},
  };
}

Tensor mask() { return Tensor::from(std::vector<bool>{true, false, false}, {3}); }

Tensor dropped(I x) {
  manual_seed(11);
  return exp(dropout(x[0], 0.5));
}

Rows layer_rows() {
  return {
      {"masked_fill", "Broadcast", {{2, 3}}, kLow, kHigh, [](I x) { return exp(masked_fill(x[0], mask(), 0.5)); }},
      {"tril", "Wide", {{2, 4}}, kLow, kHigh, [](I x) { return exp(tril(x[0], 1)); }},
      {"triu", "Batch", {{2, 3, 2}}, kLow, kHigh, [](I x) { return exp(triu(x[0], -1)); }},
      {"linear", "Batch", {{2, 2, 3}, {4, 3}, {4}}, kLow, kHigh, [](I x) { return linear(x[0], x[1], x[2]); }},
      {"linear", "Vector", {{3}, {2, 3}}, kLow, kHigh, [](I x) { return exp(linear(x[0], x[1])); }},
      {"embedding", "Matrix", {{4, 2}}, kLow, kHigh, [](I x) { return exp(embedding(x[0], i64({3, 0, 3, 1}, {2, 2}))); }},
      {"dropout", "Half", {{3, 4}}, kLow, kHigh, dropped},
      {"layer_norm", "Two", {{2, 2, 3}, {2, 3}, {2, 3}}, kLow, kHigh,
       [](I x) { return layer_norm(x[0], {2, 3}, x[1], x[2], 0.5); }},
      {"layer_norm", "Bare", {{3, 2}}, kLow, kHigh, [](I x) { return layer_norm(x[0], {2}, {}, {}, 0.5) * x[0]; }},
      {"layer_norm", "Weight", {{2, 9}, {9}}, kLow, kHigh,
       [](I x) { return exp(layer_norm(transpose(transpose(x[0])), {9}, x[1], {}, 0.5)); }},
      {"rms_norm", "Bare", {{3, 2}}, kLow, kHigh, [](I x) { return rms_norm(x[0], {2}, {}, 0.5) * x[0]; }},
      {"rms_norm", "Plain", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return exp(rms_norm(x[0], {3}, x[1])); }},
      {"batch_norm", "Training", {{3, 2, 2}, {2}, {2}}, kLow, kHigh,
       [](I x) { return batch_norm(x[0], {}, {}, x[1], x[2], true, 0.1, 0.5); }},
      {"batch_norm", "Matrix", {{4, 3}, {3}}, kLow, kHigh,
       [](I x) { return batch_norm(x[0], {}, {}, x[1], {}, true, 0.1, 0.5) * x[0]; }},
      {"batch_norm", "Running", {{3, 2}, {2}}, kLow, kHigh,
       [](I x) { return batch_norm(x[0], f64({1, -1}), f64({0.5, 2}), x[1]); }},
      {"group_norm", "Bare", {{2, 4, 2}}, kLow, kHigh, [](I x) { return exp(group_norm(x[0], 2, {}, {}, 0.5)); }},
      {"group_norm", "Two", {{2, 4, 2}, {4}, {4}}, kLow, kHigh,
       [](I x) { return group_norm(x[0], 2, x[1], x[2], 0.5); }},
  };
}

Rows arrangement_rows() {
  return {
      {"pad", "Both", {{2, 3}}, kLow, kHigh, [](I x) { return exp(pad(x[0], {1, 2, 0, 1}, 0.5)); }},
      {"pad", "Negative", {{2, 4}}, kLow, kHigh, [](I x) { return exp(pad(x[0], {-1, 2})); }},
      {"split", "Uneven", {{5, 2}}, kLow, kHigh, [](I x) { return exp(split(x[0], 2)[2]) * split(x[0], 1)[0]; }},
      {"chunk", "Two", {{2, 4}}, kLow, kHigh, [](I x) { return chunk(x[0], 2, 1)[0] * chunk(x[0], 2, -1)[1]; }},
      {"flip", "Two", {{2, 3}}, kLow, kHigh, [](I x) { return x[0] * flip(x[0], {0, -1}); }},
      {"roll", "Flat", {{2, 3}}, kLow, kHigh, [](I x) { return x[0] * roll(x[0], {1}); }},
      {"roll", "Axes", {{2, 3}}, kLow, kHigh, [](I x) { return x[0] * roll(x[0], {1, -1}, {0, 1}); }},
      {"repeat", "Added", {{2, 3}}, kLow, kHigh, [](I x) { return exp(repeat(x[0], {2, 1, 3})); }},
      {"tile", "Last", {{2, 3}}, kLow, kHigh, [](I x) { return exp(tile(x[0], {2})); }},
      {"repeat_interleave", "First", {{2, 3}}, kLow, kHigh, [](I x) { return exp(repeat_interleave(x[0], 2, 0)); }},
      {"movedim", "Two", {{2, 3, 2}}, kLow, kHigh, [](I x) { return exp(movedim(x[0], {0, 1}, {-1, 0})); }},
      {"unfold", "Overlapping", {{6, 2}}, kLow, kHigh, [](I x) { return exp(unfold(x[0], 0, 3, 2)); }},
      {"unfold", "Apart", {{2, 5}}, kLow, kHigh, [](I x) { return exp(unfold(x[0], -1, 1, 2)); }},
  };
}

Rows convolution_rows() {
  return {
      {"conv1d", "Plain", {{2, 2, 5}, {3, 2, 2}, {3}}, kLow, kHigh, [](I x) { return conv1d(x[0], x[1], x[2]); }},
      {"conv1d", "Groups", {{2, 5}, {4, 1, 2}}, kLow, kHigh,
       [](I x) { return exp(conv1d(x[0], x[1], {}, {2}, {1}, {2}, 2) * 0.25); }},
      {"conv2d", "Plain", {{2, 1, 3, 4}, {2, 1, 2, 2}}, kLow, kHigh, [](I x) { return conv2d(x[0], x[1]); }},
      {"conv2d", "All", {{1, 2, 4, 4}, {2, 1, 2, 2}, {2}}, kLow, kHigh,
       [](I x) { return conv2d(x[0], x[1], x[2], {2, 1}, {1, 0}, {1, 2}, 2); }},
      {"conv3d", "Plain", {{1, 2, 2, 3, 2}, {1, 2, 2, 2, 1}}, kLow, kHigh, [](I x) { return conv3d(x[0], x[1]); }},
      {"conv_transpose2d", "All", {{1, 2, 2, 3}, {2, 1, 2, 2}, {2}}, kLow, kHigh,
       [](I x) { return conv_transpose2d(x[0], x[1], x[2], {2, 1}, {1, 0}, {1, 0}, 2, {1, 2}); }},
      {"max_pool1d", "Overlapping", {{1, 2, 5}}, kLow, kHigh,
       [](I x) { return exp(max_pool1d(x[0], {3}, {1}, {1})); }, {}, true},
      {"max_pool2d", "Plain", {{1, 2, 4, 4}}, kLow, kHigh, [](I x) { return exp(max_pool2d(x[0], {2})); }, {}, true},
      {"avg_pool1d", "Padded", {{2, 5}}, kLow, kHigh,
       [](I x) { return exp(avg_pool1d(x[0], {2}, {2}, {1}, false, false)); }},
      {"avg_pool2d", "Padded", {{1, 4, 4}}, kLow, kHigh, [](I x) { return exp(avg_pool2d(x[0], {3, 2}, {1}, {1})); }},
      {"adaptive_avg_pool2d", "Plain", {{1, 5, 4}}, kLow, kHigh,
       [](I x) { return exp(adaptive_avg_pool2d(x[0], {3, 2})); }},
  };
}

Tensor corner() { return Tensor::from(std::vector<bool>{true, false, false, false, true, true}, {2, 3}); }

Rows indexing_rows() {
  return {
      {"index", "Basic", {{2, 3, 2}}, kLow, kHigh, [](I x) { return exp(index(x[0], {-1, newaxis, Slice{.step = -2}})); }},
      {"index", "Repeating", {{2, 3}}, kLow, kHigh, [](I x) { return exp(index(x[0], {Slice{}, i64({2, 0, -1, 2})})); }},
      {"index", "Apart", {{2, 3, 2}}, kLow, kHigh,
       [](I x) { return exp(index(x[0], {i64({1, 0, 1}), Slice{}, i64({0, 0, 1})})); }},
      {"index", "Mask", {{2, 3, 2}}, kLow, kHigh, [](I x) { return exp(index(x[0], {corner()})); }},
      {"index_put", "Basic", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return exp(index_put(x[0], {1}, x[1])); }},
      {"index_put", "AddedBasic", {{2, 3}, {2}}, kLow, kHigh,
       [](I x) { return exp(index_put(x[0], {ellipsis, 1}, x[1], true)); }},
      {"index_put", "Repeating", {{3, 2}, {4, 2}}, kLow, kHigh,
       [](I x) { return exp(index_put(x[0], {i64({2, 0, 2, -1})}, x[1])); }},
      {"index_put", "Apart", {{2, 2, 2}, {2}}, kLow, kHigh,
       [](I x) { return exp(index_put(x[0], {i64({1, 0}), Slice{1}, i64({0, 1})}, unsqueeze(x[1], 1))); }},
      {"index_put", "Added", {{3, 2}, {2}}, kLow, kHigh,
       [](I x) { return exp(index_put(x[0], {i64({2, 0, 2})}, x[1], true)); }},
      {"index_put", "Mask", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return exp(index_put(x[0], {corner()}, x[1])); }},
      {"index_put", "OneElement", {{2, 3}, {}}, kLow, kHigh, [](I x) { return exp(index_put(x[0], {corner()}, x[1])); }},
  };
}

Tensor reduced(I x, ScatterReduction reduce, bool include_self) {
  return exp(scatter_reduce(x[0], 0, i64({2, 0, 2, 0, 2, 2, 0, 0}, {4, 2}), x[1], reduce, include_self) * 0.25);
}

Rows scatter_rows() {
  const std::vector<Shape> shapes = {{3, 2}, {4, 2}};
  return {
      {"scatter", "Repeating", {{3, 2}, {2, 3}}, kLow, kHigh,
       [](I x) { return exp(scatter(x[0], 0, i64({2, 0, 2, 1}, {2, 2}), x[1])); }},
      {"scatter", "Number", {{3, 2}}, kLow, kHigh, [](I x) { return exp(scatter(x[0], 1, i64({1, 0}, {2, 1}), 0.5)); }},
      {"scatter_reduce", "Sum", shapes, kLow, kHigh, [](I x) { return reduced(x, ScatterReduction::sum, true); }},
      {"scatter_reduce", "SumOfOthers", shapes, kLow, kHigh, [](I x) { return reduced(x, ScatterReduction::sum, false); }},
      {"scatter_reduce", "Mean", shapes, kLow, kHigh, [](I x) { return reduced(x, ScatterReduction::mean, true); }},
      {"scatter_reduce", "MeanOfOthers", shapes, kLow, kHigh, [](I x) { return reduced(x, ScatterReduction::mean, false); }},
      {"scatter_reduce", "Product", shapes, kLow, kHigh, [](I x) { return reduced(x, ScatterReduction::prod, true); }},
      {"scatter_reduce", "Largest", shapes, -8, 8, [](I x) { return reduced(x, ScatterReduction::amax, true); }, {}, true},
      {"scatter_reduce", "SmallestOfOthers", shapes, -8, 8,
       [](I x) { return reduced(x, ScatterReduction::amin, false); }, {}, true},
      {"masked_select", "Broadcast", {{2, 3}}, kLow, kHigh, [](I x) { return exp(masked_select(x[0], mask())); }},
      {"masked_scatter", "More", {{2, 3}, {4}}, kLow, kHigh, [](I x) { return exp(masked_scatter(x[0], corner(), x[1])); }},
  };
}

Rows selection_rows() {
  return {
      {"take", "Flat", {{2, 3}}, kLow, kHigh, [](I x) { return exp(take(x[0], i64({5, 0, -1, 0}, {2, 2}))); }},
      {"take", "Axis", {{2, 3}}, kLow, kHigh, [](I x) { return exp(take(x[0], i64({2, 0, -1, 0}, {2, 2}), 1)); }},
      {"take_along_dim", "Broadcast", {{3, 1}}, kLow, kHigh,
       [](I x) { return exp(take_along_dim(x[0], i64({2, 0, -1, 0}, {2, 2}), 0)); }},
      {"take_along_axis", "Plain", {{2, 3}}, kLow, kHigh,
       [](I x) { return exp(take_along_axis(x[0], i64({1, -1}, {1, 2}))); }},
      {"put", "Repeating", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return exp(put(x[0], i64({5, 0, -1}), x[1])); }},
      {"put", "Added", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return exp(put(x[0], i64({5, 0, -1}), x[1], true)); }},
      {"put_along_axis", "Broadcast", {{2, 3}, {2, 1}}, kLow, kHigh,
       [](I x) { return exp(put_along_axis(x[0], i64({2, 0}, {1, 2}), x[1], 1)); }},
      {"index_select", "Repeating", {{3, 2}}, kLow, kHigh, [](I x) { return exp(index_select(x[0], 0, i64({2, 0, 2}))); }},
      {"index_add", "Scaled", {{3, 2}, {3, 2}}, kLow, kHigh,
       [](I x) { return exp(index_add(x[0], 0, i64({2, 0, 2}), x[1], 0.5)); }},
      {"index_copy", "Repeating", {{2, 3}, {2, 2}}, kLow, kHigh,
       [](I x) { return exp(index_copy(x[0], -1, i64({2, 0}), x[1])); }},
      {"index_fill", "Number", {{2, 3}}, kLow, kHigh, [](I x) { return exp(index_fill(x[0], 1, i64({2, 0}), 0.5)); }},
      {"index_fill", "Tensor", {{2, 3}, {}}, kLow, kHigh, [](I x) { return exp(index_fill(x[0], 1, i64({2, 0}), x[1])); }},
      {"narrow", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(narrow(x[0], 1, -2, 2)); }},
      {"unbind", "Product", {{3, 2}}, kLow, kHigh, [](I x) { return unbind(x[0])[0] * unbind(x[0])[2]; }},
      {"diagonal", "Above", {{2, 2, 3}}, kLow, kHigh, [](I x) { return exp(diagonal(x[0], 1, -2, -1)); }},
      {"diagonal", "Outside", {{2, 3}}, kLow, kHigh, [](I x) { return cat({diagonal(x[0], 5), diagonal(x[0], -1)}); }},
      {"diag", "Matrix", {{2, 3}}, kLow, kHigh, [](I x) { return exp(diag(x[0])); }},
      {"diag", "Vector", {{2}}, kLow, kHigh, [](I x) { return exp(diag(x[0], -1)); }},
      {"diag_embed", "Turned", {{2, 2}}, kLow, kHigh, [](I x) { return exp(diag_embed(x[0], 1, 2, 0)); }},
      {"diagonal_scatter", "Below", {{3, 2}, {2}}, kLow, kHigh, [](I x) { return exp(diagonal_scatter(x[0], x[1], -1)); }},
      {"select_scatter", "Last", {{2, 3}, {2}}, kLow, kHigh, [](I x) { return exp(select_scatter(x[0], x[1], 1, -1)); }},
      {"slice_scatter", "Step", {{4, 2}, {2, 2}}, kLow, kHigh,
       [](I x) { return exp(slice_scatter(x[0], x[1], 0, 1, {}, 2)); }},
  };
}

Tensor attended(I x, const Tensor& mask, bool causal) {
  return scaled_dot_product_attention(x[0], x[1], x[2], mask, 0, causal);
}
Tensor mask_with_an_empty_row() {
  return Tensor::from(std::vector<bool>{true, false, true, false, false, false}, {2, 3});
}
Tensor shared(I x) { return scaled_dot_product_attention(x[0], x[1], x[1], {}, 0, false, 0.25, true); }

Rows attention_rows() {
  constexpr const char* kName = "scaled_dot_product_attention";
  return {
      {kName, "Plain", {{2, 2, 3}, {2, 3, 3}, {2, 3, 2}}, kLow, kHigh, [](I x) { return attended(x, {}, false); }},
      {kName, "Causal", {{3, 2}, {3, 2}, {3, 2}}, kLow, kHigh, [](I x) { return attended(x, {}, true); }},
      {kName, "Masked", {{2, 2}, {3, 2}, {3, 2}}, kLow, kHigh,
       [](I x) { return attended(x, mask_with_an_empty_row(), false); }},
      {kName, "Added", {{2, 2}, {3, 2}, {3, 2}, {2, 3}}, kLow, kHigh, [](I x) { return attended(x, x[3], false); }},
      {kName, "SharedHeads", {{2, 2, 2}, {1, 3, 2}}, kLow, kHigh, shared},
      {"rotary_embedding", "Halves", {{2, 4}, {2, 2}, {2}}, kLow, kHigh,
       [](I x) { return exp(rotary_embedding(x[0], x[1], x[2])); }},
      {"rotary_embedding", "Interleaved", {{2, 4}, {2, 2}, {2}}, kLow, kHigh,
       [](I x) { return exp(rotary_embedding(x[0], x[1], x[2], true)); }},
  };
}

Tensor entropy_with(I x, const Tensor& weight, std::optional<int64_t> ignored, double smoothing) {
  return exp(cross_entropy(x[0], i64({1, 0, 2, 1}, {2, 2}), Reduction::none, weight, ignored, smoothing));
}

Rows loss_rows() {
  return {
      {"mse_loss", "Mean", {{2, 3}, {2, 3}}, kLow, kHigh, [](I x) { return mse_loss(x[0], x[1]); }},
      {"l1_loss", "Sum", {{2, 3}, {2, 3}}, kLow, kHigh, [](I x) { return l1_loss(x[0], x[1], Reduction::sum); }, {}, true},
      {"huber_loss", "None", {{2, 3}, {2, 3}}, kLow, kHigh,
       [](I x) { return huber_loss(x[0], x[1], Reduction::none, 10); }, {}, true},
      {"huber_loss", "Far", {{2, 3}}, kLow, kHigh, [](I x) { return huber_loss(x[0], x[0] * x[0] * 0 + 5); }},
      {"binary_cross_entropy_with_logits", "Plain", {{2, 3}, {2, 3}}, kLow, kHigh,
       [](I x) { return binary_cross_entropy_with_logits(x[0], x[1]); }},
      {"binary_cross_entropy_with_logits", "Weighted", {{2, 3}, {2, 3}}, kLow, kHigh,
       [](I x) { return binary_cross_entropy_with_logits(x[0], x[1], f64({1, 2, 3}), f64({2, 0.5, 1}), Reduction::none); }},
      {"kl_div", "Plain", {{2, 3}, {2, 3}}, 0.5, 2.5, [](I x) { return kl_div(x[0], x[1]); }},
      {"kl_div", "Logs", {{2, 3}, {2, 3}}, kLow, kHigh, [](I x) { return kl_div(x[0], x[1], Reduction::sum, true); }},
      {"nll_loss", "Weighted", {{2, 3, 2}}, kLow, kHigh,
       [](I x) { return exp(nll_loss(x[0], i64({1, 0, 2, 1}, {2, 2}), f64({1, 2, 3}), 0)); }},
      {"cross_entropy", "Layout", {{2, 3, 2}}, kLow, kHigh, [](I x) { return entropy_with(x, {}, {}, 0); }},
      {"cross_entropy", "Weighted", {{2, 3, 2}}, kLow, kHigh, [](I x) { return entropy_with(x, f64({1, 2, 3}), 0, 0); }},
      {"cross_entropy", "Smoothed", {{2, 3, 2}}, kLow, kHigh, [](I x) { return entropy_with(x, f64({1, 2, 3}), 0, 0.25); }},
      {"cross_entropy", "Probabilities", {{2, 3}, {2, 3}}, kLow, kHigh,
       [](I x) { return cross_entropy(x[0], x[1], Reduction::mean, f64({1, 2, 3}), {}, 0.25); }},
  };
}
}  // namespace

std::vector<GradientRow> composite_rows() {
  Rows all;
  for (Rows (*family)() : {activation_rows, angle_rows, division_rows, statistics_rows, layer_rows, arrangement_rows,
                           convolution_rows, attention_rows, loss_rows, algebra_rows, indexing_rows, scatter_rows,
                           selection_rows, order_rows, rearrangement_rows, further_arithmetic_rows, linalg_rows,
                           network_rows, spatial_rows, special_rows, complex_rows})
    for (GradientRow& row : family()) all.push_back(std::move(row));
  return all;
}

}  // namespace plugrad::test
