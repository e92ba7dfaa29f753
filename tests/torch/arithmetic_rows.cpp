// Elementwise functions and statistics.
#include <tests/torch/rows.hpp>

namespace plugrad::test {
namespace {
using Rows = std::vector<TorchRow>;

Rows arithmetic_only() {
  const auto trunc_of = [](I x) { return div(x[0], x[1], RoundingMode::trunc); };
  const auto floor_of = [](I x) { return div(x[0], x[1], RoundingMode::floor); };
  return {
      {"add alpha", [](I x) { return add(x[0], x[1], -2.5); }},
      {"add integers alpha", [](I x) { return add(x[0], x[1], 3); }},
      {"sub alpha", [](I x) { return sub(x[0], x[1], 0.5); }},
      {"div none", [](I x) { return div(x[0], x[1], std::nullopt); }},
      {"div trunc", trunc_of},
      {"div floor", floor_of},
      {"div integers trunc", trunc_of},
      {"div integers floor", floor_of},
      {"div number trunc", [](I x) { return div(x[0], -3, RoundingMode::trunc); }},
      {"div number floor", [](I x) { return div(x[0], -3, RoundingMode::floor); }},
      {"lerp", [](I x) { return lerp(x[0], x[1], x[2]); }},
      {"lerp number", [](I x) { return lerp(x[0], x[1], 0.75); }},
      {"lerp small", [](I x) { return lerp(x[0], x[1], 0.125); }},
      {"logaddexp", [](I x) { return logaddexp(x[0], x[1]); }},
      {"logaddexp far", [](I x) { return logaddexp(x[0], x[1]); }},
      {"logaddexp special", [](I x) { return logaddexp(x[0], x[1]).detach(); }},
      {"logaddexp2", [](I x) { return logaddexp2(x[0], x[1]); }},
      {"logaddexp2 special", [](I x) { return logaddexp2(x[0], x[1]).detach(); }},
      {"xlogy", [](I x) { return xlogy(x[0], x[1]); }},
      {"xlogy special", [](I x) { return xlogy(x[0], x[1]); }},
      {"xlogy zero", [](I x) { return xlogy(x[0], x[1].detach()); }},
      {"xlogy number", [](I x) { return xlogy(x[0], 3); }},
      {"xlogy of number", [](I x) { return xlogy(2.5, x[0]); }},
      {"float_power integers", [](I x) { return float_power(x[0], -2); }},
      {"hypot", [](I x) { return hypot(x[0], x[1]); }},
      {"hypot special", [](I x) { return hypot(x[0], x[1]).detach(); }},
      {"copysign", [](I x) { return copysign(x[0], x[1]); }},
      {"copysign zero", [](I x) { return copysign(x[0], x[1]); }},
      {"copysign number", [](I x) { return copysign(x[0], -0.0); }},
      {"copysign integers", [](I x) { return copysign(cast(x[0], DType::f64), -1.0); }},
      {"heaviside", [](I x) { return heaviside(x[0], x[1]); }},
      {"fmax", [](I x) { return fmax(x[0], x[1]); }},
      {"fmin", [](I x) { return fmin(x[0], x[1]); }},
      {"fmax integers", [](I x) { return fmax(x[0], x[1]); }},
      {"clamp tensors", [](I x) { return clamp(x[0], x[1], x[2]); }},
      {"clamp nan", [](I x) { return clamp(x[0], x[1], x[2]).detach(); }},
      {"clamp below", [](I x) { return clamp(x[0], x[1]); }},
      {"clamp above", [](I x) { return clamp(x[0], Tensor(), x[1]); }},
  };
}

Rows value_rows() {
  return {
      {"nan_to_num", [](I x) { return nan_to_num(x[0], 1.5, 7, -9); }},
      {"nan_to_num integers", [](I x) { return nan_to_num(x[0]); }},
      {"signbit", [](I x) { return signbit(x[0]); }},
      {"signbit integers", [](I x) { return signbit(x[0]); }},
      {"isposinf", [](I x) { return isposinf(x[0]); }},
      {"isneginf", [](I x) { return isneginf(x[0]); }},
      {"isposinf integers", [](I x) { return isposinf(x[0]); }},
      {"isreal", [](I x) { return isreal(x[0]); }},
      {"positive", [](I x) { return positive(x[0]); }},
      {"frac", [](I x) { return frac(x[0]); }},
      {"deg2rad", [](I x) { return deg2rad(x[0]); }},
      {"rad2deg", [](I x) { return rad2deg(x[0]); }},
      {"logit", [](I x) { return logit(x[0]); }},
      {"logit eps", [](I x) { return logit(x[0], 0.25); }},
      {"logit ends", [](I x) { return logit(x[0]).detach(); }},
  };
}

Rows statistics_rows() {
  return {
      {"nansum", [](I x) { return nansum(x[0]); }},
      {"nansum axis", [](I x) { return nansum(x[0], {1}, true); }},
      {"nansum integers", [](I x) { return nansum(x[0]); }},
      {"nanmean", [](I x) { return nanmean(x[0]); }},
      {"nanmean axis", [](I x) { return nanmean(x[0], {1}); }},
      {"nanmean none", [](I x) { return nanmean(x[0], {1}).detach(); }},
      {"nanmean empty", [](I x) { return nanmean(x[0]); }},
      {"var_mean", [](I x) { return var_mean(x[0]); }},
      {"var_mean axes",
       [](I x) {
         return var_mean(x[0], {0, 2}, true, 0);
       }},
      {"std_mean", [](I x) { return std_mean(x[0], {1}); }},
      {"cov", [](I x) { return cov(x[0]); }},
      {"cov vector", [](I x) { return cov(x[0]); }},
      {"cov 0", [](I x) { return cov(x[0], 0); }},
      {"cov fweights",
       [](I x) {
         return cov(x[0], 1, i64({1, 3, 2, 1}));
       }},
      {"cov aweights",
       [](I x) {
         return cov(x[0], 1, {}, f64({0.5, 1, 2, 0.25}));
       }},
      {"cov both",
       [](I x) {
         return cov(x[0], 2, i64({1, 3, 2, 1}), f64({0.5, 1, 2, 0.25}));
       }},
      {"corrcoef", [](I x) { return corrcoef(x[0]); }},
      {"corrcoef vector", [](I x) { return corrcoef(x[0]); }},
      {"trapezoid", [](I x) { return trapezoid(x[0]); }},
      {"trapezoid dx", [](I x) { return trapezoid(x[0], 0.25, 0); }},
      {"trapezoid x", [](I x) { return trapezoid(x[0], x[1]); }},
      {"trapezoid x axis", [](I x) { return trapezoid(x[0], x[1], 0); }},
      {"trapezoid matrix", [](I x) { return trapezoid(x[0], x[1]); }},
      {"trapezoid one", [](I x) { return trapezoid(x[0]); }},
      {"gradient", [](I x) { return gradient(x[0]); }},
      {"gradient spacing", [](I x) { return gradient(x[0], 0.5, {1}); }},
      {"gradient spacings",
       [](I x) {
         return gradient(x[0], std::vector<double>{0.5, 2}, {}, 2);
       }},
      {"gradient coordinates",
       [](I x) {
         return gradient(x[0], std::vector{f64({0, 0.5, 2, 2.5, 4})}, {1});
       }},
      {"gradient coordinates 2",
       [](I x) {
         return gradient(x[0], std::vector{f64({0, 0.5, 2, 2.5, 4})}, {}, 2);
       }},
      {"gradient two", [](I x) { return gradient(x[0]); }},
      {"logcumsumexp", [](I x) { return logcumsumexp(x[0], 1); }},
      {"logcumsumexp first", [](I x) { return logcumsumexp(x[0], 0); }},
      {"logcumsumexp number", [](I x) { return logcumsumexp(x[0], 0); }},
      {"logcumsumexp special", [](I x) { return logcumsumexp(x[0], 0).detach(); }},
  };
}
}  // namespace

std::vector<TorchRow> arithmetic_rows() {
  Rows all = arithmetic_only();
  for (const Rows& more : {value_rows(), statistics_rows()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace plugrad::test
