// Orders of elements: unsigned keys, pairs of a key and a position, and the lines of elements.
#pragma once
#include <backends/cpu/operand.hpp>
#include <plugrad/sdk/rows.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace plugrad::cpu {

inline constexpr int64_t kShort = 512;  // the longest line sorted by comparisons
inline constexpr int kDigit = 11;       // bits of a key for a pass of the radix sort
inline constexpr int64_t kDigits = 1 << kDigit;

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

// The type for comparisons of elements, and their pair.
template <class T> using Compared = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;
template <class T> using Pair = std::conditional_t<sizeof(Compared<T>) == 8, Wide, Narrow>;

// Returns an unsigned number, larger for a larger element; the largest for NaN, and the same for 0 and -0.
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

// Sorts n pairs by their keys, from the last digit to the first; each pass is stable. The pairs come in the order of their
// positions. Returns the place of the sorted pairs: `pairs` or `spare`.
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

// The lines of x along the axis, and the lines of the result, with as many indices or fewer.
struct OrderedLines {
  int rank = 0;
  int64_t shape[PLUGRAD_MAX_RANK], x[PLUGRAD_MAX_RANK], out[PLUGRAD_MAX_RANK];  // of the remaining axes; strides in bytes
  int64_t count = 1, length, kept, x_axis, out_axis;                            // kept: the length of a line of the result
  char *x_base, *out_base;
  bool descending;

  explicit OrderedLines(const Call& call) {
    const auto& sort = call.attributes<plugrad_sort>();
    const plugrad_view &from = call.in(0), &to = call.out();
    for (int d = 0; d < to.rank; ++d) {
      if (d == sort.axis) continue;
      count *= shape[rank] = to.shape[d];
      x[rank] = step(from, d);
      out[rank++] = step(to, d);
    }
    length = from.shape[sort.axis];
    kept = to.shape[sort.axis];
    x_axis = step(from, sort.axis);
    out_axis = step(to, sort.axis);
    x_base = data<char>(from);
    out_base = data<char>(to);
    descending = sort.descending != 0;
  }

  // How many lines are ordered at a time.
  int64_t slots(int64_t most) const { return std::min(count, most); }
  const char* line(int64_t number) const { return x_base + offset(number, x); }

  template <class T> Pair<T> pair(T element, int64_t position) const {
    return {descending ? ~ordered(element) : ordered(element), position};
  }
  // Writes the positions of the first pairs.
  template <class P> void store(int64_t number, const P* pairs) const {
    char* to = out_base + offset(number, out);
    for (int64_t i = 0; i < kept; ++i, to += out_axis) {
      const int64_t position = pairs[i].position();
      std::memcpy(to, &position, sizeof position);
    }
  }
  void require_positions(const char* op) const {
    if (length > std::numeric_limits<uint32_t>::max())
      throw BackendError(PLUGRAD_UNSUPPORTED, std::string("[") + op + "] a line of more than 2^32 - 1 elements");
  }

 private:
  int64_t offset(int64_t number, const int64_t* strides) const {
    int64_t at = 0;
    for (int d = rank; d-- > 0; number /= shape[d]) at += number % shape[d] * strides[d];
    return at;
  }
};

}  // namespace plugrad::cpu
