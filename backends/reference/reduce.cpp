#include <backends/reference/accumulator.hpp>
#include <backends/reference/elements.hpp>
#include <backends/reference/families.hpp>

#include <cmath>

namespace plugrad::reference {
namespace {

// Calls body(out, slice) for each element of the output with what is reduced to it: slice(f) calls f with each of its
// elements, in row-major order. Walking the output's shape never moves along the reduced axes, where its extent is 1: so the
// walk arrives at the first element of each slice, and a second walk, over the reduced axes alone, at the others.
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

// Whether x comes before y where NaN is larger, and smaller, than anything.
struct Larger {
  template <class T> bool operator()(T x, T y) const { return x > y || (std::isnan(x) && !std::isnan(y)); }
};
struct Smaller {
  template <class T> bool operator()(T x, T y) const { return x < y || (std::isnan(x) && !std::isnan(y)); }
};

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

// ln sum e^x of n elements. The largest is taken out, so that nothing overflows.
template <class T> double log_sum_exp(const T* x, int64_t n, int64_t stride) {
  double largest = x[0];
  for (int64_t i = 1; i < n; ++i)
    if (Larger()(static_cast<double>(x[i * stride]), largest)) largest = x[i * stride];
  Accumulator<double> sum;
  for (int64_t i = 0; i < n; ++i) sum.add(std::exp(x[i * stride] - largest));
  return largest + std::log(sum.total());
}

template <class T> void log_softmax(const Call& call) {
  const int axis = call.attributes<plugrad_axis>().axis;
  const Elements<T> out(call.out()), x(call.in(0));
  const int64_t n = call.out().shape[axis], out_stride = out.strides[axis], x_stride = x.strides[axis];
  for_each(
      without_axis(call.out(), axis),
      [&](T& y, T& row) {
        const double lse = log_sum_exp(&row, n, x_stride);
        for (int64_t i = 0; i < n; ++i) (&y)[i * out_stride] = static_cast<T>((&row)[i * x_stride] - lse);
      },
      out, x);
}

template <class T> void cross_entropy(const Call& call) {
  const Elements<T> loss(call.out(0)), lse(call.out(1)), x(call.in(0));
  const Elements<int64_t> target(call.in(1));
  const int64_t classes = call.in(0).shape[1], stride = x.strides[1];
  for_each(
      call.out(0),
      [&](T& row_loss, T& row_lse, T& row, const int64_t& chosen) {
        if (chosen < 0 || chosen >= classes)
          throw BackendError(PLUGRAD_INDEX_ERROR, "[cross_entropy] target " + std::to_string(chosen) + ": one from 0 to " +
                                                      std::to_string(classes - 1) + " expected");
        const double exact = log_sum_exp(&row, classes, stride);
        row_lse = static_cast<T>(exact);
        row_loss = static_cast<T>(exact - (&row)[chosen * stride]);
      },
      loss, lse, x, target);
}

template <class... T> constexpr auto for_numbers(Types<T...>) {
  return join(std::array{kernel<extreme<Larger, T>>(PLUGRAD_OP_MAX, dtype_of<T>)...},
              std::array{kernel<extreme<Smaller, T>>(PLUGRAD_OP_MIN, dtype_of<T>)...},
              std::array{kernel<argmax<T>>(PLUGRAD_OP_ARGMAX, dtype_of<T>)...});
}
template <class... T> constexpr auto for_floating(Types<T...>) {
  constexpr uint16_t kMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;  // a number has no classes to choose from
  return join(std::array{kernel<log_softmax<T>>(PLUGRAD_OP_LOG_SOFTMAX, dtype_of<T>)...},
              std::array{kernel<cross_entropy<T>>(PLUGRAD_OP_CROSS_ENTROPY, dtype_of<T>, kMemory)...});
}
template <class Out, class... T> constexpr std::array<KernelRow, sizeof...(T)> sums(Types<T...>) {
  return {kernel<sum<Out, T>>(PLUGRAD_OP_SUM, dtype_of<T>, PLUGRAD_ALL_LAYOUTS, kPlainFlags | PLUGRAD_ACCUMULATE)...};
}

constexpr auto kRows = join(sums<float>(Types<float>()), sums<double>(Types<double>()),
                            sums<int64_t>(Types<int64_t, bool>()), for_numbers(kNumbers), for_floating(kFloating));

}  // namespace

Rows reduce_rows() { return kRows; }

}  // namespace plugrad::reference
