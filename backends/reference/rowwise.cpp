#include <backends/reference/kernels.hpp>
#include <plugrad/sdk/loops/accumulator.hpp>
#include <plugrad/sdk/loops/elements.hpp>
#include <plugrad/sdk/loops/ordering.hpp>

#include <cmath>
#include <numeric>

namespace plugrad::reference {
namespace {

// ln sum e^x is largest + rest. Differences from elements near the largest element are exact only if they use the two parts
// separately.
struct LogSum {
  double largest, rest;
};

// Of n elements. Subtracts the largest element first, so that nothing overflows.
template <class T> LogSum log_sum_exp(const T* x, int64_t n, int64_t stride) {
  double largest = x[0];
  for (int64_t i = 1; i < n; ++i)
    if (Larger()(static_cast<double>(x[i * stride]), largest)) largest = x[i * stride];
  Accumulator<double> sum;
  for (int64_t i = 0; i < n; ++i) sum.add(std::exp(x[i * stride] - largest));
  return {largest, std::log(sum.total())};
}

template <class T> void log_softmax(const Call& call) {
  const int axis = call.attributes<plugrad_axis>().axis;
  const Elements<T> out(call.out()), x(call.in(0));
  const int64_t n = call.out().shape[axis], out_stride = out.strides[axis], x_stride = x.strides[axis];
  for_each(
      without_axis(call.out(), axis),
      [&](T& y, T& row) {
        const auto [largest, rest] = log_sum_exp(&row, n, x_stride);
        for (int64_t i = 0; i < n; ++i) (&y)[i * out_stride] = static_cast<T>((&row)[i * x_stride] - largest - rest);
      },
      out, x);
}

template <class T> void softmax(const Call& call) {
  const int axis = call.attributes<plugrad_axis>().axis;
  const Elements<T> out(call.out()), x(call.in(0));
  const int64_t n = call.out().shape[axis], out_stride = out.strides[axis], x_stride = x.strides[axis];
  for_each(
      without_axis(call.out(), axis),
      [&](T& y, T& row) {
        const auto [largest, rest] = log_sum_exp(&row, n, x_stride);
        for (int64_t i = 0; i < n; ++i)
          (&y)[i * out_stride] = static_cast<T>(std::exp((&row)[i * x_stride] - largest - rest));
      },
      out, x);
}

template <class T> void cross_entropy(const Call& call) {
  using W = AccumulatorType<T>;
  const Elements<W> loss(call.out(0)), lse(call.out(1));
  const Elements<T> x(call.in(0));
  const Elements<int64_t> target(call.in(1));
  const int64_t classes = call.in(0).shape[1], stride = x.strides[1];
  for_each(
      call.out(0),
      [&](W& row_loss, W& row_lse, T& row, const int64_t& chosen) {
        if (chosen < 0 || chosen >= classes)
          throw BackendError(PLUGRAD_INDEX_ERROR, "[cross_entropy] target " + std::to_string(chosen) +
                                                      " is out of range for " + std::to_string(classes) + " classes");
        const auto [largest, rest] = log_sum_exp(&row, classes, stride);
        row_lse = static_cast<W>(largest + rest);
        row_loss = static_cast<W>(largest - (&row)[chosen * stride] + rest);
      },
      loss, lse, x, target);
}

template <class T> void log_softmax_backward(const Call& call) {
  const int axis = call.attributes<plugrad_axis>().axis;
  const Elements<T> out(call.out()), grad(call.in(0)), y(call.in(1));
  const int64_t n = call.out().shape[axis];
  const int64_t out_stride = out.strides[axis], grad_stride = grad.strides[axis], y_stride = y.strides[axis];
  for_each(
      without_axis(call.out(), axis),
      [&](T& result, const T& g, const T& row) {
        Accumulator<T> sum;
        for (int64_t i = 0; i < n; ++i) sum.add((&g)[i * grad_stride]);
        for (int64_t i = 0; i < n; ++i) {
          const double probability = std::exp(static_cast<double>((&row)[i * y_stride]));
          (&result)[i * out_stride] = static_cast<T>((&g)[i * grad_stride] - probability * sum.total());
        }
      },
      out, grad, y);
}

template <class T> void softmax_backward(const Call& call) {
  const int axis = call.attributes<plugrad_axis>().axis;
  const Elements<T> out(call.out()), grad(call.in(0)), y(call.in(1));
  const int64_t n = call.out().shape[axis];
  const int64_t out_stride = out.strides[axis], grad_stride = grad.strides[axis], y_stride = y.strides[axis];
  for_each(
      without_axis(call.out(), axis),
      [&](T& result, const T& g, const T& row) {
        Accumulator<T> sum;
        for (int64_t i = 0; i < n; ++i) sum.add(static_cast<double>((&g)[i * grad_stride]) * (&row)[i * y_stride]);
        for (int64_t i = 0; i < n; ++i)
          (&result)[i * out_stride] = static_cast<T>((&row)[i * y_stride] * ((&g)[i * grad_stride] - sum.total()));
      },
      out, grad, y);
}

template <class T> void cross_entropy_backward(const Call& call) {
  using W = AccumulatorType<T>;
  Elements<W> grad(call.in(0)), lse(call.in(3));
  Elements<int64_t> target(call.in(2));
  const Elements<T> out(call.out()), x(call.in(1));
  const int64_t classes = call.out().shape[1];
  int64_t column = 0;
  // Operands of shape (n) do not move along the second axis: their strides are 0 there.
  for_each(
      call.out(),
      [&](T& result, const W& g, const T& logit, const int64_t& chosen, const W& row_lse) {
        if (chosen < 0 || chosen >= classes)
          throw BackendError(PLUGRAD_INDEX_ERROR, "[cross_entropy_backward] target " + std::to_string(chosen) +
                                                      " is out of range for " + std::to_string(classes) + " classes");
        const double probability = std::exp(static_cast<double>(logit) - static_cast<double>(row_lse));
        result = static_cast<T>(g * (probability - (column == chosen)));
        column = (column + 1) % classes;
      },
      out, grad, x, target, lse);
}

// The result has as many indices along the axis as the op keeps: ARGSORT all, TOPK the first of them.
template <class T> void argsort(const Call& call) {
  const auto sort = call.attributes<plugrad_sort>();
  const Elements<int64_t> out(call.out());
  const Elements<T> x(call.in(0));
  const int64_t out_stride = out.strides[sort.axis], x_stride = x.strides[sort.axis];
  std::vector<int64_t> order(call.in(0).shape[sort.axis]);
  const int64_t kept = call.out().shape[sort.axis];
  for_each(
      without_axis(call.out(), sort.axis),
      [&](int64_t& first, const T& line) {
        const auto larger = [&](int64_t i, int64_t j) { return Larger()((&line)[i * x_stride], (&line)[j * x_stride]); };
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, [&](int64_t i, int64_t j) { return sort.descending ? larger(i, j) : larger(j, i); });
        for (int64_t i = 0; i < kept; ++i) (&first)[i * out_stride] = order[static_cast<size_t>(i)];
      },
      out, x);
}

template <class T> void cumsum(const Call& call) {
  using Result = OperandType<PLUGRAD_OP_CUMSUM, 0, T>;
  const auto scan = call.attributes<plugrad_scan>();
  const Elements<Result> out(call.out());
  const Elements<T> x(call.in(0));
  const int64_t n = call.out().shape[scan.axis], out_stride = out.strides[scan.axis], x_stride = x.strides[scan.axis];
  for_each(
      without_axis(call.out(), scan.axis),
      [&](Result& first, const T& line) {
        Accumulator<AccumulatorType<Result>> sum;
        for (int64_t i = 0; i < n; ++i) {
          const int64_t at = scan.reverse ? n - 1 - i : i;
          sum.add((&line)[at * x_stride]);
          (&first)[at * out_stride] = static_cast<Result>(sum.total());
        }
      },
      out, x);
}

template <uint32_t opcode, class... T> constexpr std::array<KernelRow, sizeof...(T)> orders(Types<T...>) {
  return {kernel<argsort<T>>(opcode, element_dtype<T>)...};
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> scans(Types<T...>) {
  return {kernel<cumsum<T>>(PLUGRAD_OP_CUMSUM, element_dtype<T>)...};
}
template <class... T> constexpr auto rowwise_rows(Types<T...>) {
  constexpr uint16_t kMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;  // a number has no classes to choose from
  return join(std::array{kernel<log_softmax<T>>(PLUGRAD_OP_LOG_SOFTMAX, element_dtype<T>)...},
              std::array{kernel<softmax<T>>(PLUGRAD_OP_SOFTMAX, element_dtype<T>)...},
              std::array{kernel<softmax_backward<T>>(PLUGRAD_OP_SOFTMAX_BACKWARD, element_dtype<T>)...},
              std::array{kernel<cross_entropy<T>>(PLUGRAD_OP_CROSS_ENTROPY, element_dtype<T>, kMemory)...},
              std::array{kernel<log_softmax_backward<T>>(PLUGRAD_OP_LOG_SOFTMAX_BACKWARD, element_dtype<T>)...},
              std::array{kernel<cross_entropy_backward<T>>(PLUGRAD_OP_CROSS_ENTROPY_BACKWARD, element_dtype<T>)...});
}
constexpr auto kRowwiseRows =
    join(rowwise_rows(kFloating), scans(kAny), orders<PLUGRAD_OP_ARGSORT>(kAny), orders<PLUGRAD_OP_TOPK>(kAny));

}  // namespace

Rows rowwise_kernels() { return kRowwiseRows; }

}  // namespace plugrad::reference
