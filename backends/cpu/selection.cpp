// The first elements of a line in its order. A pass over the line collects elements before the last of the best elements so
// far.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/selection.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/ordering.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/rows.hpp>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The elements before a limit, and before every element equal to the limit.
enum class Beats { larger, smaller, number, nothing };  // number: every number belongs before NaN

template <class T> bool is_nan(T x) {
  if constexpr (is_floating(kDtype<T>)) return static_cast<Compared<T>>(x) != static_cast<Compared<T>>(x);
  else return false;
}
template <class T> Beats beats(T limit, bool descending) {
  if (descending) return is_nan(limit) ? Beats::nothing : Beats::larger;
  return is_nan(limit) ? Beats::number : Beats::smaller;
}

template <class T, Beats how> struct Search {
  static bool matches(Compared<T> x, Compared<T> limit) {
    if constexpr (how == Beats::larger) return !(x <= limit);  // NaN is larger
    else if constexpr (how == Beats::smaller) return x < limit;
    else return !is_nan(x);
  }

  // Returns the first position from `at` on whose element belongs before the limit; otherwise n.
  static int64_t first(const T* x, int64_t at, int64_t n, T limit) {
    if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4) at = skipped(x, at, n, limit);
    while (at < n && !matches(x[at], limit)) ++at;
    return at;
  }

 private:
  template <class D, class V> static HWY_INLINE auto mask(D, V x, V limit) {
    if constexpr (how == Beats::larger && std::is_integral_v<T>) return hn::Gt(x, limit);
    else if constexpr (how == Beats::larger) return hn::Not(hn::Le(x, limit));
    else if constexpr (how == Beats::smaller) return hn::Lt(x, limit);
    else return hn::Eq(x, x);
  }
  // Skips four vectors at a time, as long as no element of them matches.
  static int64_t skipped(const T* x, int64_t at, int64_t n, T limit) {
    const hn::ScalableTag<T> d;
    const auto bound = hn::Set(d, limit);
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto at_vector = [&](int64_t i) HWY_ATTR { return mask(d, hn::LoadU(d, x + i), bound); };
    for (; at + 4 * lanes <= n; at += 4 * lanes) {
      const auto ab = hn::Or(at_vector(at), at_vector(at + lanes));
      const auto ce = hn::Or(at_vector(at + 2 * lanes), at_vector(at + 3 * lanes));
      if (!hn::AllFalse(d, hn::Or(ab, ce))) break;
    }
    for (; at + lanes <= n; at += lanes)
      if (const auto found = hn::FindFirstTrue(d, at_vector(at)); found >= 0) return at + found;
    return at;
  }
};

template <class T> int64_t next(const T* x, int64_t at, int64_t n, T limit, Beats how) {
  switch (how) {
    case Beats::larger: return Search<T, Beats::larger>::first(x, at, n, limit);
    case Beats::smaller: return Search<T, Beats::smaller>::first(x, at, n, limit);
    case Beats::number: return Search<T, Beats::number>::first(x, at, n, limit);
    default: return n;
  }
}

// The memory for one line: the best pairs so far and the pairs collected since, and a copy of a strided line.
template <class T> struct Workplace {
  static constexpr int64_t kSlots = 4;  // for each thread
  int64_t room, copied;                 // pairs, elements
  explicit Workplace(const OrderedLines& lines)
      : room(std::min(lines.length, 2 * lines.kept + 64)),
        copied(lines.length > 1 && lines.x_axis != sizeof(T) ? lines.length : 0) {}
  int64_t bytes() const {
    return room * static_cast<int64_t>(sizeof(Pair<T>)) + (copied * static_cast<int64_t>(sizeof(T)) + 7) / 8 * 8;
  }
};

template <class P> void keep_first(P* pairs, int64_t kept, int64_t count) {
  if (count > kept) std::nth_element(pairs, pairs + kept - 1, pairs + count);
}

template <class T> void select_line(const OrderedLines& lines, const Workplace<T>& place, int64_t number, char* memory) {
  auto* const pairs = reinterpret_cast<Pair<T>*>(memory);
  const T* x = reinterpret_cast<const T*>(lines.line(number));
  if (place.copied) {
    T* const copy = reinterpret_cast<T*>(pairs + place.room);
    const char* from = lines.line(number);
    for (int64_t i = 0; i < lines.length; ++i, from += lines.x_axis) copy[i] = *reinterpret_cast<const T*>(from);
    x = copy;
  }
  int64_t count = 0, at = 0;
  for (; at < place.room; ++at) pairs[count++] = lines.pair(x[at], at);
  while (at < lines.length) {
    keep_first(pairs, lines.kept, count);
    count = lines.kept;
    const T limit = x[pairs[count - 1].position()];
    const Beats how = beats(limit, lines.descending);
    for (; (at = next(x, at, lines.length, limit, how)) < lines.length && count < place.room; ++at)
      pairs[count++] = lines.pair(x[at], at);
  }
  keep_first(pairs, lines.kept, count);
  std::sort(pairs, pairs + lines.kept);
  lines.store(number, pairs);
}

template <class T> uint64_t workspace(const Call& call) {
  const OrderedLines lines(call);
  return static_cast<uint64_t>(lines.slots(Workplace<T>::kSlots * threads_of(call)) * Workplace<T>(lines).bytes());
}

template <class T> void topk(const Call& call) {
  const OrderedLines lines(call);
  lines.require_positions("topk");
  const Workplace<T> place(lines);
  const int64_t slots = lines.slots(Workplace<T>::kSlots * threads_of(call));
  parallel(threads_of(call), slots, [&](int64_t slot) {
    for (int64_t i = slot; i < lines.count; i += slots)
      select_line<T>(lines, place, i, call.workspace() + slot * place.bytes());
  });
}

template <class... T> void append_topk(RowList& rows, Types<T...>) {
  (rows.push_back(with_workspace<workspace<Stored<T>>>(kernel<topk<Stored<T>>>(PLUGRAD_OP_TOPK, element_dtype<T>))), ...);
}

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_selection<HWY_TARGET>(RowList& rows) { HWY_NAMESPACE::append_topk(rows, kAny); }
}  // namespace plugrad::cpu
