#include <backends/reference/elements.hpp>
#include <backends/reference/families.hpp>
#include <backends/reference/functions.hpp>

namespace plugrad::reference {
namespace {

// Of COPY: unsigned integers, since moving a float could change the payload of a NaN.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 1, uint8_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

template <class T> void iota(const Call& call) {
  // Start and step count as the host gave them: a step of 0.1, not of 0.1f.
  using Exact = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  const Wrapping<Exact> start = immediate<Exact>(call.in(0)), step = immediate<Exact>(call.in(1));
  Wrapping<Exact> i = 0;
  for_each(
      call.out(), [&](T& out) { out = static_cast<T>(static_cast<Exact>(start + i++ * step)); }, Elements<T>(call.out()));
}

template <class F, class... T> constexpr std::array<KernelRow, sizeof...(T)> unary(uint32_t opcode, Types<T...>) {
  return {kernel<map<F, T, T>>(opcode, dtype_of<T>)...};
}
template <class F, class... T> constexpr std::array<KernelRow, sizeof...(T)> binary(uint32_t opcode, Types<T...>) {
  return {kernel<map<F, T, T, T>>(opcode, dtype_of<T>)...};
}
template <class F, class... T> constexpr std::array<KernelRow, sizeof...(T)> compare(uint32_t opcode, Types<T...>) {
  return {kernel<map<F, bool, T, T>>(opcode, dtype_of<T>)...};
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> where(Types<T...>) {
  return {kernel<map<Where, T, bool, T, T>>(PLUGRAD_OP_WHERE, dtype_of<T>)...};
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> copies(Types<T...>) {
  return {kernel<map<Same, Bits<T>, Bits<T>>>(PLUGRAD_OP_COPY, dtype_of<T>)...};
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> iotas(Types<T...>) {
  return {kernel<iota<T>>(PLUGRAD_OP_IOTA, dtype_of<T>)...};
}
template <class To, class... From> constexpr std::array<KernelRow, sizeof...(From)> casts(Types<From...>) {
  return {kernel<map<Cast<To>, To, From>>(PLUGRAD_OP_CAST, {dtype_of<To>, dtype_of<From>})...};
}

constexpr auto kRows = join(
    unary<Same>(PLUGRAD_OP_FILL, kAny), copies(kAny), iotas(kNumbers), casts<float>(Types<double, int64_t, bool>()),
    casts<double>(Types<float, int64_t, bool>()), casts<int64_t>(Types<float, double, bool>()),
    casts<bool>(Types<float, double, int64_t>()),

    unary<Negate>(PLUGRAD_OP_NEG, kNumbers), unary<Abs>(PLUGRAD_OP_ABS, kNumbers), unary<Sign>(PLUGRAD_OP_SIGN, kNumbers),
    unary<Sqrt>(PLUGRAD_OP_SQRT, kFloating), unary<Exp>(PLUGRAD_OP_EXP, kFloating), unary<Log>(PLUGRAD_OP_LOG, kFloating),
    unary<Tanh>(PLUGRAD_OP_TANH, kFloating), unary<Relu>(PLUGRAD_OP_RELU, kFloating),
    unary<Sigmoid>(PLUGRAD_OP_SIGMOID, kFloating),

    binary<Add>(PLUGRAD_OP_ADD, kNumbers), binary<Subtract>(PLUGRAD_OP_SUB, kNumbers),
    binary<Multiply>(PLUGRAD_OP_MUL, kNumbers), binary<Divide>(PLUGRAD_OP_DIV, kFloating),
    binary<Power>(PLUGRAD_OP_POW, kFloating), binary<Maximum>(PLUGRAD_OP_MAXIMUM, kNumbers),
    binary<Minimum>(PLUGRAD_OP_MINIMUM, kNumbers),

    compare<std::equal_to<>>(PLUGRAD_OP_EQ, kAny), compare<std::not_equal_to<>>(PLUGRAD_OP_NE, kAny),
    compare<std::less<>>(PLUGRAD_OP_LT, kAny), compare<std::less_equal<>>(PLUGRAD_OP_LE, kAny), where(kAny));

}  // namespace

Rows elementwise_rows() { return kRows; }

}  // namespace plugrad::reference
