// Kernels made from functions of plugrad: arguments are converted in their order.
#pragma once
#include <bridge/kernel.hpp>
#include <plugrad/ops/sorting.hpp>
#include <plugrad/ops/views.hpp>

#include <tuple>
#include <type_traits>

namespace plugrad_torch {

// One argument of PyTorch as plugrad's parameter.
template <class To, class From> To converted(const From& x) {
  if constexpr (std::is_same_v<To, P>) return over(x);
  else if constexpr (std::is_same_v<To, Number>) return number_of(x);
  else if constexpr (std::is_same_v<To, std::optional<Number>>) return x ? std::optional(number_of(*x)) : std::nullopt;
  else if constexpr (std::is_same_v<To, Shape> && std::is_same_v<From, at::OptionalIntArrayRef>)
    return x ? shape_of(*x) : Shape();
  else if constexpr (std::is_same_v<To, Shape>) return shape_of(x);
  else if constexpr (std::is_same_v<To, double> && std::is_same_v<From, Scalar>) return x.toDouble();
  else if constexpr (std::is_same_v<To, std::optional<double>> && std::is_same_v<From, std::optional<Scalar>>)
    return x ? std::optional(x->toDouble()) : std::nullopt;
  else if constexpr (std::is_enum_v<To>) return static_cast<To>(x);
  else if constexpr (std::is_same_v<To, From>) return x;
  else return static_cast<To>(x);
}

// An int of plugrad's is an axis. PyTorch lets tensors of rank 0 have one: they run as tensors of one axis.
template <class... Params> constexpr bool kHasAxis = (std::is_same_v<std::remove_cvref_t<Params>, int> || ...);

template <class Param, class From> std::remove_cvref_t<Param> argument(const From& x, [[maybe_unused]] bool lifts) {
  using To = std::remove_cvref_t<Param>;
  To value = converted<To>(x);
  if constexpr (std::is_same_v<To, P>)
    if (lifts && value.defined() && value.rank() == 0) return plugrad::reshape(value, {1});
  return value;
}

template <class R, class... Params, size_t... kIndex, class Given>
R call_in_order(R (*f)(Params...), const Given& given, bool lifts, std::index_sequence<kIndex...>) {
  return f(argument<Params>(std::get<kIndex>(given), lifts)...);
}
template <class R, class... Params, class... Args> R call_with(R (*f)(Params...), const T& x, const Args&... args) {
  const bool lifts = kHasAxis<Params...> && x.dim() == 0;
  const auto scalar = [&](const P& y) { return lifts ? plugrad::reshape(y, {}) : y; };
  R made = call_in_order(f, std::forward_as_tuple(x, args...), lifts, std::index_sequence_for<Params...>());
  if constexpr (std::is_same_v<R, P>) return scalar(made);
  else return {scalar(made.values), scalar(made.indices)};
}

// kernel<Op, Adapted<Op, f>::call>. For results in given tensors, for new results, and for values with indices.
template <class Op, auto kFunction, class Schema = typename Op::schema> struct Adapted;
template <class Op, auto kFunction, class... Args> struct Adapted<Op, kFunction, T(Args...)> {
  static T call(Args... args) { return result(call_with(+kFunction, args...)); }
};
template <class Op, auto kFunction, class... Args> struct Adapted<Op, kFunction, T&(Args...)> {
  static T& call(Args... args) {
    const auto given = std::forward_as_tuple(args...);
    T& out = std::get<sizeof...(Args) - 1>(given);
    return write(out, call_with(+kFunction, args...));
  }
};
template <class Op, auto kFunction, class... Args> struct Adapted<Op, kFunction, std::tuple<T&, T&>(Args...)> {
  static std::tuple<T&, T&> call(Args... args) {
    const auto given = std::forward_as_tuple(args...);
    T& values = std::get<sizeof...(Args) - 2>(given);
    T& indices = std::get<sizeof...(Args) - 1>(given);
    const auto made = call_with(+kFunction, args...);
    write(values, made.values), write(indices, made.indices);
    return {values, indices};
  }
};
template <class Op, auto kFunction, class... Args> struct Adapted<Op, kFunction, std::tuple<T, T>(Args...)> {
  static std::tuple<T, T> call(Args... args) {
    const auto made = call_with(+kFunction, args...);
    return {result(made.values), result(made.indices)};
  }
};

// Registers f for an op with the same arguments in the same order. f may take fewer.
template <class Op, auto kFunction> void adapted(torch::Library& library) {
  kernel<Op, &Adapted<Op, kFunction>::call>(library);
}

// Overloaded functions: pick<P(const P&, Number)>(plugrad::add) is the one with this type.
template <class Signature> constexpr Signature* pick(Signature* f) { return f; }

}  // namespace plugrad_torch
