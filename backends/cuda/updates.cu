// The optimisers' steps: one pass over memory each.
#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/functions.hpp>
#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

template <class T> struct SgdStep {
  static constexpr int kOutputs = 2;
  static constexpr bool kInOut = true;
  T momentum, decay;
  bool nesterov;

  __device__ __forceinline__ void operator()(T& param, T& velocity, const T& grad, const T& rate) const {
    T g = grad + decay * param;
    if (momentum != 0) {
      velocity = momentum * velocity + g;
      g = nesterov ? g + momentum * velocity : velocity;
    }
    param -= rate * g;
  }
};

template <class T> struct AdamStep {
  static constexpr int kOutputs = 3;
  static constexpr bool kInOut = true;
  T beta1, beta2, rest1, rest2, epsilon, decay;
  bool decoupled;

  __device__ __forceinline__ void operator()(T& param, T& m, T& v, const T& grad, const T& rate, const T& c1,
                                             const T& c2) const {
    const T g = decoupled ? grad : grad + decay * param;
    const T kept = decoupled ? param - rate * decay * param : param;
    m = beta1 * m + rest1 * g;
    v = beta2 * v + rest2 * g * g;
    param = kept - rate * (m / c1) / (std::sqrt(v / c2) + epsilon);
  }
};

template <class T> void sgd_step(const Call& call, const Submission& submission) {
  const auto& a = call.attributes<plugrad_sgd>();
  map_box<SgdStep<T>, T, T, T, T>(submission, Box(call.op().views, 4),
                                  {static_cast<T>(a.momentum), static_cast<T>(a.weight_decay), a.nesterov != 0});
}

template <class T> void adam_step(const Call& call, const Submission& submission) {
  const auto& a = call.attributes<plugrad_adam>();
  map_box<AdamStep<T>, T, T, T, T, T, T, T>(
      submission, Box(call.op().views, 7),
      {static_cast<T>(a.beta1), static_cast<T>(a.beta2), static_cast<T>(1 - a.beta1), static_cast<T>(1 - a.beta2),
       static_cast<T>(a.epsilon), static_cast<T>(a.weight_decay), a.decoupled != 0});
}

template <class... T> constexpr auto rows(Types<T...>) {
  return join(std::array{kernel<submit<sgd_step<T>>>(PLUGRAD_OP_SGD_STEP, dtype_of<T>)...},
              std::array{kernel<submit<adam_step<T>>>(PLUGRAD_OP_ADAM_STEP, dtype_of<T>)...});
}
constexpr auto kRows = rows(kFloating);

}  // namespace

Rows update_rows() { return kRows; }

}  // namespace plugrad::cuda
