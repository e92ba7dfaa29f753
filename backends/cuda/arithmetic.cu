// The ops that are one exact operation.
#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/functions.hpp>
#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

template <class Op, class... T> constexpr std::array<KernelRow, sizeof...(T)> unary(uint32_t opcode, Types<T...>) {
  return {kernel<submit<map<Pure<Op>, T, T>>>(opcode, dtype_of<T>)...};
}
template <class Op, class... T> constexpr std::array<KernelRow, sizeof...(T)> binary(uint32_t opcode, Types<T...>) {
  return {kernel<submit<map<Pure<Op>, T, T, T>>>(opcode, dtype_of<T>)...};
}

constexpr auto kRows = join(unary<Negate>(PLUGRAD_OP_NEG, kNumbers), unary<Abs>(PLUGRAD_OP_ABS, kNumbers),
                            unary<Sign>(PLUGRAD_OP_SIGN, kNumbers), unary<Sqrt>(PLUGRAD_OP_SQRT, kFloating),
                            unary<Relu>(PLUGRAD_OP_RELU, kFloating), binary<Add>(PLUGRAD_OP_ADD, kNumbers),
                            binary<Subtract>(PLUGRAD_OP_SUB, kNumbers), binary<Multiply>(PLUGRAD_OP_MUL, kNumbers),
                            binary<Divide>(PLUGRAD_OP_DIV, kFloating), binary<Maximum>(PLUGRAD_OP_MAXIMUM, kNumbers),
                            binary<Minimum>(PLUGRAD_OP_MINIMUM, kNumbers));

}  // namespace

Rows arithmetic_rows() { return kRows; }

}  // namespace plugrad::cuda
