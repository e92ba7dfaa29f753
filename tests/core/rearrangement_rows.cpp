// Gradients of grids, joined tensors, views, padding and images.
#include <tests/core/gradient_rows.hpp>

namespace plugrad::test {
namespace {
constexpr double kLow = -2, kHigh = 2;
using Rows = std::vector<GradientRow>;
using I = const Inputs&;

Tensor product_of_grids(I x) {
  const std::vector<Tensor> grids = meshgrid({x[0], x[1]}, GridIndexing::xy);
  return grids[0] * exp(grids[1]);
}
Tensor product_of_broadcast(I x) {
  const std::vector<Tensor> all = broadcast_tensors(x);
  return all[0] * all[1];
}

Rows joining_rows() {
  return {
      {"meshgrid", "Two", {{2}, {3}}, kLow, kHigh, product_of_grids},
      {"cartesian_prod", "Two", {{2}, {3}}, kLow, kHigh, [](I x) { return exp(cartesian_prod(x)); }},
      {"combinations", "Two", {{3}}, kLow, kHigh, [](I x) { return exp(combinations(x[0])); }},
      {"vander", "Three", {{2}}, kLow, kHigh, [](I x) { return vander(x[0], 4); }},
      {"block_diag", "Two", {{2, 3}, {2}}, kLow, kHigh, [](I x) { return exp(block_diag(x)); }},
      {"atleast_1d", "Number", {{}}, kLow, kHigh, [](I x) { return exp(atleast_1d(x[0])); }},
      {"atleast_2d", "Vector", {{2}}, kLow, kHigh, [](I x) { return exp(atleast_2d(x[0])); }},
      {"atleast_3d", "Vector", {{2}}, kLow, kHigh, [](I x) { return exp(atleast_3d(x[0])); }},
      {"hstack", "Two", {{2, 1}, {2, 2}}, kLow, kHigh, [](I x) { return exp(hstack(x)); }},
      {"vstack", "Two", {{2}, {2, 2}}, kLow, kHigh, [](I x) { return exp(vstack(x)); }},
      {"dstack", "Two", {{2}, {1, 2, 1}}, kLow, kHigh, [](I x) { return exp(dstack(x)); }},
      {"column_stack", "Two", {{2}, {2, 2}}, kLow, kHigh, [](I x) { return exp(column_stack(x)); }},
      {"broadcast_to",
       "Plain",
       {{2, 1}},
       kLow,
       kHigh,
       [](I x) {
         return exp(broadcast_to(x[0], {2, 2, 3}));
       }},
      {"broadcast_tensors", "Two", {{2, 1}, {3}}, kLow, kHigh, product_of_broadcast},
  };
}

Rows view_rows() {
  return {
      {"flatten", "Inner", {{2, 2, 2}}, kLow, kHigh, [](I x) { return exp(flatten(x[0], 1)); }},
      {"ravel", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(ravel(x[0])); }},
      {"unflatten",
       "Plain",
       {{4, 2}},
       kLow,
       kHigh,
       [](I x) {
         return exp(unflatten(x[0], 0, {2, -1}));
       }},
      {"reshape_as", "Plain", {{2, 3}, {3, 2}}, kLow, kHigh, [](I x) { return x[1] * reshape_as(x[0], x[1]); }},
      {"view_as", "Plain", {{2, 3}, {3, 2}}, kLow, kHigh, [](I x) { return x[1] * view_as(x[0], x[1]); }},
      {"expand_as", "Plain", {{3}, {2, 3}}, kLow, kHigh, [](I x) { return x[1] * expand_as(x[0], x[1]); }},
      {"as_strided",
       "Overlapping",
       {{5}},
       kLow,
       kHigh,
       [](I x) {
         return exp(as_strided(contiguous(x[0]), {2, 3, 2}, {1, 1, 0}, 1));
       }},
      {"tensor_split", "Two", {{4}}, kLow, kHigh, [](I x) { return tensor_split(x[0], 2)[0] * tensor_split(x[0], {2})[1]; }},
      {"hsplit", "Two", {{2, 4}}, kLow, kHigh, [](I x) { return hsplit(x[0], 2)[0] * hsplit(x[0], 2)[1]; }},
      {"vsplit", "Two", {{4, 2}}, kLow, kHigh, [](I x) { return vsplit(x[0], 2)[0] * vsplit(x[0], 2)[1]; }},
      {"dsplit", "Two", {{1, 2, 2}}, kLow, kHigh, [](I x) { return dsplit(x[0], 2)[0] * dsplit(x[0], 2)[1]; }},
      {"fliplr", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return x[0] * fliplr(x[0]); }},
      {"flipud", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return x[0] * flipud(x[0]); }},
      {"rot90", "Square", {{2, 2}}, kLow, kHigh, [](I x) { return x[0] * rot90(x[0]); }},
      {"repeat_interleave",
       "Counts",
       {{2, 3}},
       kLow,
       kHigh,
       [](I x) {
         return exp(repeat_interleave(x[0], i64({2, 0, 1}), 1));
       }},
      {"pad",
       "Reflect",
       {{2, 3}},
       kLow,
       kHigh,
       [](I x) {
         return exp(pad(x[0], {2, 1, 1, 0}, PadMode::reflect));
       }},
      {"pad",
       "Replicate",
       {{2, 3}},
       kLow,
       kHigh,
       [](I x) {
         return exp(pad(x[0], {2, 1}, PadMode::replicate));
       }},
      {"pad",
       "Circular",
       {{2, 3}},
       kLow,
       kHigh,
       [](I x) {
         return exp(pad(x[0], {2, 1}, PadMode::circular));
       }},
      {"pixel_shuffle", "Plain", {{4, 1, 2}}, kLow, kHigh, [](I x) { return exp(pixel_shuffle(x[0], 2)); }},
      {"pixel_unshuffle", "Plain", {{1, 2, 4}}, kLow, kHigh, [](I x) { return exp(pixel_unshuffle(x[0], 2)); }},
      {"channel_shuffle", "Plain", {{1, 4, 2}}, kLow, kHigh, [](I x) { return x[0] * channel_shuffle(x[0], 2); }},
  };
}
}  // namespace

std::vector<GradientRow> rearrangement_rows() {
  Rows all = joining_rows();
  for (GradientRow& row : view_rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace plugrad::test
