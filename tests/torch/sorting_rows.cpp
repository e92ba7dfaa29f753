// Order, distinct elements and places.
#include <tests/torch/rows.hpp>

namespace plugrad::test {
namespace {
using Rows = std::vector<TorchRow>;

Outputs both(const ValuesIndices& pair) { return std::vector{pair.values, pair.indices}; }
Outputs both(const MinMax& pair) { return std::vector{pair.min, pair.max}; }
Outputs all_of(const Unique& each) {
  std::vector<Tensor> all;
  for (const Tensor& part : {each.values, each.inverse, each.counts})
    if (part.defined()) all.push_back(part);
  return all;
}

Rows sorted_rows() {
  return {
      {"sort", [](I x) { return both(sort(x[0])); }},
      {"sort descending", [](I x) { return both(sort(x[0], 0, true)); }},
      {"sort stable", [](I x) { return both(sort(x[0], 1)); }},
      {"sort stable descending", [](I x) { return both(sort(x[0], 1, true)); }},
      {"sort specials", [](I x) { return both(sort(x[0], 1)); }},
      {"argsort", [](I x) { return argsort(x[0], 1, true); }},
      {"sort bools", [](I x) { return both(sort(x[0])); }},
      {"sort empty", [](I x) { return both(sort(x[0], 1)); }},
      {"sort scalar", [](I x) { return both(sort(x[0])); }},
      {"msort", [](I x) { return msort(x[0]); }},
      {"topk", [](I x) { return both(topk(x[0], 2)); }},
      {"topk smallest", [](I x) { return both(topk(x[0], 2, 0, false)); }},
      {"topk scalar", [](I x) { return both(topk(x[0], 1)); }},
      {"kthvalue", [](I x) { return both(kthvalue(x[0], 3)); }},
      {"kthvalue kept", [](I x) { return both(kthvalue(x[0], 2, 0, true)); }},
      {"cummax", [](I x) { return both(cummax(x[0], 1)); }},
      {"cummax ties", [](I x) { return both(cummax(x[0], 1)); }},
      {"cummin", [](I x) { return both(cummin(x[0], 0)); }},
      {"cummin integers", [](I x) { return both(cummin(x[0], 1)); }},
      {"diff", [](I x) { return diff(x[0]); }},
      {"diff twice", [](I x) { return diff(x[0], 2, 0, x[1]); }},
      {"diff ends", [](I x) { return diff(x[0], 1, -1, x[1], x[1]); }},
      {"diff bools", [](I x) { return diff(x[0]); }},
  };
}

Rows extreme_rows() {
  return {
      {"max", [](I x) { return both(max(x[0], 1)); }},
      {"max ties", [](I x) { return both(max(x[0], 1)); }},
      {"min kept", [](I x) { return both(min(x[0], 0, true)); }},
      {"amax", [](I x) { return amax(x[0], {0, 1}); }},
      {"amin", [](I x) { return amin(x[0], {1}, true); }},
      {"aminmax", [](I x) { return both(aminmax(x[0], {1})); }},
      {"median", [](I x) { return median(x[0]); }},
      {"median odd", [](I x) { return median(x[0]); }},
      {"median nan", [](I x) { return median(x[0]); }},
      {"median line", [](I x) { return both(median(x[0], 1)); }},
      {"median kept", [](I x) { return both(median(x[0], 0, true)); }},
      {"nanmedian", [](I x) { return nanmedian(x[0]); }},
      {"nanmedian line", [](I x) { return both(nanmedian(x[0], 1)); }},
      {"mode", [](I x) { return both(mode(x[0], 1)); }},
      {"mode kept", [](I x) { return both(mode(x[0], 1, true)); }},
      {"quantile", [](I x) { return quantile(x[0], 0.3); }},
      {"quantile line", [](I x) { return quantile(x[0], 0.3, {1}); }},
      {"quantile kept", [](I x) { return quantile(x[0], 0.75, {0}, true); }},
      {"quantile lower", [](I x) { return quantile(x[0], 0.3, {1}, false, Interpolation::lower); }},
      {"quantile higher", [](I x) { return quantile(x[0], 0.3, {1}, false, Interpolation::higher); }},
      {"quantile midpoint", [](I x) { return quantile(x[0], 0.3, {1}, false, Interpolation::midpoint); }},
      {"quantile nearest", [](I x) { return quantile(x[0], 0.3, {1}, false, Interpolation::nearest); }},
      {"quantile many", [](I x) { return quantile(x[0], {0, 0.5, 0.9}, {0}); }},
      {"quantile nan", [](I x) { return quantile(x[0], 0.25, {1}); }},
      {"nanquantile", [](I x) { return nanquantile(x[0], 0.5, {1}); }},
  };
}

Rows set_rows() {
  return {
      {"unique", [](I x) { return all_of(unique(x[0], true, true, true)); }},
      {"unique rows", [](I x) { return all_of(unique(x[0], true, true, true, 0)); }},
      {"unique columns", [](I x) { return all_of(unique(x[0], true, false, false, 1)); }},
      {"unique_consecutive", [](I x) { return all_of(unique_consecutive(x[0], true, true)); }},
      {"unique_consecutive columns", [](I x) { return all_of(unique_consecutive(x[0], true, true, 1)); }},
      {"isin", [](I x) { return isin(x[0], x[1]); }},
      {"isin invert", [](I x) { return isin(x[0], x[1], false, true); }},
      {"searchsorted", [](I x) { return searchsorted(x[0], x[1]); }},
      {"searchsorted right", [](I x) { return searchsorted(x[0], x[1], false, true); }},
      {"searchsorted lines", [](I x) { return searchsorted(x[0], x[1]); }},
      {"bucketize", [](I x) { return bucketize(x[0], x[1], true); }},
      {"bucketize right", [](I x) { return bucketize(x[0], x[1], false, true); }},
      {"histc", [](I x) { return histc(x[0], 7); }},
      {"histc ends", [](I x) { return histc(x[0], 4, -1, 3); }},
      {"bincount", [](I x) { return bincount(x[0], {}, 8); }},
      {"bincount weights", [](I x) { return bincount(x[0], x[1].detach()); }},
  };
}
}  // namespace

std::vector<TorchRow> sorting_rows() {
  Rows all;
  for (Rows (*family)() : {sorted_rows, extreme_rows, set_rows})
    for (TorchRow& row : family()) all.push_back(std::move(row));
  return all;
}

}  // namespace plugrad::test
