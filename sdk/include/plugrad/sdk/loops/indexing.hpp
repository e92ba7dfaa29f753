// Plain loops in host memory: GATHER, SCATTER_ADD and SCATTER_SUM.
#pragma once
#include <plugrad/sdk/loops/elements.hpp>
#include <plugrad/sdk/rows.hpp>

#pragma GCC visibility push(hidden)
namespace plugrad::loops {
namespace of_indexing {

// Called before each access, so that no memory outside the operands is accessed.
inline void check(const char* op, int64_t index, int64_t extent) {
  if (index >= 0 && index < extent) return;
  throw BackendError(PLUGRAD_INDEX_ERROR, std::string("[") + op + "] index " + std::to_string(index) +
                                              " is out of range for an axis of extent " + std::to_string(extent));
}

// The cursor of x does not move along the axis; the index gives the offset from it.
template <class T> void gather(const Call& call) {
  const int axis = call.attributes<plugrad_axis>().axis;
  const Elements<T> out(call.out());
  const Elements<int64_t> index(call.in(1));
  Elements<T> x(call.in(0));
  const int64_t extent = call.in(0).shape[axis], stride = std::exchange(x.strides[axis], 0);
  for_each(
      call.out(),
      [&](T& result, const int64_t& chosen, const T& line) {
        check("gather", chosen, extent);
        result = (&line)[chosen * stride];
      },
      out, index, x);
}

template <class T> void scatter_add(const Call& call) {
  const int axis = call.attributes<plugrad_axis>().axis;
  Elements<T> out(call.out());
  const Elements<int64_t> index(call.in(0));
  const Elements<T> source(call.in(1));
  const int64_t extent = call.out().shape[axis], stride = std::exchange(out.strides[axis], 0);
  for_each(
      is_immediate(call.in(0)) ? call.in(1) : call.in(0),
      [&](T& line, const int64_t& chosen, const T& term) {
        check("scatter_add", chosen, extent);
        T& target = (&line)[chosen * stride];
        target = OpFunction<PLUGRAD_OP_ADD>()(target, term);
      },
      out, index, source);
}

template <class T> void scatter_sum(const Call& call) {
  for_each(call.out(), [](T& target) { target = T(0); }, Elements<T>(call.out()));
  scatter_add<T>(call);
}

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> gathers(Types<T...>) {
  constexpr uint16_t kMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;  // a number has no extent to check indices against
  return {kernel<gather<T>>(PLUGRAD_OP_GATHER, element_dtype<T>, kMemory)...};
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> scatters(Types<T...>) {
  return {kernel<scatter_add<T>>(PLUGRAD_OP_SCATTER_ADD, element_dtype<T>)...};
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> sums(Types<T...>) {
  return {kernel<scatter_sum<T>>(PLUGRAD_OP_SCATTER_SUM, element_dtype<T>)...};
}

inline constexpr auto kRows = join(gathers(kStored), scatters(kNumbers), sums(kNumbers));

}  // namespace of_indexing

inline constexpr const auto& kIndexingRows = of_indexing::kRows;

}  // namespace plugrad::loops
#pragma GCC visibility pop
