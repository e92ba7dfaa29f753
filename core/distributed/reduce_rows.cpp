#include <core/distributed/composition.hpp>

#include <plugrad/sdk/dtypes.hpp>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

namespace plugrad::distributed {
namespace {
constexpr uint64_t kTile = 1024;  // elements of each row at a time

// Sums of integers wrap, as in ops.
template <class C> C add(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) return a + b;
  else return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class C> C multiply(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) return a * b;
  else return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <class C> bool is_nan(C x) {
  if constexpr (std::is_floating_point_v<C>) return std::isnan(x);
  else return false;
}

// Calls body(f) with the function of two elements that `how` names.
template <class C, class Body> void with_function(uint32_t how, const Body& body) {
  switch (how) {
    case PLUGRAD_REDUCE_SUM: return body(add<C>);
    case PLUGRAD_REDUCE_PRODUCT: return body(multiply<C>);
    case PLUGRAD_REDUCE_MIN: return body([](C a, C b) { return is_nan(a) || a < b ? a : b; });
    default: return body([](C a, C b) { return is_nan(a) || a > b ? a : b; });
  }
}

template <class C> C divided(C sum, int by) {
  if constexpr (std::is_floating_point_v<C>) return sum / static_cast<C>(by);
  else return sum;
}

// bool is reduced as its bytes.
template <class T> using Cell = std::conditional_t<std::is_same_v<T, bool>, uint8_t, ComputeType<T>>;

template <class T, class F> void reduce_tree(F f, Cell<T>* rows, size_t size, uint64_t count) {
  for (size_t step = 1; step < size; step *= 2)
    for (size_t i = 0; i + step < size; i += 2 * step) {
      Cell<T>*const to = rows + i * kTile, *const from = rows + (i + step) * kTile;
      for (uint64_t k = 0; k < count; ++k) to[k] = f(to[k], from[k]);
    }
}

template <class T> void reduce_in_tiles(uint32_t how, bool average, const T* rows, size_t size, uint64_t count, T* to) {
  std::vector<Cell<T>> tile(size * kTile);
  with_function<Cell<T>>(how, [&](auto f) {
    for (uint64_t begin = 0; begin < count; begin += kTile) {
      const uint64_t n = std::min(kTile, count - begin);
      for (size_t i = 0; i < size; ++i)
        for (uint64_t k = 0; k < n; ++k) tile[i * kTile + k] = static_cast<Cell<T>>(rows[i * count + begin + k]);
      reduce_tree<T>(f, tile.data(), size, n);
      for (uint64_t k = 0; k < n; ++k)
        to[begin + k] = static_cast<T>(average ? divided(tile[k], static_cast<int>(size)) : tile[k]);
    }
  });
}
}  // namespace

void reduce_rows(uint8_t dtype, uint32_t how, bool average, const void* rows, int size, uint64_t count, void* to) {
  with_element_type(dtype, [&]<class T>(T) {
    reduce_in_tiles(how, average, static_cast<const T*>(rows), static_cast<size_t>(size), count, static_cast<T*>(to));
  });
}

void divide(uint8_t dtype, void* elements, uint64_t count, int by) {
  with_element_type(dtype, [&]<class T>(T) {
    T* const x = static_cast<T*>(elements);
    for (uint64_t i = 0; i < count; ++i) x[i] = static_cast<T>(divided(widened(x[i]), by));
  });
}

}  // namespace plugrad::distributed
