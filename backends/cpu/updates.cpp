// The steps of the optimisers, each in one pass over memory.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/updates.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/elementwise-inl.hpp>
#include <backends/cpu/streaming.hpp>
#include <backends/cpu/update.hpp>

#include <algorithm>
#include <cmath>
#include <new>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

template <class T> T number(const char* from) { return *reinterpret_cast<const T*>(from); }

// Whether a parameter and its state are assumed beyond the near caches: unless they are small, the ops of a whole step have
// run since their last use.
template <class T> bool is_far(int64_t count) {
  constexpr int64_t kSmall = 16384;  // bytes
  return count * static_cast<int64_t>(sizeof(T)) >= kSmall;
}

// A row in parts. It reads far operands ahead: processors follow few streams by themselves, and not beyond a page.
template <class Numbers, int streams, void (*part)(char* const*, int64_t, const Numbers&)>
void row(char* const* p, int64_t n, const void* arguments) {
  using T = decltype(Numbers::rate);
  constexpr int64_t kBytes = 128, kPart = kBytes / sizeof(T), kLine = 64;
  const Numbers numbers = *static_cast<const Numbers*>(arguments);
  char* at[streams];
  std::copy_n(p, streams, at);
  for (; numbers.far && n >= kPart; n -= kPart) {
    for (char* each : at)
      for (int64_t line = 0; line < kBytes; line += kLine) __builtin_prefetch(each + kReadAhead + line);
    part(at, kPart, numbers);
    for (char*& each : at) each += kBytes;
  }
  part(at, n, numbers);
}

template <class T> struct Descent {
  struct Numbers {
    T rate;
    bool far;
  };
  static HWY_INLINE void part(char* const* p, int64_t n, const Numbers& numbers) {
    const Numbers k = numbers;
    T* param = reinterpret_cast<T*>(p[0]);
    const T* grad = reinterpret_cast<const T*>(p[1]);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) param[i] -= k.rate * grad[i];
  }
  static constexpr Elementwise kKind{1, 1, 1, 2, {sizeof(T), sizeof(T)}, {row<Numbers, 2, part>}};

  static void prepare(void* arguments, const void*, const char* const* numbers, int64_t count) {
    new (arguments) Numbers{number<T>(numbers[0]), is_far<T>(count)};
  }
  static const Elementwise& kind(const void*) { return kKind; }
};

template <class T> struct Sgd {
  struct Numbers {
    T rate, momentum, decay;
    bool far;
  };
  template <bool nesterov> static HWY_INLINE void part(char* const* p, int64_t n, const Numbers& numbers) {
    const Numbers k = numbers;
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
  static constexpr Elementwise kKind{2, 1, 1, 2, {sizeof(T), sizeof(T), sizeof(T)}, {row<Numbers, 3, part<nesterov>>}};

  static void prepare(void* arguments, const void* attributes, const char* const* numbers, int64_t count) {
    const auto& a = *static_cast<const plugrad_sgd*>(attributes);
    new (arguments)
        Numbers{number<T>(numbers[0]), static_cast<T>(a.momentum), static_cast<T>(a.weight_decay), is_far<T>(count)};
  }
  static const Elementwise& kind(const void* attributes) {
    return static_cast<const plugrad_sgd*>(attributes)->nesterov ? kKind<true> : kKind<false>;
  }
};

template <class T> struct Adam {
  struct Numbers {
    T beta1, beta2, rest1, rest2, epsilon, decay, rate, scale;
    bool far;
  };
  template <bool decoupled> static HWY_INLINE void part(char* const* p, int64_t n, const Numbers& numbers) {
    const Numbers k = numbers;
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
  template <bool decoupled>
  static constexpr Elementwise kKind{
      3, 1, 1, 6, {sizeof(T), sizeof(T), sizeof(T), sizeof(T)}, {row<Numbers, 4, part<decoupled>>}};

  // Values common to all elements are computed once, in double.
  static void prepare(void* arguments, const void* attributes, const char* const* numbers, int64_t count) {
    const auto& a = *static_cast<const plugrad_adam*>(attributes);
    const double rate = number<T>(numbers[0]), c1 = number<T>(numbers[1]), c2 = number<T>(numbers[2]);
    const double decay = a.decoupled ? rate * a.weight_decay : a.weight_decay;
    new (arguments) Numbers{static_cast<T>(a.beta1),     static_cast<T>(a.beta2),   static_cast<T>(1 - a.beta1),
                            static_cast<T>(1 - a.beta2), static_cast<T>(a.epsilon), static_cast<T>(decay),
                            static_cast<T>(rate / c1),   static_cast<T>(1 / c2),    is_far<T>(count)};
  }
  static const Elementwise& kind(const void* attributes) {
    return static_cast<const plugrad_adam*>(attributes)->decoupled ? kKind<true> : kKind<false>;
  }
};

template <class Step> struct Updating {
  static_assert(sizeof(typename Step::Numbers) <= kUpdateNumbers && alignof(typename Step::Numbers) <= 8);
  static constexpr Update kUpdate{Step::prepare, Step::kind};
};

template <class Step> void step(const Call& call) {
  constexpr int kMostNumbers = 3;
  alignas(8) char held[kMostNumbers][8], arguments[kUpdateNumbers];
  const char* numbers[kMostNumbers];
  for (int k = 1; k < call.op().inputs; ++k) numbers[k - 1] = address(call.in(k), held[k - 1]);
  Step::prepare(arguments, call.op().attributes, numbers, call.out().count);
  run_elementwise(Step::kind(call.op().attributes), call, arguments);
}

// A few elements directly.
template <class T>
plugrad_status descend(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
  const plugrad_view &param = *op->views[0], &grad = *op->views[1];
  if (param.count > kGrain || !is_dense(param) || !is_dense(grad)) return run_kernel<step<Descent<T>>>(self, stream, op);
  const typename Descent<T>::Numbers numbers{element<T>(*op->views[2]), false};
  char* const p[] = {data<char>(param), data<char>(grad)};
  Descent<T>::part(p, param.count, numbers);
  return PLUGRAD_OK;
}

template <class Step> KernelRow updating(KernelRow row) {
  row.own = &Updating<Step>::kUpdate;
  return row;
}

template <class T> void append_steps(RowList& rows) {
  rows.push_back(updating<Descent<T>>(kernel_row(PLUGRAD_OP_DESCENT_STEP, kDtype<T>, descend<T>)));
  rows.push_back(updating<Sgd<T>>(kernel<step<Sgd<T>>>(PLUGRAD_OP_SGD_STEP, kDtype<T>)));
  rows.push_back(updating<Adam<T>>(kernel<step<Adam<T>>>(PLUGRAD_OP_ADAM_STEP, kDtype<T>)));
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
