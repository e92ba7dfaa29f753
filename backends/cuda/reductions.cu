#include <backends/cuda/reduction.hpp>
#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

template <class T> struct Candidate {
  int64_t index;
  T value[8 / sizeof(T)];  // [0] is the value; the rest, 0, replaces undefined padding
};

// NaN counts as the largest value; among equals the first wins.
struct Better {
  template <class T> __device__ Candidate<T> operator()(const Candidate<T>& a, const Candidate<T>& b) const {
    const bool a_nan = is_nan(a.value[0]), b_nan = is_nan(b.value[0]);
    const bool a_wins = a_nan ? !b_nan || a.index < b.index
                              : !b_nan && (a.value[0] > b.value[0] || (a.value[0] == b.value[0] && a.index < b.index));
    return a_wins ? a : b;
  }
};

template <class T> struct Argmax {
  using Value = AccumulatorOf<T>;
  using Accumulator = Candidate<Value>;
  using Out = int64_t;
  using Combine = Better;
  static constexpr bool kOrderIsFree = false;
  __device__ static Accumulator identity() { return {INT64_MAX, {kBottom<Value>}}; }
  __device__ static Accumulator take(T x, uint64_t index) { return {static_cast<int64_t>(index), {static_cast<Value>(x)}}; }
  __device__ static void finish(const Accumulator& best, int64_t& out, bool) { out = best.index; }
};

template <class... In> constexpr std::array<KernelRow, sizeof...(In)> sums(Types<In...>) {
  return {reduce_row<Sum<OperandType<PLUGRAD_OP_SUM, 0, In>, In>, In>(PLUGRAD_OP_SUM, element_dtype<In>,
                                                                      kPlainFlags | PLUGRAD_ACCUMULATE)...};
}
template <template <class> class R, class... T>
constexpr std::array<KernelRow, sizeof...(T)> rows(uint32_t opcode, Types<T...>) {
  return {reduce_row<R<T>, T>(opcode, element_dtype<T>)...};
}

constexpr auto kSums = sums(kAny);
constexpr auto kExtremes = join(rows<Max>(PLUGRAD_OP_MAX, kNumbers), rows<Min>(PLUGRAD_OP_MIN, kNumbers));
constexpr auto kArgmax = rows<Argmax>(PLUGRAD_OP_ARGMAX, kNumbers);

}  // namespace

Rows sum_rows() { return kSums; }
Rows extreme_rows() { return kExtremes; }
Rows argmax_rows() { return kArgmax; }

}  // namespace plugrad::cuda
