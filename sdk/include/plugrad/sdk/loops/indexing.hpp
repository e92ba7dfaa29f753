// Plain loops in host memory: GATHER, SCATTER_ADD and SCATTER_SUM.
#pragma once
#include <plugrad/sdk/loops/elements.hpp>
#include <plugrad/sdk/rows.hpp>

#include <cstdio>

#pragma GCC visibility push(hidden)
namespace plugrad::loops {
namespace of_indexing {

// Returns the first index outside of the extent, or null.
inline const int64_t* first_wrong(const plugrad_view& shape, const Elements<int64_t>& index, int64_t extent) {
  const int64_t* wrong = nullptr;
  for_each(
      shape,
      [&](const int64_t& each) {
        if (!wrong && (each < 0 || each >= extent)) wrong = &each;
      },
      index);
  return wrong;
}

// Reports the first index outside of an axis, before any access to memory. Throws nothing: a plugin in another language may
// be linked without tables for exceptions.
inline plugrad_status checked(const Call& call, const char* op, const plugrad_view& shape, const plugrad_view& indices,
                              int64_t extent) {
  const Elements<int64_t> index(indices);
  const int64_t* const wrong = first_wrong(shape, index, extent);
  if (!wrong) return PLUGRAD_OK;
  char text[128];
  std::snprintf(text, sizeof text, "[%s] index %lld is out of range for an axis of extent %lld", op,
                static_cast<long long>(*wrong), static_cast<long long>(extent));
  const plugrad_host* const host = static_cast<const BoundKernel*>(call.kernel())->device->host;
  host->report(host, PLUGRAD_INDEX_ERROR, text);
  return PLUGRAD_INDEX_ERROR;
}

// The cursor of x does not move along the axis; the index gives the offset from it.
template <class T> void gather(const Call& call) {
  const int axis = call.attributes<plugrad_axis>().axis;
  const Elements<T> out(call.out());
  const Elements<int64_t> index(call.in(1));
  Elements<T> x(call.in(0));
  const int64_t stride = std::exchange(x.strides[axis], 0);
  for_each(
      call.out(), [&](T& result, const int64_t& chosen, const T& line) { result = (&line)[chosen * stride]; }, out, index,
      x);
}
template <class T>
plugrad_status run_gather(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
  const Call call(self, stream, op);
  const int64_t extent = call.in(0).shape[call.attributes<plugrad_axis>().axis];
  if (const plugrad_status status = checked(call, "gather", call.out(), call.in(1), extent)) return status;
  gather<T>(call);
  return PLUGRAD_OK;
}

template <class T> void scatter_add(const Call& call) {
  const int axis = call.attributes<plugrad_axis>().axis;
  Elements<T> out(call.out());
  const Elements<int64_t> index(call.in(0));
  const Elements<T> source(call.in(1));
  const int64_t stride = std::exchange(out.strides[axis], 0);
  for_each(
      is_immediate(call.in(0)) ? call.in(1) : call.in(0),
      [&](T& line, const int64_t& chosen, const T& term) {
        T& target = (&line)[chosen * stride];
        target = OpFunction<PLUGRAD_OP_ADD>()(target, term);
      },
      out, index, source);
}

template <class T> void scatter_sum(const Call& call) {
  for_each(call.out(), [](T& target) { target = T(0); }, Elements<T>(call.out()));
  scatter_add<T>(call);
}
template <auto Scatter>
plugrad_status run_scatter(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
  const Call call(self, stream, op);
  const int64_t extent = call.out().shape[call.attributes<plugrad_axis>().axis];
  const plugrad_view& shape = is_immediate(call.in(0)) ? call.in(1) : call.in(0);
  if (const plugrad_status status = checked(call, "scatter_add", shape, call.in(0), extent)) return status;
  Scatter(call);
  return PLUGRAD_OK;
}

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> gathers(Types<T...>) {
  constexpr uint16_t kMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;  // a number has no extent to check indices against
  return {kernel_row(PLUGRAD_OP_GATHER, element_dtype<T>, run_gather<T>, kMemory)...};
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> scatters(Types<T...>) {
  return {kernel_row(PLUGRAD_OP_SCATTER_ADD, element_dtype<T>, run_scatter<scatter_add<T>>)...};
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> sums(Types<T...>) {
  return {kernel_row(PLUGRAD_OP_SCATTER_SUM, element_dtype<T>, run_scatter<scatter_sum<T>>)...};
}

inline constexpr auto kRows = join(gathers(kStored), scatters(kNumbers), sums(kNumbers));

}  // namespace of_indexing

inline constexpr const auto& kIndexingRows = of_indexing::kRows;

}  // namespace plugrad::loops
#pragma GCC visibility pop
