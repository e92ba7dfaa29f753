// Plain loops in host memory: SUM, MAX, MIN and ARGMAX.
#pragma once
#include <plugrad/sdk/loops/accumulator.hpp>
#include <plugrad/sdk/loops/elements.hpp>
#include <plugrad/sdk/loops/ordering.hpp>
#include <plugrad/sdk/rows.hpp>

#include <cmath>

#pragma GCC visibility push(hidden)
namespace plugrad::loops {
namespace of_reduction {

// Calls body(out, slice) for each element of the output: slice(f) calls f with each input element reduced to `out`, in
// row-major order. A walk over the output's shape does not move along the reduced axes, where its extent is 1, so it visits
// the first element of each slice; a second walk, over the reduced axes alone, visits the elements of the slice.
template <class Out, class T, class Body> void for_each_slice(const Call& call, Body body) {
  const Elements<Out> out(call.out());
  const Elements<T> x(call.in(0));
  plugrad_view reduced = call.in(0);
  for (int axis = 0; axis < reduced.rank; ++axis)
    if (call.out().shape[axis] != 1) reduced.shape[axis] = 1;
  for_each(
      call.out(),
      [&](Out& result, T& first) {
        body(result, [&](auto visit) { for_each(reduced, visit, Elements<T>(&first, x.strides)); });
      },
      out, x);
}

template <class Out, class T> void sum(const Call& call) {
  for_each_slice<Out, T>(call, [&](Out& out, auto slice) {
    Accumulator<Out> sum;
    if (call.accumulates()) sum.add(out);
    slice([&](const T& x) { sum.add(x); });
    out = static_cast<Out>(sum.total());
  });
}

template <class Before, class T> void extreme(const Call& call) {
  for_each_slice<T, T>(call, [](T& out, auto slice) {
    const T* best = nullptr;
    slice([&](const T& x) {
      if (!best || Before()(x, *best)) best = &x;
    });
    out = *best;
  });
}

template <class T> void argmax(const Call& call) {
  for_each_slice<int64_t, T>(call, [](int64_t& out, auto slice) {
    const T* best = nullptr;
    int64_t index = 0;
    slice([&](const T& x) {
      if (!best || Larger()(x, *best)) {
        best = &x;
        out = index;
      }
      ++index;
    });
  });
}

template <class... T> constexpr auto for_numbers(Types<T...>) {
  return join(std::array{kernel<extreme<Larger, T>>(PLUGRAD_OP_MAX, element_dtype<T>)...},
              std::array{kernel<extreme<Smaller, T>>(PLUGRAD_OP_MIN, element_dtype<T>)...},
              std::array{kernel<argmax<T>>(PLUGRAD_OP_ARGMAX, element_dtype<T>)...});
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> sums(Types<T...>) {
  return {kernel<sum<OperandType<PLUGRAD_OP_SUM, 0, T>, T>>(PLUGRAD_OP_SUM, element_dtype<T>, PLUGRAD_ALL_LAYOUTS,
                                                            kPlainFlags | PLUGRAD_ACCUMULATE)...};
}

inline constexpr auto kRows = join(sums(kAny), for_numbers(kNumbers));

}  // namespace of_reduction

inline constexpr const auto& kReductionRows = of_reduction::kRows;

}  // namespace plugrad::loops
#pragma GCC visibility pop
