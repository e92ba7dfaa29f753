#include <backends/reference/accumulator.hpp>
#include <backends/reference/elements.hpp>
#include <backends/reference/families.hpp>

#include <cmath>

namespace plugrad::reference {
namespace {

struct ReluBackward {
  template <class T> T operator()(T grad, T x) const { return x <= 0 ? T(0) : grad; }
};
struct SigmoidBackward {
  template <class T> T operator()(T grad, T y) const { return grad * (y * (1 - y)); }
};
struct TanhBackward {
  template <class T> T operator()(T grad, T y) const { return grad * (1 - y * y); }
};

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

template <class T> void cross_entropy_backward(const Call& call) {
  Elements<T> grad(call.in(0)), lse(call.in(3));
  Elements<int64_t> target(call.in(2));
  const Elements<T> out(call.out()), x(call.in(1));
  const int64_t classes = call.out().shape[1];
  int64_t column = 0;
  // Operands of shape (n) stand still along the second axis: their strides are 0 there.
  for_each(
      call.out(),
      [&](T& result, const T& g, const T& logit, const int64_t& chosen, const T& row_lse) {
        if (chosen < 0 || chosen >= classes)
          throw BackendError(PLUGRAD_INDEX_ERROR, "[cross_entropy_backward] target " + std::to_string(chosen) +
                                                      ": one from 0 to " + std::to_string(classes - 1) + " expected");
        const double probability = std::exp(static_cast<double>(logit) - static_cast<double>(row_lse));
        result = static_cast<T>(g * (probability - (column == chosen)));
        column = (column + 1) % classes;
      },
      out, grad, x, target, lse);
}

template <class... T> constexpr auto rows(Types<T...>) {
  return join(std::array{kernel<map<ReluBackward, T, T, T>>(PLUGRAD_OP_RELU_BACKWARD, dtype_of<T>)...},
              std::array{kernel<map<SigmoidBackward, T, T, T>>(PLUGRAD_OP_SIGMOID_BACKWARD, dtype_of<T>)...},
              std::array{kernel<map<TanhBackward, T, T, T>>(PLUGRAD_OP_TANH_BACKWARD, dtype_of<T>)...},
              std::array{kernel<log_softmax_backward<T>>(PLUGRAD_OP_LOG_SOFTMAX_BACKWARD, dtype_of<T>)...},
              std::array{kernel<cross_entropy_backward<T>>(PLUGRAD_OP_CROSS_ENTROPY_BACKWARD, dtype_of<T>)...});
}
constexpr auto kRows = rows(kFloating);

}  // namespace

Rows backward_rows() { return kRows; }

}  // namespace plugrad::reference
