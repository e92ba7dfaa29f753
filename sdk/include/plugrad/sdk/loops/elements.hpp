// Access to the elements of a kernel's operands in any layout.
#pragma once
#include <plugrad/sdk/backend.hpp>

#pragma GCC visibility push(hidden)
namespace plugrad::loops {

using Strides = std::array<int64_t, PLUGRAD_MAX_RANK>;

// Returns a view's strides, or zeros for a view of one element: it may have fewer axes than the other views, or unspecified
// strides.
inline Strides strides_of(const plugrad_view& view) {
  Strides strides{};
  if (view.count > 1) std::copy_n(view.strides, view.rank, strides.begin());
  return strides;
}

// The elements of an operand of type T: the address of the first, and the strides along each axis.
// An immediate has no memory; its value is stored in this object.
template <class T> class Elements {
 public:
  explicit Elements(const plugrad_view& view) : strides(strides_of(view)) {
    if (is_immediate(view)) number_ = immediate<T>(view);
    first = is_immediate(view) ? &number_ : data<T>(view);
  }
  Elements(T* first_element, const Strides& its_strides) : first(first_element), strides(its_strides) {}
  Elements(const Elements&) = delete;

  T* first;
  Strides strides;

 private:
  T number_{};
};

template <class T> struct Cursor {
  T* at;
  const Strides& strides;
  void move(int axis, int64_t steps) { at += steps * strides[axis]; }
};

template <class Body, class... T> void walk(const plugrad_view& shape, Body body, Cursor<T>... cursors) {
  std::array<int64_t, PLUGRAD_MAX_RANK> index{};
  for (int axis = 0; axis >= 0;) {
    body(*cursors.at...);
    // As an odometer: the last axis moves; when an axis reaches its end, it returns to 0 and the axis before it moves.
    for (axis = shape.rank - 1; axis >= 0; --axis) {
      const bool through = ++index[axis] == shape.shape[axis];
      (cursors.move(axis, through ? 1 - shape.shape[axis] : 1), ...);
      if (!through) break;
      index[axis] = 0;
    }
  }
}

// Calls body(T&...) with the operands' elements at each index of the shape, in row-major order. Along an axis where the
// shape's extent is 1 all operands stay at their first element, for any extent of their own.
template <class Body, class... T> void for_each(const plugrad_view& shape, Body body, const Elements<T>&... operands) {
  walk(shape, body, Cursor<T>{operands.first, operands.strides}...);
}

// An elementwise kernel: out = Function()(in...). It reads before it writes, so the output may be one of the inputs.
template <class Function, class Out, class... In> void map(const Call& call) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    for_each(
        call.out(), [](Out& out, const In&... in) { out = static_cast<Out>(Function()(widened(in)...)); },
        Elements<Out>(call.out()), Elements<In>(call.in(I))...);
  }(std::index_sequence_for<In...>());
}

// Returns the view with extent 1 along an axis.
inline plugrad_view without_axis(plugrad_view view, int axis) {
  view.shape[axis] = 1;
  return view;
}

}  // namespace plugrad::loops
#pragma GCC visibility pop
