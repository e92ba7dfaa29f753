// Gather and scatter-add. Indices are checked one by one, before they are used.
#include <backends/cpu/elementwise.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/rows.hpp>
#include <plugrad/sdk/rows.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

namespace plugrad::cpu {
namespace {

// The index space of an indexing op without the axis. Along the axis, the index selects positions in the operand `big`; the
// index itself and `small` advance one by one.
struct Space {
  int rank = 0;
  int64_t shape[PLUGRAD_MAX_RANK];
  int64_t big[PLUGRAD_MAX_RANK], index[PLUGRAD_MAX_RANK], small[PLUGRAD_MAX_RANK];  // strides in bytes
  int64_t length, extent;  // along the axis: of index, and of what is indexed
  int64_t big_axis, index_axis, small_axis;
  char *big_base, *index_base, *small_base;
  alignas(8) char slots[2][8];
  mutable std::atomic<bool> outside{false};
  mutable std::atomic<int64_t> wrong{0};

  // extents: the view with the shape of the index space.
  Space(const plugrad_view& extents, const plugrad_view& bigs, const plugrad_view& indices, const plugrad_view& smalls,
        int axis) {
    for (int d = 0; d < extents.rank; ++d) {
      if (d == axis || extents.shape[d] == 1) continue;
      shape[rank] = extents.shape[d];
      big[rank] = step(bigs, d);
      index[rank] = step(indices, d);
      small[rank++] = step(smalls, d);
    }
    const bool scalar = extents.rank == 0;
    length = scalar ? 1 : extents.shape[axis];
    extent = scalar ? 1 : bigs.shape[axis];
    big_axis = scalar ? 0 : step(bigs, axis);
    index_axis = scalar ? 0 : step(indices, axis);
    small_axis = scalar ? 0 : step(smalls, axis);
    big_base = data<char>(bigs);
    index_base = address(indices, slots[0]);
    small_base = address(smalls, slots[1]);
    merge();
  }

  void merge() {
    int last = 0;
    for (int d = 1; d < rank; ++d) {
      const bool joins = big[last] == big[d] * shape[d] && index[last] == index[d] * shape[d] &&
                         small[last] == small[d] * shape[d];
      if (!joins) ++last;
      shape[last] = joins ? shape[last] * shape[d] : shape[d];
      big[last] = big[d];
      index[last] = index[d];
      small[last] = small[d];
    }
    rank = std::min(rank, last + 1);
    if (rank > 0) return;
    rank = 1;
    shape[0] = 1;
    big[0] = index[0] = small[0] = 0;
  }

  int64_t lines() const {
    int64_t product = 1;
    for (int d = 0; d < rank - 1; ++d) product *= shape[d];
    return product;
  }

  struct Place {
    char *big, *index, *small;
  };
  Place line(int64_t number) const {
    Place p{big_base, index_base, small_base};
    for (int d = rank - 2; d >= 0; number /= shape[d--]) {
      const int64_t i = number % shape[d];
      p.big += i * big[d];
      p.index += i * index[d];
      p.small += i * small[d];
    }
    return p;
  }

