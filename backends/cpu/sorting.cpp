// Argsort. An element becomes an unsigned key of the same order, and each key is sorted together with its position, so equal
// elements keep their order. Long lines are sorted by radix, short lines by comparisons.
#include <backends/cpu/elementwise.hpp>
#include <backends/cpu/ordering.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/rows.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace plugrad::cpu {
namespace {

// pairs: room for the line; twice the room for a line longer than kShort.
template <class T> void sort_line(const OrderedLines& lines, int64_t number, Pair<T>* pairs) {
  const char* from = lines.line(number);
  for (int64_t i = 0; i < lines.length; ++i, from += lines.x_axis) {
    T element;
    std::memcpy(&element, from, sizeof element);
    pairs[i] = lines.pair(element, i);
  }
  if (lines.length > kShort) return lines.store(number, radix_sort(pairs, pairs + lines.length, lines.length));
  std::sort(pairs, pairs + lines.length);
  lines.store(number, pairs);
}

template <class T> uint64_t workspace(const Call& call) {
  const OrderedLines lines(call);
  if (lines.length <= kShort) return 0;
  return static_cast<uint64_t>(lines.slots(threads_of(call)) * 2 * lines.length) * sizeof(Pair<T>);
}

template <class T> void argsort(const Call& call) {
  const OrderedLines lines(call);
  lines.require_positions("argsort");
  if (lines.length > kShort) {
    const int64_t slots = lines.slots(threads_of(call));
    auto* const pairs = reinterpret_cast<Pair<T>*>(call.workspace());
    return parallel(threads_of(call), slots, [&](int64_t slot) {
      for (int64_t i = slot; i < lines.count; i += slots) sort_line<T>(lines, i, pairs + slot * 2 * lines.length);
    });
  }
  const int64_t each = std::max<int64_t>(1, kGrain / 16 / lines.length);
  parallel(threads_of(call), (lines.count + each - 1) / each, [&](int64_t task) {
    Pair<T> pairs[kShort];
    for (int64_t i = task * each; i < std::min(lines.count, (task + 1) * each); ++i) sort_line<T>(lines, i, pairs);
  });
}

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> rows(Types<T...>) {
  return {with_workspace<workspace<Stored<T>>>(kernel<argsort<Stored<T>>>(PLUGRAD_OP_ARGSORT, element_dtype<T>))...};
}
constexpr auto kSortingRows = rows(kAny);

}  // namespace

void append_sorting(RowList& rows) { append(rows, kSortingRows); }

}  // namespace plugrad::cpu
