// Gradients of special functions and of functions with further parameters.
#include <tests/core/gradient_rows.hpp>

namespace plugrad::test {
namespace {
using Rows = std::vector<GradientRow>;
using I = const Inputs&;

Rows error_function_rows() {
  return {
      {"erfc", "Plain", {{2, 3}}, -2, 2, [](I x) { return erfc(x[0]); }},
      {"erfc", "Tail", {{2, 3}}, 3, 4, [](I x) { return log(erfc(x[0])); }},
      {"erfcx", "Plain", {{2, 3}}, -1, 4, [](I x) { return erfcx(x[0]); }},
      {"erfinv", "Plain", {{2, 3}}, -0.9, 0.9, [](I x) { return erfinv(x[0]); }},
      {"ndtr", "Plain", {{2, 3}}, -2, 2, [](I x) { return ndtr(x[0]); }},
      {"log_ndtr", "Plain", {{2, 3}}, -5, 2, [](I x) { return log_ndtr(x[0]); }},
      {"ndtri", "Plain", {{2, 3}}, 0.1, 0.9, [](I x) { return ndtri(x[0]); }},
  };
}

Rows gamma_rows() {
  return {
      {"lgamma", "Positive", {{2, 3}}, 0.5, 9, [](I x) { return lgamma(x[0]); }},
      {"lgamma", "Negative", {{2, 3}}, -1.8, -1.2, [](I x) { return lgamma(x[0]); }},
      {"digamma", "Positive", {{2, 3}}, 0.5, 9, [](I x) { return digamma(x[0]); }},
      {"digamma", "Negative", {{2, 3}}, -1.8, -1.2, [](I x) { return digamma(x[0]); }},
      {"polygamma", "Second", {{2, 3}}, 1, 3, [](I x) { return polygamma(2, x[0]); }},
      {"polygamma", "Negative", {{2, 3}}, -1.7, -1.3, [](I x) { return polygamma(1, x[0]); }},
      {"mvlgamma", "Plain", {{2, 3}}, 2, 4, [](I x) { return mvlgamma(x[0], 3); }},
  };
}

Rows bessel_rows() {
  return {
      {"i0", "Plain", {{2, 3}}, -2, 2, [](I x) { return i0(x[0]); }},
      {"i0e", "Plain", {{2, 3}}, 0.5, 3, [](I x) { return i0e(x[0]); }},
      {"i1", "Plain", {{2, 3}}, 0.5, 3, [](I x) { return i1(x[0]); }},
      {"i1e", "Far", {{2, 3}}, 9, 11, [](I x) { return i1e(x[0]); }},
      {"sinc", "Plain", {{2, 3}}, 0.25, 2, [](I x) { return sinc(x[0]); }},
      {"entr", "Plain", {{2, 3}}, 0.25, 2, [](I x) { return entr(x[0]); }},
      {"xlog1py", "Broadcast", {{2, 3}, {3}}, 0.5, 2, [](I x) { return xlog1py(x[0], x[1]); }},
      {"xlog1py", "Number", {{2, 3}}, 0.5, 2, [](I x) { return xlog1py(2, x[0]); }},
  };
}

Rows product_rows() {
  return {
      {"addbmm", "Factors", {{2, 2}, {2, 2, 3}, {2, 3, 2}}, -2, 2, [](I x) { return addbmm(x[0], x[1], x[2], 2, 0.5); }},
      {"addr", "Factors", {{2, 3}, {2}, {3}}, -2, 2, [](I x) { return addr(x[0], x[1], x[2], 2, 0.5); }},
      {"rsub", "Alpha", {{2, 3}, {3}}, -2, 2, [](I x) { return rsub(x[0], x[1], 2) * x[0]; }},
      {"ldexp", "Plain", {{2, 3}, {3}}, -1, 1, [](I x) { return ldexp(x[0], x[1]); }},
      {"tensordot", "Ones", {{1, 2}, {3, 2}}, -2, 2, [](I x) { return tensordot(x[0], x[1], {0}, {0}); }},
      {"sum_to_size", "Plain", {{2, 3, 2}}, -2, 2, [](I x) { return exp(sum_to_size(x[0], {3, 1})); }},
      {"cumulative_trapezoid", "Distance", {{3, 2}}, -2, 2, [](I x) { return exp(cumulative_trapezoid(x[0], 0.5, 0)); }},
      {"cumulative_trapezoid", "Points", {{2, 3}, {3}}, -2, 2, [](I x) { return cumulative_trapezoid(x[0], x[1]); }},
      {"clamp_min", "Number", {{2, 3}}, -2, 2, [](I x) { return clamp_min(x[0], 0.5) * x[0]; }, {0.5}},
      {"clamp_max", "Number", {{2, 3}}, -2, 2, [](I x) { return clamp_max(x[0], 0.5) * x[0]; }, {0.5}},
  };
}

Rows place_rows() {
  return {
      {"diagflat", "Above", {{2, 2}}, -2, 2, [](I x) { return exp(diagflat(x[0], 1)); }},
      {"masked_fill",
       "Tensor",
       {{2, 3}, {}},
       -2,
       2,
       [](I x) { return exp(masked_fill(x[0], gt(x[0].detach(), 0), x[1])); },
       {0}},
      {"index_reduce",
       "Mean",
       {{3, 2}, {2, 2}},
       -2,
       2,
       [](I x) { return exp(index_reduce(x[0], 0, i64({2, 2}, {2}), x[1], ScatterReduction::mean)); }},
      {"round", "Decimals", {{2, 3}}, 0.11, 0.14, [](I x) { return round(x[0], 1) * x[0]; }},
      {"norm", "Zero", {{2, 3}}, 0.5, 2, [](I x) { return norm(x[0], 0, {1}, true) * x[0]; }},
      {"gather", "Scalar", {{}}, -2, 2, [](I x) { return exp(gather(x[0], 0, i64({0, 0}, {2}))); }},
  };
}
}  // namespace

std::vector<GradientRow> special_rows() {
  Rows all = error_function_rows();
  for (const Rows& more : {gamma_rows(), bessel_rows(), product_rows(), place_rows()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace plugrad::test
