#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/functions.hpp>
#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

template <class Op, class... T> constexpr std::array<KernelRow, sizeof...(T)> compare(uint32_t opcode, Types<T...>) {
  return {kernel<submit<map<Pure<Op>, bool, T, T>>>(opcode, dtype_of<T>)...};
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> where(Types<T...>) {
  return {kernel<submit<map<Pure<Where>, Bits<T>, bool, Bits<T>, Bits<T>>>>(PLUGRAD_OP_WHERE, dtype_of<T>)...};
}

constexpr auto kRows = join(compare<Equal>(PLUGRAD_OP_EQ, kAny), compare<NotEqual>(PLUGRAD_OP_NE, kAny),
                            compare<Less>(PLUGRAD_OP_LT, kAny), compare<LessEqual>(PLUGRAD_OP_LE, kAny), where(kAny));

}  // namespace

Rows comparison_rows() { return kRows; }

}  // namespace plugrad::cuda
