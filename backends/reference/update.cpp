#include <backends/reference/kernels.hpp>
#include <plugrad/sdk/loops/elements.hpp>

#include <cmath>

namespace plugrad::reference {
namespace {

// The steps compute in double and round the stored results.
template <class T> void descent_step(const Call& call) {
  for_each(
      call.out(), [](T& param, const T& grad, const T& rate) { param = static_cast<T>(param - double{rate} * grad); },
      Elements<T>(call.out()), Elements<T>(call.in(0)), Elements<T>(call.in(1)));
}

template <class T> void sgd_step(const Call& call) {
  const plugrad_sgd& sgd = call.attributes<plugrad_sgd>();
  for_each(
      call.out(0),
      [&](T& param, T& velocity, const T& grad, const T& rate) {
        const double g = grad + sgd.weight_decay * param, v = sgd.momentum * velocity + g;
        velocity = static_cast<T>(v);
        param = static_cast<T>(param - rate * (sgd.nesterov ? g + sgd.momentum * v : v));
      },
      Elements<T>(call.out(0)), Elements<T>(call.out(1)), Elements<T>(call.in(0)), Elements<T>(call.in(1)));
}

template <class T> void adam_step(const Call& call) {
  const plugrad_adam& adam = call.attributes<plugrad_adam>();
  for_each(
      call.out(0),
      [&](T& param, T& mean, T& variance, const T& grad, const T& rate, const T& c1, const T& c2) {
        double p = param, g = grad;
        if (adam.decoupled) p -= rate * adam.weight_decay * p;
        else g += adam.weight_decay * p;
        const double m = adam.beta1 * mean + (1 - adam.beta1) * g;
        const double v = adam.beta2 * variance + (1 - adam.beta2) * g * g;
        mean = static_cast<T>(m);
        variance = static_cast<T>(v);
        param = static_cast<T>(p - rate * (m / c1) / (std::sqrt(v / c2) + adam.epsilon));
      },
      Elements<T>(call.out(0)), Elements<T>(call.out(1)), Elements<T>(call.out(2)), Elements<T>(call.in(0)),
      Elements<T>(call.in(1)), Elements<T>(call.in(2)), Elements<T>(call.in(3)));
}

template <class... T> constexpr auto update_rows(Types<T...>) {
  return join(std::array{kernel<descent_step<T>>(PLUGRAD_OP_DESCENT_STEP, element_dtype<T>)...},
              std::array{kernel<sgd_step<T>>(PLUGRAD_OP_SGD_STEP, element_dtype<T>)...},
              std::array{kernel<adam_step<T>>(PLUGRAD_OP_ADAM_STEP, element_dtype<T>)...});
}
constexpr auto kUpdateRows = update_rows(kFloating);

}  // namespace

Rows update_kernels() { return kUpdateRows; }

}  // namespace plugrad::reference
