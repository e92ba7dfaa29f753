// Builds tables of kernel rows from the op table: a template makes a row for each op and each dtype that the op allows.
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
template <class T, bool keep> using KeptType = std::conditional_t<keep, Types<T>, Types<>>;
template <class... T>
auto floating_of(Types<T...>) -> decltype((Types<>{} + ... + KeptType<T, is_floating(element_dtype<T>)>{}));
template <class... T>
auto computable_of(Types<T...>) -> decltype((Types<>{} + ... + KeptType<T, std::is_floating_point_v<T>>{}));
template <class... T>
auto integers_of(Types<T...>) -> decltype((Types<>{} + ... + KeptType<T, is_integer(element_dtype<T>)>{}));
template <class... T>
auto numbers_of(Types<T...>) -> decltype((Types<>{} + ... + KeptType<T, !is_boolean(element_dtype<T>)>{}));
}  // namespace detail

// The letters of ops.def as lists of element types: T, N, F.
inline constexpr EveryType kAny{};
inline constexpr decltype(detail::numbers_of(EveryType{})) kNumbers{};
inline constexpr decltype(detail::floating_of(EveryType{})) kFloating{};
inline constexpr decltype(detail::integers_of(EveryType{})) kIntegers{};
// The floating types without storage-only types such as BFloat16.
inline constexpr decltype(detail::computable_of(EveryType{})) kComputable{};

// The element type of operand i of an op whose dtype is that of T: OperandType<PLUGRAD_OP_SUM, 0, bool> is int64_t.
template <uint32_t opcode, int i, class T>
using OperandType = ElementType<op_info(opcode)->operand_dtype(i, element_dtype<T>)>;

namespace detail {
template <class Maker, uint32_t opcode, class T, size_t... i>
constexpr KernelRow elementwise_row(std::index_sequence<i...>) {
  constexpr const OpInfo& op = *op_info(opcode);
  return Maker::template row<Function<opcode>, OperandType<opcode, i, T>...>(op, element_dtype<T>);
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

// Returns a row, made by Maker::row<Function<opcode>, Out, In...>(op, dtype), for each elementwise op for which
// Maker::makes(const OpInfo&) is true and each of the types that the op allows.
template <class Maker, class... T> constexpr auto elementwise_rows(Types<T...> types) {
  return [types]<size_t... place>(std::index_sequence<place...>) {
    return join(detail::elementwise_rows_at<Maker, place>(types)...);
  }(std::make_index_sequence<std::size(kOps)>());
}

// Returns a row of CAST, made by Maker::row<To, From>(), for each pair of different types.
template <class Maker, class... T> constexpr auto conversion_rows(Types<T...> types) {
  const auto one = []<class To, class From>(Types<To, From>) {
    if constexpr (std::is_same_v<To, From>) return std::array<KernelRow, 0>{};
    else return std::array{Maker::template row<To, From>()};
  };
  const auto all_to = [&]<class To, class... From>(Types<To>, Types<From...>) { return join(one(Types<To, From>{})...); };
  return join(all_to(Types<T>{}, types)...);
}

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
