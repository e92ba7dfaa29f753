// The optimisers' steps for one element, with in-out outputs. Fusions compiled at run time include this file, too.
#pragma once
#include <cuda_runtime.h>
#include <plugrad/sdk/dtypes.hpp>

#include <cmath>

namespace plugrad::cuda {

template <class T> struct DescentStep {
  static constexpr int kOutputs = 1;
  static constexpr bool kInOut = true;
  using A = ComputeType<T>;

  __device__ __forceinline__ void operator()(T& param, const T& grad, const T& rate) const {
    param = static_cast<T>(static_cast<A>(param) - static_cast<A>(rate) * static_cast<A>(grad));
  }
};

template <class T> struct SgdStep {
  static constexpr int kOutputs = 2;
  static constexpr bool kInOut = true, kHeavy = true;  // a second pack would spill a register on sm_90
  using A = ComputeType<T>;
  A momentum, decay;
  bool nesterov;

  __host__ __device__ SgdStep(double of_momentum, double of_decay, bool is_nesterov)
      : momentum(static_cast<A>(of_momentum)), decay(static_cast<A>(of_decay)), nesterov(is_nesterov) {}

  __device__ __forceinline__ void operator()(T& param, T& velocity, const T& grad, const T& rate) const {
    const A p = static_cast<A>(param), g = static_cast<A>(grad) + decay * p;
    const A v = momentum * static_cast<A>(velocity) + g;
    velocity = static_cast<T>(v);
    param = static_cast<T>(p - static_cast<A>(rate) * (nesterov ? g + momentum * v : v));
  }
};

template <class T> struct AdamStep {
  static constexpr int kOutputs = 3;
  static constexpr bool kInOut = true;
  using A = ComputeType<T>;
  A beta1, beta2, rest1, rest2, epsilon, decay;
  bool decoupled;

  __host__ __device__ AdamStep(double b1, double b2, double of_epsilon, double of_decay, bool is_decoupled)
      : beta1(static_cast<A>(b1)), beta2(static_cast<A>(b2)), rest1(static_cast<A>(1 - b1)), rest2(static_cast<A>(1 - b2)),
        epsilon(static_cast<A>(of_epsilon)), decay(static_cast<A>(of_decay)), decoupled(is_decoupled) {}

  __device__ __forceinline__ void operator()(T& param, T& m, T& v, const T& grad, const T& rate, const T& c1,
                                             const T& c2) const {
    const A p = static_cast<A>(param), step = static_cast<A>(rate);
    const A g = decoupled ? static_cast<A>(grad) : static_cast<A>(grad) + decay * p;
    const A kept = decoupled ? p - step * decay * p : p;
    const A first = beta1 * static_cast<A>(m) + rest1 * g, second = beta2 * static_cast<A>(v) + rest2 * g * g;
    m = static_cast<T>(first);
    v = static_cast<T>(second);
    param = static_cast<T>(kept - step * (first / static_cast<A>(c1)) / (std::sqrt(second / static_cast<A>(c2)) + epsilon));
  }
};

}  // namespace plugrad::cuda
