// Argsort. An element becomes an unsigned key of the same order, and each key is sorted together with its position, so that
// equal elements keep their order. Long lines are sorted by radix, short ones by comparisons.
#include <backends/cpu/elementwise.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/rows.hpp>
#include <plugrad/sdk/rows.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace plugrad::cpu {
namespace {

constexpr int64_t kShort = 512;       // the longest line that is sorted by comparisons, in memory of the stack
constexpr int kDigit = 11;            // bits of a key that one pass of the radix sort looks at
constexpr int64_t kDigits = 1 << kDigit;

// The keys of 4 bytes and the positions share a word.
struct Narrow {
  using Key = uint32_t;
  uint64_t word;
  Narrow() = default;
  Narrow(Key key, int64_t at) : word(static_cast<uint64_t>(key) << 32 | static_cast<uint64_t>(at)) {}
  Key key() const { return static_cast<Key>(word >> 32); }
  int64_t position() const { return static_cast<int64_t>(word & 0xffffffff); }
  friend bool operator<(Narrow a, Narrow b) { return a.word < b.word; }
};
struct Wide {
  using Key = uint64_t;
  uint64_t of_element;
  int64_t at;
  Wide() = default;
  Wide(Key key, int64_t position) : of_element(key), at(position) {}
  Key key() const { return of_element; }
  int64_t position() const { return at; }
  friend bool operator<(const Wide& a, const Wide& b) {
    return a.of_element != b.of_element ? a.of_element < b.of_element : a.at < b.at;
  }
};

// The type in which elements are compared, and their pair.
template <class T> using Compared = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;
template <class T> using Pair = std::conditional_t<sizeof(Compared<T>) == 8, Wide, Narrow>;

// Returns an unsigned number that is larger for a larger element; the largest for NaN, and one for both 0 and -0.
template <class T> typename Pair<T>::Key ordered(T element) {
  using Key = typename Pair<T>::Key;
  constexpr Key kSign = Key(1) << (8 * sizeof(Key) - 1);
  if constexpr (is_floating(element_dtype<T>)) {
    const Compared<T> x = static_cast<Compared<T>>(element);
    if (x != x) return std::numeric_limits<Key>::max();
    const Key bits = x == 0 ? Key{0} : std::bit_cast<Key>(x);
    return bits & kSign ? ~bits : bits | kSign;
  } else {
    return static_cast<Key>(element) ^ kSign;
  }
}

// Sorts n pairs by their keys, from the last digit to the first; each pass is stable. Returns where they end up: in `pairs`
// or in `spare`.
template <class P> P* radix_sort(P* pairs, P* spare, int64_t n) {
  constexpr int kPasses = (8 * sizeof(typename P::Key) + kDigit - 1) / kDigit;
  const auto digit = [](const P& pair, int pass) {
    return static_cast<size_t>(pair.key() >> (pass * kDigit) & (kDigits - 1));
  };
  std::array<std::array<uint32_t, kDigits>, kPasses> counts{};
  for (int64_t i = 0; i < n; ++i)
    for (int pass = 0; pass < kPasses; ++pass) ++counts[pass][digit(pairs[i], pass)];
  for (int pass = 0; pass < kPasses; ++pass) {
    std::array<uint32_t, kDigits>& places = counts[pass];
    if (places[digit(pairs[0], pass)] == n) continue;  // all keys have this digit
    uint32_t before = 0;
    for (uint32_t& place : places) before += std::exchange(place, before);
    for (int64_t i = 0; i < n; ++i) spare[places[digit(pairs[i], pass)]++] = pairs[i];
    std::swap(pairs, spare);
  }
  return pairs;
}

// The lines of x and of the result along the axis.
struct SortedLines {
  int rank = 0;
  int64_t shape[PLUGRAD_MAX_RANK], x[PLUGRAD_MAX_RANK], out[PLUGRAD_MAX_RANK];  // of the other axes; strides in bytes
  int64_t count = 1, length, x_axis, out_axis;
  char *x_base, *out_base;
  bool descending;

  explicit SortedLines(const Call& call) {
    const auto& sort = call.attributes<plugrad_sort>();
    const plugrad_view &from = call.in(0), &to = call.out();
    for (int d = 0; d < to.rank; ++d) {
      if (d == sort.axis) continue;
      count *= shape[rank] = to.shape[d];
      x[rank] = step(from, d);
      out[rank++] = step(to, d);
    }
    length = to.shape[sort.axis];
    x_axis = step(from, sort.axis);
    out_axis = step(to, sort.axis);
    x_base = data<char>(from);
    out_base = data<char>(to);
    descending = sort.descending != 0;
  }

  bool is_short() const { return length <= kShort; }
  // How many lines are sorted at a time.
  int64_t slots(int threads) const { return std::min<int64_t>(count, threads); }

  // pairs: room for the line; twice that for one that is not short.
  template <class T> void sort(int64_t line, Pair<T>* pairs) const {
    const char* from = x_base;
    char* to = out_base;
    for (int d = rank; d-- > 0; line /= shape[d]) {
      from += line % shape[d] * x[d];
      to += line % shape[d] * out[d];
    }
    for (int64_t i = 0; i < length; ++i, from += x_axis) {
      T element;
      std::memcpy(&element, from, sizeof element);
      pairs[i] = Pair<T>(descending ? ~ordered(element) : ordered(element), i);
    }
    if (is_short()) std::sort(pairs, pairs + length);
    else pairs = radix_sort(pairs, pairs + length, length);
    for (int64_t i = 0; i < length; ++i, to += out_axis) {
      const int64_t position = pairs[i].position();
      std::memcpy(to, &position, sizeof position);
    }
  }
};

template <class T> uint64_t workspace(const Call& call) {
  const SortedLines lines(call);
  if (lines.is_short()) return 0;
  return static_cast<uint64_t>(lines.slots(threads_of(call)) * 2 * lines.length) * sizeof(Pair<T>);
}

template <class T> void argsort(const Call& call) {
  const SortedLines lines(call);
  if (lines.length > std::numeric_limits<uint32_t>::max())
    throw BackendError(PLUGRAD_UNSUPPORTED, "[argsort] a line of more than 2^32 - 1 elements");
  if (!lines.is_short()) {
    const int64_t slots = lines.slots(threads_of(call));
    auto* const pairs = reinterpret_cast<Pair<T>*>(call.workspace());
    return parallel(threads_of(call), slots, [&](int64_t slot) {
      for (int64_t i = slot; i < lines.count; i += slots) lines.sort<T>(i, pairs + slot * 2 * lines.length);
    });
  }
  const int64_t each = std::max<int64_t>(1, kGrain / 16 / lines.length);
  parallel(threads_of(call), (lines.count + each - 1) / each, [&](int64_t task) {
    Pair<T> pairs[kShort];
    for (int64_t i = task * each; i < std::min(lines.count, (task + 1) * each); ++i) lines.sort<T>(i, pairs);
  });
}

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> rows(Types<T...>) {
  return {with_workspace<workspace<Stored<T>>>(kernel<argsort<Stored<T>>>(PLUGRAD_OP_ARGSORT, element_dtype<T>))...};
}
constexpr auto kRows = rows(kAny);

}  // namespace

void append_sorting(RowList& rows) { append(rows, kRows); }

}  // namespace plugrad::cpu
