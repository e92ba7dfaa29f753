// Gradients of further arithmetic and statistics.
#include <tests/core/gradient_rows.hpp>

#include <cmath>

namespace plugrad::test {
namespace {
constexpr double kLow = -2, kHigh = 2;
using Rows = std::vector<GradientRow>;
using I = const Inputs&;

Rows elementwise_rows() {
  return {
      {"add", "Alpha", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return exp(add(x[0], x[1], 0.5)); }},
      {"sub", "Alpha", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return exp(sub(x[0], x[1], 0.5)); }},
      {"div", "Plain", {{2, 3}, {3}}, 0.5, 2.5, [](I x) { return div(x[0], x[1], std::nullopt); }},
      {"lerp", "Tensor", {{2, 3}, {3}, {2, 1}}, 0.55, 2, [](I x) { return exp(lerp(x[0], x[1], x[2])); }},
      {"lerp", "Small", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return exp(lerp(x[0], x[1], 0.25)); }},
      {"logaddexp", "Plain", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return logaddexp(x[0], x[1]); }, {}, true},
      {"logaddexp2", "Plain", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return logaddexp2(x[0], x[1]); }, {}, true},
      {"xlogy", "Plain", {{2, 3}, {3}}, 0.5, 2.5, [](I x) { return xlogy(x[0], x[1]); }},
      {"float_power", "Plain", {{2, 3}, {3}}, 0.5, 2.5, [](I x) { return float_power(x[0], x[1]); }},
      {"hypot", "Plain", {{2, 3}, {3}}, 0.5, 2.5, [](I x) { return hypot(x[0], x[1]); }},
      {"copysign", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(copysign(x[0], f64({-1, 2, -0.0}))); }, {0}},
      {"fmax", "Plain", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return exp(fmax(x[0], x[1])); }, {}, true},
      {"fmin", "Plain", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return exp(fmin(x[0], x[1])); }, {}, true},
      {"clamp", "Tensors", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return exp(clamp(x[0], x[1], x[1] + 1)); }, {}, true},
      {"nan_to_num", "Plain", {{3}}, kLow, kHigh, [](I x) { return exp(nan_to_num(x[0])); }},
      {"positive", "Plain", {{3}}, kLow, kHigh, [](I x) { return exp(positive(x[0])); }},
      {"frac", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(frac(x[0])); }, {-1, 0, 1}},
      {"deg2rad", "Plain", {{3}}, kLow, kHigh, [](I x) { return exp(deg2rad(x[0])); }},
      {"rad2deg", "Plain", {{3}}, kLow, kHigh, [](I x) { return exp(rad2deg(x[0]) * 0.01); }},
      {"logit", "Plain", {{2, 3}}, 0.2, 0.8, [](I x) { return exp(logit(x[0])); }},
  };
}

Tensor with_gap(I x) { return where(Tensor::from(std::vector<bool>{true, false, true}, {3}), x[0], f64({std::nan("")})); }

Rows statistics_rows() {
  return {
      {"nansum", "Gap", {{2, 3}}, kLow, kHigh, [](I x) { return exp(nansum(with_gap(x), {1})); }},
      {"nanmean", "Gap", {{2, 3}}, kLow, kHigh, [](I x) { return exp(nanmean(with_gap(x), {1})); }},
      {"nanvar", "Gap", {{2, 3}}, kLow, kHigh, [](I x) { return nanvar(with_gap(x)); }},
      {"nanstd", "Gap", {{2, 3}}, kLow, kHigh, [](I x) { return nanstd(with_gap(x), {1}); }, {}, true},
      {"var_mean", "Product", {{2, 3}}, kLow, kHigh, [](I x) { return var_mean(x[0])[0] * var_mean(x[0])[1]; }},
      {"std_mean", "Product", {{2, 3}}, kLow, kHigh, [](I x) { return std_mean(x[0])[0] * std_mean(x[0])[1]; }, {}, true},
      {"cov",
       "Weights",
       {{2, 3}, {3}},
       0.5,
       2.5,
       [](I x) {
         return cov(x[0], 1, i64({1, 3, 2}), x[1]);
       }},
      {"cov", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return cov(x[0]); }},
      {"corrcoef",
       "Product",
       {{2, 3}},
       kLow,
       kHigh,
       [](I x) {
         return corrcoef(cat({x[0], exp(x[0])})) * 0.5;
       },
       {},
       true},
      {"trapezoid", "Points", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return trapezoid(x[0], x[1]); }},
      {"gradient",
       "Coordinates",
       {{2, 4}},
       kLow,
       kHigh,
       [](I x) {
         return exp(gradient(x[0], std::vector{f64({0, 1, 3, 4})}, {1}, 2)[0] * 0.25);
       }},
      {"logcumsumexp", "Plain", {{2, 4}}, kLow, kHigh, [](I x) { return logcumsumexp(x[0], 1); }},
  };
}
}  // namespace

std::vector<GradientRow> further_arithmetic_rows() {
  Rows all = elementwise_rows();
  for (GradientRow& row : statistics_rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace plugrad::test
