// Gradients of functions that depend on an order.
#include <tests/core/gradient_rows.hpp>

namespace plugrad::test {
namespace {
constexpr double kLow = -2, kHigh = 2;
constexpr bool kNoTies = true;
using Rows = std::vector<GradientRow>;
using I = const Inputs&;

Rows sorting_rows() {
  return {
      {"sort", "First", {{3, 2}}, kLow, kHigh, [](I x) { return exp(sort(x[0], 0).values); }, {}, kNoTies},
      {"sort", "Descending", {{2, 4}}, kLow, kHigh, [](I x) { return x[0] * sort(x[0], -1, true).values; }, {}, kNoTies},
      {"msort", "Plain", {{3, 2}}, kLow, kHigh, [](I x) { return exp(msort(x[0])); }, {}, kNoTies},
      {"topk", "Smallest", {{2, 4}}, kLow, kHigh, [](I x) { return exp(topk(x[0], 3, 1, false).values); }, {}, kNoTies},
      {"kthvalue", "Second", {{3, 4}}, kLow, kHigh, [](I x) { return exp(kthvalue(x[0], 2).values); }, {}, kNoTies},
      {"max_with_indices", "Kept", {{3, 4}}, kLow, kHigh, [](I x) { return x[0] * max(x[0], 1, true).values; }, {}, kNoTies},
      {"min_with_indices", "First", {{3, 4}}, kLow, kHigh, [](I x) { return exp(min(x[0], 0).values); }, {}, kNoTies},
      {"amax", "Both", {{3, 4}}, kLow, kHigh, [](I x) { return exp(amax(x[0])); }, {}, kNoTies},
      {"amin", "Kept", {{3, 4}}, kLow, kHigh, [](I x) { return x[0] * amin(x[0], {0}, true); }, {}, kNoTies},
      {"aminmax", "Product", {{3, 4}}, kLow, kHigh, [](I x) { return aminmax(x[0], {1}).min * aminmax(x[0], {1}).max; },
       {}, kNoTies},
      {"median", "All", {{2, 3}}, kLow, kHigh, [](I x) { return exp(median(x[0])); }, {}, kNoTies},
      {"median", "Line", {{3, 4}}, kLow, kHigh, [](I x) { return exp(median(x[0], 1).values); }, {}, kNoTies},
      {"nanmedian", "All", {{2, 3}}, kLow, kHigh, [](I x) { return exp(nanmedian(x[0])); }, {}, kNoTies},
      {"nanmedian", "Line", {{3, 4}}, kLow, kHigh, [](I x) { return exp(nanmedian(x[0], 0, true).values); }, {}, kNoTies},
      {"mode", "Line", {{3, 4}}, kLow, kHigh, [](I x) { return exp(mode(x[0]).values); }, {}, kNoTies},
  };
}

Rows other_rows() {
  return {
      {"quantile", "Linear", {{3, 4}}, kLow, kHigh, [](I x) { return exp(quantile(x[0], {0.2, 0.5}, {1})); }, {}, kNoTies},
      {"quantile", "Midpoint", {{3, 4}}, kLow, kHigh,
       [](I x) { return exp(quantile(x[0], 0.2, {}, false, Interpolation::midpoint)); }, {}, kNoTies},
      {"nanquantile", "Kept", {{3, 4}}, kLow, kHigh,
       [](I x) { return x[0] * nanquantile(x[0], 0.7, {0}, true); }, {}, kNoTies},
      {"cummax", "Last", {{3, 4}}, kLow, kHigh, [](I x) { return exp(cummax(x[0], 1).values); }, {}, kNoTies},
      {"cummin", "First", {{3, 4}}, kLow, kHigh, [](I x) { return exp(cummin(x[0], 0).values); }, {}, kNoTies},
      {"diff", "Twice", {{3, 4}, {3, 1}}, kLow, kHigh, [](I x) { return exp(diff(x[0], 2, 1, x[1])); }},
      {"unique", "Elements", {{2, 3}}, kLow, kHigh, [](I x) { return exp(unique(x[0]).values); }, {}, kNoTies},
      {"unique_consecutive", "Rows", {{3, 2}}, kLow, kHigh,
       [](I x) { return exp(unique_consecutive(cat({x[0], x[0]}, 0), false, false, 0).values); }, {}, kNoTies},
      {"bincount", "Weights", {{5}}, kLow, kHigh, [](I x) { return exp(bincount(i64({1, 3, 1, 0, 1}), x[0])); }},
  };
}
}  // namespace

std::vector<GradientRow> order_rows() {
  Rows all = sorting_rows();
  for (GradientRow& row : other_rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace plugrad::test
