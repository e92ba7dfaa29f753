// Gradients of products, and of distances and directions.
#include <tests/core/gradient_rows.hpp>

#include <cmath>

namespace plugrad::test {
namespace {
constexpr double kLow = -2, kHigh = 2;
using Rows = std::vector<GradientRow>;
using I = const Inputs&;

Rows product_rows() {
  return {
      {"einsum", "Three", {{2, 3}, {3, 2}, {2, 2}}, kLow, kHigh, [](I x) { return einsum("ij,jk,kl->il", x); }},
      {"einsum", "Diagonal", {{3, 2, 3}}, kLow, kHigh, [](I x) { return exp(einsum("iji->ij", x)); }},
      {"einsum", "Dots", {{2, 1, 2}, {3, 2}}, kLow, kHigh, [](I x) { return exp(einsum("...i,...i->...", x)); }},
      {"tensordot", "Two", {{2, 3, 2}, {3, 2, 2}}, kLow, kHigh, [](I x) { return tensordot(x[0], x[1]); }},
      {"tensordot", "Lists", {{2, 3}, {2, 2}}, kLow, kHigh, [](I x) { return tensordot(x[0], x[1], {0}, {-1}); }},
      {"outer", "Plain", {{3}, {2}}, kLow, kHigh, [](I x) { return outer(x[0], x[1]); }},
      {"inner", "Plain", {{2, 3}, {2, 3}}, kLow, kHigh, [](I x) { return inner(x[0], x[1]); }},
      {"dot", "Plain", {{3}, {3}}, kLow, kHigh, [](I x) { return exp(dot(x[0], x[1]) * 0.25); }},
      {"vdot", "Plain", {{3}, {3}}, kLow, kHigh, [](I x) { return vdot(x[0], x[1]); }},
      {"mv", "Plain", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return mv(x[0], x[1]); }},
      {"mm", "Plain", {{2, 3}, {3, 2}}, kLow, kHigh, [](I x) { return mm(x[0], x[1]); }},
      {"bmm", "Plain", {{2, 2, 3}, {2, 3, 2}}, kLow, kHigh, [](I x) { return bmm(x[0], x[1]); }},
      {"addmm", "Scaled", {{2}, {2, 3}, {3, 2}}, kLow, kHigh, [](I x) { return addmm(x[0], x[1], x[2], 0.5, 2); }},
      {"addmv", "Scaled", {{2}, {2, 3}, {3}}, kLow, kHigh, [](I x) { return addmv(x[0], x[1], x[2], 0.5, 2); }},
      {"baddbmm", "Scaled", {{2}, {2, 2, 3}, {2, 3, 2}}, kLow, kHigh, [](I x) { return baddbmm(x[0], x[1], x[2], 0.5, 2); }},
      {"addcmul", "Broadcast", {{2, 3}, {3}, {2, 1}}, kLow, kHigh, [](I x) { return addcmul(x[0], x[1], x[2], 3); }},
      {"addcdiv", "Broadcast", {{2, 3}, {3}, {2, 1}}, 0.5, 2.5, [](I x) { return addcdiv(x[0], x[1], x[2], 3); }},
      {"kron", "Ranks", {{2, 2}, {3}}, kLow, kHigh, [](I x) { return kron(x[0], x[1]); }},
      {"cross", "Broadcast", {{3, 2}, {3, 1}}, kLow, kHigh, [](I x) { return cross(x[0], x[1], 0); }},
      {"trace", "Wide", {{2, 3}}, kLow, kHigh, [](I x) { return exp(trace(x[0])); }},
      {"matrix_power", "Three", {{2, 2, 2}}, kLow, kHigh, [](I x) { return matrix_power(x[0], 3); }},
      {"multi_dot", "Vectors", {{2}, {2, 3}, {3, 2}, {2}}, kLow, kHigh, [](I x) { return multi_dot(x); }},
      {"bilinear",
       "Bias",
       {{2, 3}, {2, 2}, {2, 3, 2}, {2}},
       kLow,
       kHigh,
       [](I x) { return bilinear(x[0], x[1], x[2], x[3]); }},
  };
}

Rows distance_rows() {
  return {
      {"dist", "Cubic", {{2, 3}, {2, 3}}, kLow, kHigh, [](I x) { return dist(x[0], x[1], 3); }, {}, true},
      {"cdist", "Euclidean", {{2, 3}, {3, 3}}, kLow, kHigh, [](I x) { return cdist(x[0], x[1] + 4); }},
      {"cdist", "Largest", {{2, 3}, {2, 3}}, kLow, kHigh, [](I x) { return cdist(exp(x[0]), x[1] - 3, HUGE_VAL); }},
      {"cdist", "Product", {{26, 1}, {1, 1}}, kLow, kHigh, [](I x) { return cdist(x[0], x[1] + 6); }},
      {"pairwise_distance",
       "Plain",
       {{2, 3}, {3}},
       kLow,
       kHigh,
       [](I x) { return pairwise_distance(x[0], x[1]); },
       {},
       true},
      {"cosine_similarity", "Plain", {{2, 3}, {2, 3}}, kLow, kHigh, [](I x) { return cosine_similarity(x[0], x[1]); }},
      {"normalize", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return normalize(x[0]); }},
      {"renorm", "First", {{3, 2}}, kLow, kHigh, [](I x) { return renorm(x[0], 2, 0, 0.5); }, {}, true},
  };
}
}  // namespace

std::vector<GradientRow> algebra_rows() {
  Rows all = product_rows();
  for (GradientRow& row : distance_rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace plugrad::test
