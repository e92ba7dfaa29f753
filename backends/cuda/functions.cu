// The transcendental functions, and elementwise gradients.
#include <backends/cuda/functions.hpp>

#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

template <class Op, class... T> constexpr std::array<KernelRow, sizeof...(T)> unary(uint32_t opcode, Types<T...>) {
  return {kernel<submit<map<Pure<Op, true>, T, T>>>(opcode, dtype_of<T>)...};
}
template <class Op, bool heavy, class... T>
constexpr std::array<KernelRow, sizeof...(T)> binary(uint32_t opcode, Types<T...>) {
  return {kernel<submit<map<Pure<Op, heavy>, T, T, T>>>(opcode, dtype_of<T>)...};
}

constexpr auto kFunctions = join(unary<Exp>(PLUGRAD_OP_EXP, kFloating), unary<Log>(PLUGRAD_OP_LOG, kFloating),
                                 unary<Tanh>(PLUGRAD_OP_TANH, kFloating), unary<Sigmoid>(PLUGRAD_OP_SIGMOID, kFloating),
                                 binary<Power, true>(PLUGRAD_OP_POW, kFloating));

constexpr auto kGradients = join(binary<ReluBackward, false>(PLUGRAD_OP_RELU_BACKWARD, kFloating),
                                 binary<SigmoidBackward, false>(PLUGRAD_OP_SIGMOID_BACKWARD, kFloating),
                                 binary<TanhBackward, false>(PLUGRAD_OP_TANH_BACKWARD, kFloating));

}  // namespace

Rows function_rows() { return kFunctions; }
Rows gradient_rows() { return kGradients; }

}  // namespace plugrad::cuda