  // Returns the index at p, or -1 if it is out of range.
  int64_t at(const char* p) const {
    int64_t i;
    std::memcpy(&i, p, sizeof i);
    if (i >= 0 && i < extent) return i;
    wrong.store(i, std::memory_order_relaxed);
    outside.store(true, std::memory_order_relaxed);
    return -1;
  }
  void check(const char* op) const {
    if (!outside.load(std::memory_order_relaxed)) return;
    throw BackendError(PLUGRAD_INDEX_ERROR, std::string("[") + op + "] index " +
                                                std::to_string(wrong.load(std::memory_order_relaxed)) +
                                                " is out of range for an axis of extent " + std::to_string(extent));
  }
};

template <class T> void copy_row(char* to, const char* from, int64_t n) {
  if (n == 1) std::memcpy(to, from, sizeof(T));
  else std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
}

// Copies positions first .. last - 1 along the axis, for all columns of a line.
template <class T> void gather_line(const Space& s, Space::Place p, int64_t first, int64_t last) {
  const int inner = s.rank - 1;
  const int64_t n = s.shape[inner], big = s.big[inner], index = s.index[inner], small = s.small[inner];
  const bool whole_rows = index == 0 && ((big == sizeof(T) && small == sizeof(T)) || n == 1);
  p.index += first * s.index_axis;
  p.small += first * s.small_axis;
  for (int64_t k = first; k < last; ++k, p.index += s.index_axis, p.small += s.small_axis) {
    if (whole_rows) {
      const int64_t i = s.at(p.index);
      if (i >= 0) copy_row<T>(p.small, p.big + i * s.big_axis, n);
      continue;
    }
    for (int64_t c = 0; c < n; ++c) {
      const int64_t i = s.at(p.index + c * index);
      if (i >= 0) std::memcpy(p.small + c * small, p.big + c * big + i * s.big_axis, sizeof(T));
    }
  }
}

template <class T> void gather(const Call& call) {
  if (is_immediate(call.in(0))) throw BackendError(PLUGRAD_UNSUPPORTED, "[gather] x has no extents");
  const int axis = call.attributes<plugrad_axis>().axis;
  const Space s(call.out(), call.in(0), call.in(1), call.out(), axis);
  const int64_t columns = s.shape[s.rank - 1], piece = std::clamp<int64_t>(kGrain / columns, 1, s.length);
  const int64_t pieces = (s.length + piece - 1) / piece, tasks = s.lines() * pieces;
  const int64_t each = std::max<int64_t>(1, kGrain / (columns * piece));
  parallel(threads_of(call), (tasks + each - 1) / each, [&](int64_t task) {
    for (int64_t t = task * each; t < std::min(tasks, (task + 1) * each); ++t) {
      const int64_t first = t % pieces * piece;
      gather_line<T>(s, s.line(t / pieces), first, std::min(s.length, first + piece));
    }
  });
  s.check("gather");
}

template <class T> void add_to(char* to, const char* from) {
  T a, b;
  std::memcpy(&a, to, sizeof a);
  std::memcpy(&b, from, sizeof b);
  a = Function<PLUGRAD_OP_ADD>()(a, b);
  std::memcpy(to, &a, sizeof a);
}

template <class T> void scatter_line(const Space& s, Space::Place p, int64_t first, int64_t last) {
  const int inner = s.rank - 1;
  const int64_t big = s.big[inner], index = s.index[inner], small = s.small[inner];
  if (index == 0 && big == sizeof(T) && small == sizeof(T)) {
    const int64_t i = s.at(p.index);
    if (i < 0) return;
    char* to = p.big + i * s.big_axis;
    for (int64_t c = first; c < last; ++c)
      add_to<T>(to + c * static_cast<int64_t>(sizeof(T)), p.small + c * static_cast<int64_t>(sizeof(T)));
    return;
  }
  for (int64_t c = first; c < last; ++c) {
    const int64_t i = s.at(p.index + c * index);
    if (i >= 0) add_to<T>(p.big + c * big + i * s.big_axis, p.small + c * small);
  }
}

// Only sources along the axis may share a target: tasks take different lines or columns, and each follows the axis in order.
template <class T> void scatter_add(const Call& call) {
  const plugrad_view &out = call.out(), &indices = call.in(0), &source = call.in(1);
  const plugrad_view& extents = is_immediate(indices) ? source : indices;
  if (is_immediate(extents)) throw BackendError(PLUGRAD_UNSUPPORTED, "[scatter_add] index and source have no extents");
  const Space s(extents, out, indices, source, call.attributes<plugrad_axis>().axis);
  const int64_t columns = s.shape[s.rank - 1], width = std::clamp<int64_t>(kGrain / s.length, 16, 4096);
  const int64_t panels = (columns + width - 1) / width, tasks = s.lines() * panels;
  const int64_t each = std::max<int64_t>(1, kGrain / (s.length * std::min(width, columns)));
  parallel(threads_of(call), (tasks + each - 1) / each, [&](int64_t task) {
    for (int64_t t = task * each; t < std::min(tasks, (task + 1) * each); ++t) {
      Space::Place p = s.line(t / panels);
      const int64_t first = t % panels * width, last = std::min(columns, first + width);
      for (int64_t i = 0; i < s.length; ++i, p.index += s.index_axis, p.small += s.small_axis)
        scatter_line<T>(s, p, first, last);
    }
  });
  s.check("scatter_add");
}

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> gathers(Types<T...>) {
  return {kernel<gather<BitsOf<sizeof(T)>>>(PLUGRAD_OP_GATHER, element_dtype<T>)...};
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> scatters(Types<T...>) {
  return {kernel<scatter_add<T>>(PLUGRAD_OP_SCATTER_ADD, element_dtype<T>)...};
}
constexpr auto kRows = join(gathers(kStored), scatters(kNumbers));

}  // namespace

void append_indexing(RowList& rows) {
  append(rows, kRows);
}

}  // namespace plugrad::cpu
