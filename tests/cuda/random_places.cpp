// Steps that sort, select, and write to places.
#include <tests/cuda/random_kinds.hpp>

#include <plugrad/plugrad.hpp>

namespace plugrad::test {
namespace {

// Places from 0 to extent - 1.
Tensor places(S s, const Shape& shape, T x, int64_t extent) { return remainder(whole(s, shape, x), extent); }
Tensor places(S s, T x) { return places(s, x.shape(), x, x.size(-1)); }
// Each place of the last axis once, in random order.
Tensor each_place(S s, T x) { return argsort(ordered(s, x), -1); }
// One line of places in the last axis.
Tensor line_of(S s, T x) { return places(s, {x.size(-1)}, x, x.size(-1)); }

// The factors are close to 1, so that products of several elements at one place do not grow; otherwise the elements differ.
Tensor reduced(S s, T x, ScatterReduction how) {
  const Tensor source = how == ScatterReduction::prod ? 1 + 0.125 * tanh(x) : ordered(s, x);
  return scatter_reduce(x, -1, places(s, x), source, how, how != ScatterReduction::mean);
}
Tensor selected_and_back(S s, T x) { return masked_scatter(0.5 * x, mask(s, x), masked_select(x, mask(s, x)) * 2); }
Tensor nonzero_and_back(S s, T x) {
  const Tensor found = argwhere(mask(s, reshape(x, {-1})));
  return index_add(reshape(x, {-1}), 0, reshape(found, {-1}), 0.5 * ones({found.size(0)}, x.dtype(), x.device()));
}
Tensor diagonal_and_back(T x) { return diagonal_scatter(x, tanh(diagonal(x, 0, -2, -1)), 0, -2, -1); }
Tensor through_diagonals(T x) { return sum(diag_embed(x), {-1}); }
Tensor middle_replaced(T x) { return slice_scatter(x, 0.5 * slice(x, -1, x.size(-1) / 2, x.size(-1)), -1, x.size(-1) / 2); }
Tensor unbound_and_stacked(T x) {
  std::vector<Tensor> parts = unbind(x, -1);
  for (Tensor& part : parts) part = tanh(part);
  return stack(parts, -1);
}
Tensor indexed_and_written(S s, T x) {
  Tensor copy = 0.5 * x;
  copy = index_fill(copy, -1, line_of(s, x), 0.25);
  return copy + take_along_dim(x, places(s, x), -1);
}

constexpr StepKind kPlaces[] = {
    {"sort of ordered", draw_line, [](S s, T a, T) { return sort(ordered(s, a), -1).values; }},
    {"descending sort of ordered", draw_line, [](S s, T a, T) { return sort(ordered(s, a), 0, true).values; }},
    {"argsort as places", draw_line, [](S s, T a, T) { return gather(a, -1, each_place(s, a)); }},
    {"topk of ordered", draw_line, [](S s, T a, T) { return a * topk(ordered(s, a), 1).values; }},
    {"kthvalue of ordered", draw_line, [](S s, T a, T) { return a * kthvalue(ordered(s, a), 1, -1, true).values; }},
    {"median of ordered", draw_line, [](S s, T a, T) { return a + median(ordered(s, a), 0, true).values; }},
    {"cummax of ordered", draw_line, [](S s, T a, T) { return cummax(ordered(s, a), -1).values; }},
    {"min with places", draw_line, [](S s, T a, T) { return a * min(ordered(s, a), -1, true).values; }},
    {"quantile of ordered", draw_seeded, [](S s, T a, T) { return a + quantile(ordered(s, a), 0.5); }},
    {"take", draw_seeded, [](S s, T a, T) { return take(a, places(s, a.shape(), a, a.count())); }},
    {"index_select", draw_line, [](S s, T a, T) { return index_select(a, -1, line_of(s, a)); }},
    {"index_add", draw_line, [](S s, T a, T) { return index_add(a, -1, line_of(s, a), tanh(a), 0.5); }},
    {"index_fill and take_along_dim", draw_line, [](S s, T a, T) { return indexed_and_written(s, a); }},
    {"scatter", draw_line, [](S s, T a, T) { return scatter(a, -1, each_place(s, a), tanh(a)); }},
    {"scatter of a number", draw_line, [](S s, T a, T) { return scatter(a, -1, places(s, a), 0.5); }},
    {"scatter_reduce sum", draw_line, [](S s, T a, T) { return reduced(s, a, ScatterReduction::sum); }},
    {"scatter_reduce prod", draw_line, [](S s, T a, T) { return reduced(s, a, ScatterReduction::prod); }},
    {"scatter_reduce mean", draw_line, [](S s, T a, T) { return reduced(s, a, ScatterReduction::mean); }},
    {"scatter_reduce amax", draw_line, [](S s, T a, T) { return reduced(s, a, ScatterReduction::amax); }},
    {"masked_select and back", draw_seeded, [](S s, T a, T) { return selected_and_back(s, a); }},
    {"nonzero and index_add", draw_seeded, [](S s, T a, T) { return reshape(nonzero_and_back(s, a), a.shape()); }},
    {"diagonal_scatter", draw_plane, [](S, T a, T) { return diagonal_and_back(a); }},
    {"diag_embed", draw_line, [](S, T a, T) { return through_diagonals(a); }},
    {"slice_scatter", draw_line, [](S, T a, T) { return middle_replaced(a); }},
    {"unbind and stack", draw_line, [](S, T a, T) { return unbound_and_stacked(a); }},
    {"searchsorted", draw_line,
     [](S s, T a, T) { return times(a, searchsorted(sort(ordered(s, reshape(a, {-1}))).values, ordered(s, a))); }},
};
}  // namespace

std::span<const StepKind> place_kinds() { return kPlaces; }

}  // namespace plugrad::test
