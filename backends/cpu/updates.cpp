// The steps of the optimisers, each in one pass over memory.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/updates.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/elementwise-inl.hpp>

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

template <class T> struct Descent {
  static void row(char* const* p, int64_t n, const void* rate) {
    const T step = *static_cast<const T*>(rate);
    T* param = reinterpret_cast<T*>(p[0]);
    const T* grad = reinterpret_cast<const T*>(p[1]);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) param[i] -= step * grad[i];
  }
  static constexpr Elementwise kKind{1, 1, 1, 2, {sizeof(T), sizeof(T)}, {row}};

  static plugrad_status run(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
    const plugrad_view &param = *op->views[0], &grad = *op->views[1];
    if (param.count > kGrain || !is_dense(param) || !is_dense(grad)) return run_kernel<general>(self, stream, op);
    const T rate = element<T>(*op->views[2]);
    char* const p[] = {data<char>(param), data<char>(grad)};
    row(p, param.count, &rate);
    return PLUGRAD_OK;
  }
  static void general(const Call& call) {
    const T rate = element<T>(call.in(1));
    run_elementwise(kKind, call, &rate);
  }
};

template <class T> struct Sgd {
  struct Numbers {
    T rate, momentum, decay;
  };
  template <bool nesterov> static void row(char* const* p, int64_t n, const void* arguments) {
    const Numbers k = *static_cast<const Numbers*>(arguments);
    T *param = reinterpret_cast<T*>(p[0]), *velocity = reinterpret_cast<T*>(p[1]);
    const T* grad = reinterpret_cast<const T*>(p[2]);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const T g = grad[i] + k.decay * param[i], v = k.momentum * velocity[i] + g;
      velocity[i] = v;
      param[i] -= k.rate * (nesterov ? g + k.momentum * v : v);
    }
  }
  template <bool nesterov>
  static constexpr Elementwise kKind{2, 1, 1, 2, {sizeof(T), sizeof(T), sizeof(T)}, {row<nesterov>}};
  static void step(const Call& call) {
    const auto& a = call.attributes<plugrad_sgd>();
    const Numbers numbers{element<T>(call.in(1)), static_cast<T>(a.momentum), static_cast<T>(a.weight_decay)};
    run_elementwise(a.nesterov ? kKind<true> : kKind<false>, call, &numbers);
  }
};

template <class T> struct Adam {
  struct Numbers {
    T beta1, beta2, rest1, rest2, epsilon, decay, rate, scale;
  };
  template <bool decoupled> static void row(char* const* p, int64_t n, const void* arguments) {
    const Numbers k = *static_cast<const Numbers*>(arguments);
    T *param = reinterpret_cast<T*>(p[0]), *m = reinterpret_cast<T*>(p[1]), *v = reinterpret_cast<T*>(p[2]);
    const T* grad = reinterpret_cast<const T*>(p[3]);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const T g = decoupled ? grad[i] : grad[i] + k.decay * param[i];
      const T kept = decoupled ? param[i] - k.decay * param[i] : param[i];
      const T first = k.beta1 * m[i] + k.rest1 * g, second = k.beta2 * v[i] + k.rest2 * g * g;
      m[i] = first;
      v[i] = second;
      param[i] = kept - k.rate * first / (std::sqrt(second * k.scale) + k.epsilon);
    }
  }
  template <bool decoupled> static constexpr Elementwise kKind{
      3, 1, 1, 6, {sizeof(T), sizeof(T), sizeof(T), sizeof(T)}, {row<decoupled>}};

  // Values that are the same for all elements are computed once, in double.
  static void step(const Call& call) {
    const auto& a = call.attributes<plugrad_adam>();
    const double rate = element<T>(call.in(1)), c1 = element<T>(call.in(2)), c2 = element<T>(call.in(3));
    const double decay = a.decoupled ? rate * a.weight_decay : a.weight_decay;
    const Numbers numbers{static_cast<T>(a.beta1),     static_cast<T>(a.beta2),   static_cast<T>(1 - a.beta1),
                          static_cast<T>(1 - a.beta2), static_cast<T>(a.epsilon), static_cast<T>(decay),
                          static_cast<T>(rate / c1),   static_cast<T>(1 / c2)};
    run_elementwise(a.decoupled ? kKind<true> : kKind<false>, call, &numbers);
  }
};

template <class T> void append_steps(RowList& rows) {
  rows.push_back(kernel_row(PLUGRAD_OP_DESCENT_STEP, kDtype<T>, Descent<T>::run));
  rows.push_back(kernel<Sgd<T>::step>(PLUGRAD_OP_SGD_STEP, kDtype<T>));
  rows.push_back(kernel<Adam<T>::step>(PLUGRAD_OP_ADAM_STEP, kDtype<T>));
}

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_updates<HWY_TARGET>(RowList& rows) {
  HWY_NAMESPACE::append_steps<float>(rows);
  HWY_NAMESPACE::append_steps<double>(rows);
}
}  // namespace plugrad::cpu
