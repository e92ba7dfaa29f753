// A function of the core as Python calls it: parameters converted, long ops without the GIL.
#pragma once
#include <python/binding.hpp>

#include <type_traits>

namespace plugrad::python {

// The type that the module takes in place of a core parameter, and its conversion to that.
template <class T> struct Taken {
  using Type = T;
  static const std::decay_t<T>& core(const std::decay_t<T>& x) { return x; }
};
template <> struct Taken<Number> {
  using Type = const NumberLike&;
  static Number core(const NumberLike& x) { return x.value; }
};
template <> struct Taken<const Shape&> {
  using Type = const ShapeLike&;
  static Shape core(const ShapeLike& x) { return x.get(); }
};
template <> struct Taken<DType> {
  using Type = const DTypeLike&;
  static DType core(const DTypeLike& x) { return x.get(DType::f32); }
};
template <> struct Taken<Device> {
  using Type = const DeviceLike&;
  static Device core(const DeviceLike& x) { return x.get(); }
};
template <> struct Taken<Reduction> {
  using Type = const ReductionLike&;
  static Reduction core(const ReductionLike& x) { return x.get(); }
};

inline Tensor given(Tensor&& result) { return std::move(result); }
inline nb::object given(Shape&& result) { return shape_tuple(result); }
template <class T> T given(T&& result) { return std::forward<T>(result); }

template <class R, class... A> auto bound(R (*function)(A...)) {
  return [function](typename Taken<A>::Type... parameters) {
    // Copies the handles before the lock is released.
    std::tuple<std::decay_t<A>...> arguments{Taken<A>::core(parameters)...};
    const auto call = [&] { return std::apply(function, arguments); };
    const bool is_long_call = std::apply([](const auto&... each) { return (is_long(each) || ...); }, arguments);
    return given(is_long_call ? unlocked(call) : call());
  };
}

}  // namespace plugrad::python
