// The optimisers' steps, each in one pass over memory.
#include <backends/cuda/accumulator.hpp>
#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/functions.hpp>
#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

template <class T> struct DescentStep {
  static constexpr int kOutputs = 1;
  static constexpr bool kInOut = true;
  using A = AccumulatorOf<T>;

  __device__ __forceinline__ void operator()(T& param, const T& grad, const T& rate) const {
    param = static_cast<T>(static_cast<A>(param) - static_cast<A>(rate) * static_cast<A>(grad));
  }
};

template <class T> struct SgdStep {
  static constexpr int kOutputs = 2;
  static constexpr bool kInOut = true;
  using A = AccumulatorOf<T>;
  A momentum, decay;
  bool nesterov;

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
  using A = AccumulatorOf<T>;
  A beta1, beta2, rest1, rest2, epsilon, decay;
  bool decoupled;

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

template <class T> void descent_step(const Call& call, const Submission& submission) {
  map_box<DescentStep<T>, T, T, T>(submission, Box(call.op().views, 3), {});
}

template <class T> void sgd_step(const Call& call, const Submission& submission) {
  const auto& a = call.attributes<plugrad_sgd>();
  using A = AccumulatorOf<T>;
  map_box<SgdStep<T>, T, T, T, T>(submission, Box(call.op().views, 4),
                                  {static_cast<A>(a.momentum), static_cast<A>(a.weight_decay), a.nesterov != 0});
}

template <class T> void adam_step(const Call& call, const Submission& submission) {
  const auto& a = call.attributes<plugrad_adam>();
  using A = AccumulatorOf<T>;
  map_box<AdamStep<T>, T, T, T, T, T, T, T>(
      submission, Box(call.op().views, 7),
      {static_cast<A>(a.beta1), static_cast<A>(a.beta2), static_cast<A>(1 - a.beta1), static_cast<A>(1 - a.beta2),
       static_cast<A>(a.epsilon), static_cast<A>(a.weight_decay), a.decoupled != 0});
}

template <class... T> constexpr auto rows(Types<T...>) {
  return join(std::array{kernel<submit<descent_step<T>>>(PLUGRAD_OP_DESCENT_STEP, element_dtype<T>)...},
              std::array{kernel<submit<sgd_step<T>>>(PLUGRAD_OP_SGD_STEP, element_dtype<T>)...},
              std::array{kernel<submit<adam_step<T>>>(PLUGRAD_OP_ADAM_STEP, element_dtype<T>)...});
}
constexpr auto kRows = rows(kComputable);

}  // namespace

Rows update_rows() { return kRows; }

}  // namespace plugrad::cuda
