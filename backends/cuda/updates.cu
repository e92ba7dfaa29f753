// The optimisers' steps, each in one pass over memory.
#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/update_functions.hpp>

namespace plugrad::cuda {
namespace {

template <class T> void descent_step(const Call& call, const Submission& submission) {
  map_box<DescentStep<T>, T, T, T>(submission, Box(call.op().views, 3), {});
}

template <class T> void sgd_step(const Call& call, const Submission& submission) {
  const auto& a = call.attributes<plugrad_sgd>();
  map_box<SgdStep<T>, T, T, T, T>(submission, Box(call.op().views, 4), {a.momentum, a.weight_decay, a.nesterov != 0});
}

template <class T> void adam_step(const Call& call, const Submission& submission) {
  const auto& a = call.attributes<plugrad_adam>();
  map_box<AdamStep<T>, T, T, T, T, T, T, T>(submission, Box(call.op().views, 7),
                                           {a.beta1, a.beta2, a.epsilon, a.weight_decay, a.decoupled != 0});
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
