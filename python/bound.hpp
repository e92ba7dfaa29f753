// Wrappers that make a function of the core callable from Python: they convert parameters and run long ops without the GIL.
#pragma once
#include <python/binding.hpp>
#include <python/choices.hpp>

#include <nanobind/stl/optional.h>

#include <array>
#include <tuple>
#include <type_traits>

namespace plugrad::python {

// The type that a binding takes for a parameter of the core, and the conversion to the parameter's type.
template <class T> struct Taken {
  using Type = T;
  static const std::decay_t<T>& core(const std::decay_t<T>& x) { return x; }
};
// None is an undefined tensor if the parameter permits None.
template <> struct Taken<const Tensor&> {
  using Type = const Tensor*;
  static Tensor core(const Tensor* x) { return x ? *x : Tensor(); }
};
template <> struct Taken<std::optional<Number>> {
  using Type = const std::optional<NumberLike>&;
  static std::optional<Number> core(const std::optional<NumberLike>& x) {
    return x ? std::optional(x->value) : std::nullopt;
  }
};
template <Named Enum> struct Taken<Enum> {
  using Type = const std::string&;
  static Enum core(const std::string& name) { return chosen<Enum>(name); }
};
template <Named Enum> struct Taken<std::optional<Enum>> {
  using Type = const std::optional<std::string>&;
  static std::optional<Enum> core(const std::optional<std::string>& name) {
    return name ? std::optional(chosen<Enum>(*name)) : std::nullopt;
  }
};
template <> struct Taken<std::optional<DType>> {
  using Type = const DTypeLike&;
  static std::optional<DType> core(const DTypeLike& x) { return x.get(); }
};
template <> struct Taken<Number> {
  using Type = const NumberLike&;
  static Number core(const NumberLike& x) { return x.value; }
};
template <> struct Taken<const Shape&> {
  using Type = const ShapeLike&;
  static Shape core(const ShapeLike& x) { return x.get(); }
};
template <> struct Taken<const std::vector<double>&> {
  using Type = const NumbersLike&;
  static std::vector<double> core(const NumbersLike& x) { return x.numbers; }
};
template <> struct Taken<DType> {
  using Type = const DTypeLike&;
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
inline nb::typed<nb::tuple, Tensor, nb::ellipsis> given(std::vector<Tensor>&& result) {
  return nb::borrow<nb::typed<nb::tuple, Tensor, nb::ellipsis>>(nb::tuple(nb::cast(std::move(result))));
}
// Returns the distinct elements alone, or a tuple with the requested tensors.
inline nb::object given(Unique&& result) {
  nb::list all;
  for (Tensor& each : std::array{result.values, result.inverse, result.counts})
    if (each.defined()) all.append(wrap(std::move(each)));
  return nb::len(all) == 1 ? nb::object(all[0]) : nb::object(nb::tuple(all));
}
inline nb::object given(Histogram&& result) {
  return nb::make_tuple(wrap(std::move(result.hist)), wrap(std::move(result.bin_edges)));
}
template <class T> T given(T&& result) { return std::forward<T>(result); }

// Returns the default dtype for a number, as in PyTorch; bool, the lowest dtype in promotions, for any other parameter.
inline DType dtype_of(const NumberLike& x) {
  return x.boolean ? DType::boolean : x.value.floating() ? default_floating() : DType::i64;
}
template <class T> DType dtype_of(const T&) { return DType::boolean; }

// Returns the default dtype of a result that is made of numbers.
template <class... A, class... Given> DType default_dtype(const Given&... parameters) {
  if constexpr (!(std::is_same_v<A, Number> || ...)) return default_floating();
  DType dtype = DType::boolean;
  ((dtype = promote_types(dtype, dtype_of(parameters))), ...);
  return dtype;
}
template <class T, class Given> decltype(auto) core_argument(const Given& given, DType otherwise) {
  if constexpr (std::is_same_v<T, DType>) return given.get(otherwise);
  else return Taken<T>::core(given);
}

// Converts the arguments to tensors. Tries the next overload if an argument is not a tensor.
inline std::vector<Tensor> tensors_of(const nb::handle given) {
  std::vector<Tensor> tensors;
  for (const nb::handle each : given) {
    if (!is_tensor(each.ptr())) throw nb::next_overload();
    tensors.push_back(tensor_in(each.ptr()));
  }
  return tensors;
}

template <class R, class... A> auto bound(R (*function)(A...)) {
  return [function](typename Taken<A>::Type... parameters) {
    // Copies the handles before the lock is released.
    const DType dtype = default_dtype<A...>(parameters...);
    std::tuple<std::decay_t<A>...> arguments{core_argument<A>(parameters, dtype)...};
    const auto call = [&] { return std::apply(function, arguments); };
    const bool is_long_call = std::apply([](const auto&... each) { return (is_long(each) || ...); }, arguments);
    if constexpr (std::is_void_v<R>) is_long_call ? unlocked(call) : call();
    else return given(is_long_call ? unlocked(call) : call());
  };
}

// Joins a function and its twin that also returns indices. The last parameter, return_indices, chooses the function.
template <class... A> auto either(Tensor (*values)(A...), ValuesIndices (*both)(A...)) {
  return [values, both](typename Taken<A>::Type... parameters, bool return_indices) -> nb::any {
    if (return_indices) return nb::borrow<nb::any>(nb::cast(bound(both)(parameters...)));
    return nb::borrow<nb::any>(nb::cast(bound(values)(parameters...)));
  };
}

inline Tensor with_gradient(Tensor made, bool wanted) {
  if (wanted) made.requires_grad_();
  return made;
}
// Like bound, for a function that makes a tensor; also takes requires_grad.
template <class... A> auto tracked(Tensor (*function)(A...)) {
  return [function](typename Taken<A>::Type... parameters, bool requires_grad) {
    return with_gradient(bound(function)(parameters...), requires_grad);
  };
}

// A Python object that holds a Tensor.
using TensorObject = nb::typed<nb::object, Tensor>;

// Like bound, for a function that a method applies in place; the method returns its tensor.
template <class... A> auto in_place(const char* name, Tensor (*function)(const Tensor&, A...)) {
  return [name, function](nb::handle self, typename Taken<A>::Type... parameters) -> TensorObject {
    Tensor x = nb::cast<Tensor>(self);
    std::tuple<std::decay_t<A>...> arguments{core_argument<A>(parameters, default_floating())...};
    unlocked([&] {
      transform(x, name, [&](const Tensor& old) {
        return std::apply([&](const auto&... each) { return function(old, each...); }, arguments);
      });
    });
    return nb::borrow<TensorObject>(self);
  };
}

// Like bound, for a function of a list of tensors that Python passes one by one.
template <class R, class... A> auto spread(R (*function)(const std::vector<Tensor>&, A...)) {
  return [function](const nb::args& tensors, typename Taken<A>::Type... parameters) {
    return bound(function)(tensors_of(tensors), parameters...);
  };
}

}  // namespace plugrad::python
