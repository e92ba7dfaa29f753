// Builds tables of kernel rows from the op table: a template makes a row for each op and each of the op's dtypes.
#pragma once
#include <plugrad/sdk/backend.hpp>
#include <plugrad/sdk/functions.hpp>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

// Concatenates tables.
template <size_t... Sizes> constexpr auto join(const std::array<KernelRow, Sizes>&... parts) {
  std::array<KernelRow, (Sizes + ... + 0)> all{};
  size_t filled = 0;
  const auto append = [&](const auto& part) {
    for (const KernelRow& row : part) all[filled++] = row;
  };
  (append(parts), ...);
  return all;
}

namespace detail {
template <class... A, class... B> Types<A..., B...> operator+(Types<A...>, Types<B...>);
// Kernels made from the lists below store, move and convert elements of these types, and do not compute with them. The host
// computes in a wider dtype instead: a kernel for each op would cost more in time of compilation and size than it gains.
inline constexpr Types<Float16, uint8_t, int8_t, int16_t> kMovedOnly{};
template <class T, class... Moved> constexpr bool is_computed(Types<Moved...>) { return !(std::is_same_v<T, Moved> || ...); }
template <class T, bool keep> using KeptType = std::conditional_t<keep, Types<T>, Types<>>;
template <class... T>
auto floating_of(Types<T...>) -> decltype((Types<>{} + ... + KeptType<T, is_floating(element_dtype<T>)>{}));
template <class... T>
auto computable_of(Types<T...>) -> decltype((Types<>{} + ... + KeptType<T, std::is_floating_point_v<T>>{}));
template <class... T>
auto integers_of(Types<T...>) -> decltype((Types<>{} + ... + KeptType<T, is_integer(element_dtype<T>)>{}));
template <class... T>
auto computed_of(Types<T...>) -> decltype((Types<>{} + ... + KeptType<T, is_computed<T>(kMovedOnly)>{}));
template <class... T>
auto numbers_of(Types<T...>) -> decltype((Types<>{} + ... + KeptType<T, !is_boolean(element_dtype<T>)>{}));
}  // namespace detail

// All element types, for kernels that store and move elements.
inline constexpr EveryType kStored{};
// The element types with only conversions and kernels of kStored; the host computes in wider types.
inline constexpr auto kMovedOnly = detail::kMovedOnly;
// The letters T, N, F and Z of ops.def as lists of the remaining element types.
inline constexpr decltype(detail::computed_of(EveryType{})) kAny{};
inline constexpr decltype(detail::numbers_of(kAny)) kNumbers{};
inline constexpr decltype(detail::floating_of(kAny)) kFloating{};
inline constexpr decltype(detail::integers_of(kAny)) kIntegers{};
// The floating types without storage-only types such as BFloat16.
inline constexpr decltype(detail::computable_of(kAny)) kComputable{};

// The element type of operand i of an op of T's dtype: OperandType<PLUGRAD_OP_SUM, 0, bool> is int64_t.
template <uint32_t opcode, int i, class T>
using OperandType = ElementType<op_info(opcode)->operand_dtype(i, element_dtype<T>)>;

// Whether an elementwise op needs exp or a similar function. Backends approximate such functions by code of their own; the
// remaining ops are a few exact operations.
constexpr bool is_approximated(const OpInfo& op) {
  switch (op.opcode) {
    case PLUGRAD_OP_GELU:
    case PLUGRAD_OP_GELU_TANH:
    case PLUGRAD_OP_SILU:
    case PLUGRAD_OP_GELU_BACKWARD:
    case PLUGRAD_OP_GELU_TANH_BACKWARD:
    case PLUGRAD_OP_SILU_BACKWARD: return true;
    default: return op.ulps > 0;
  }
}

namespace detail {
template <class Maker, uint32_t opcode, class T, size_t... i>
constexpr KernelRow elementwise_row(std::index_sequence<i...>) {
  constexpr const OpInfo& op = *op_info(opcode);
  return Maker::template row<OpFunction<opcode>, OperandType<opcode, i, T>...>(op, element_dtype<T>);
}

template <class Maker, uint32_t opcode, class T> constexpr auto elementwise_row_if() {
  constexpr const OpInfo& op = *op_info(opcode);
  if constexpr (op.is_for(element_dtype<T>))
    return std::array{elementwise_row<Maker, opcode, T>(std::make_index_sequence<op.operand_count()>())};
  else return std::array<KernelRow, 0>{};
}

template <class Maker, size_t place, class... T> constexpr auto elementwise_rows_at(Types<T...>) {
  constexpr OpInfo op = kOps[place];
  if constexpr (op.shape == OpShape::elementwise && Maker::makes(op))
    return join(elementwise_row_if<Maker, op.opcode, T>()...);
  else return std::array<KernelRow, 0>{};
}
}  // namespace detail

// Returns a row, made by Maker::row<OpFunction<opcode>, Out, In...>(op, dtype), for each elementwise op accepted by
// Maker::makes(const OpInfo&) and each of the op's types.
template <class Maker, class... T> constexpr auto elementwise_rows(Types<T...> types) {
  return [types]<size_t... place>(std::index_sequence<place...>) {
    return join(detail::elementwise_rows_at<Maker, place>(types)...);
  }(std::make_index_sequence<std::size(kOps)>());
}

namespace detail {
template <class Maker, class To, class From> constexpr auto conversion_row() {
  if constexpr (std::is_same_v<To, From>) return std::array<KernelRow, 0>{};
  else return std::array{Maker::template row<To, From>()};
}
template <class Maker, class To, class... From> constexpr auto conversions_to(Types<From...>) {
  return join(conversion_row<Maker, To, From>()...);
}
template <class Maker, class... T> constexpr auto conversions_among(Types<T...> types) {
  return join(conversions_to<Maker, T>(types)...);
}
// The host does conversions without a row here in two steps. A floating number must be converted in a single step, or it
// would round twice or wrap instead of saturating. Integers of a network become f32 in one step, too: the two steps would
// need memory for integers of 64 bits.
template <class Maker, class... T> constexpr auto conversions_of_moved(Types<T...>) {
  using Wide = Types<float, double, int64_t>;
  return join(join(conversion_row<Maker, AccumulatorType<T>, T>()...),
              join(conversion_row<Maker, std::conditional_t<std::is_integral_v<T>, float, T>, T>()...),
              join(conversions_to<Maker, T>(Wide{})...));
}
}  // namespace detail

// Returns a row of CAST, made by Maker::row<To, From>(), for each pair of types that a device should convert in one step.
template <class Maker> constexpr auto conversion_rows() {
  return join(detail::conversions_among<Maker>(kAny), detail::conversions_of_moved<Maker>(kMovedOnly));
}

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
