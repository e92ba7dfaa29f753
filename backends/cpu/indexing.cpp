// Gather and scatter-add. Each index is checked before its use.
#include <backends/cpu/elementwise.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/rows.hpp>
#include <plugrad/sdk/rows.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace plugrad::cpu {
namespace {

template <class T> T load(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// The index space of an indexing op without the axis. Along the axis, the index selects positions in the operand `big`; the
// index itself and `small` advance one by one.
struct Space {
  int rank = 0;
  int64_t shape[PLUGRAD_MAX_RANK];
  int64_t big[PLUGRAD_MAX_RANK], index[PLUGRAD_MAX_RANK], small[PLUGRAD_MAX_RANK];  // strides in bytes
  int64_t length, extent;  // along the axis: of index, and of the indexed operand
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
      const bool joins =
          big[last] == big[d] * shape[d] && index[last] == index[d] * shape[d] && small[last] == small[d] * shape[d];
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

  // The product of the first `dims` extents.
  int64_t lines(int dims) const {
    int64_t product = 1;
    for (int d = 0; d < dims; ++d) product *= shape[d];
    return product;
  }

  struct Place {
    char *big, *index, *small;
  };
  // The place of a row-major index over the first `dims` dimensions.
  Place place(int64_t number, int dims) const {
    Place p{big_base, index_base, small_base};
    for (int d = dims - 1; d >= 0; number /= shape[d--]) {
      const int64_t i = number % shape[d];
      p.big += i * big[d];
      p.index += i * index[d];
      p.small += i * small[d];
    }
    return p;
  }

  int inner() const { return rank - 1; }
  int64_t columns() const { return shape[rank - 1]; }
  // Whether one index selects a row of contiguous elements of this size.
  bool has_whole_rows(int64_t size) const {
    return columns() > 1 && index[inner()] == 0 && big[inner()] == size && small[inner()] == size;
  }
  // Whether neighbours along the axis are closer in memory than neighbours along the last dimension.
  bool is_along_axis() const { return columns() == 1 || std::abs(small_axis) < std::abs(small[inner()]); }
  bool is_dense_along_axis(int64_t size) const {
    return big_axis == size && index_axis == sizeof(int64_t) && small_axis == size;
  }

  // Whether lines have separate indices.
  bool index_varies() const {
    return std::any_of(index, index + inner(), [](int64_t stride) { return stride != 0; });
  }

  // Returns the index at p, or -1 if it is out of range.
  int64_t at(const char* p) const {
    const int64_t i = load<int64_t>(p);
    if (i >= 0 && i < extent) [[likely]]
      return i;
    refuse(i);
    return -1;
  }
  int64_t clamped(const char* p) const { return std::clamp<int64_t>(load<int64_t>(p), 0, extent - 1); }
  [[gnu::cold]] void refuse(int64_t i) const {
    wrong.store(i, std::memory_order_relaxed);
    outside.store(true, std::memory_order_relaxed);
  }
  void check(const char* op) const {
    if (!outside.load(std::memory_order_relaxed)) return;
    throw BackendError(PLUGRAD_INDEX_ERROR, std::string("[") + op + "] index " +
                                                std::to_string(wrong.load(std::memory_order_relaxed)) +
                                                " is out of range for an axis of extent " + std::to_string(extent));
  }
};

constexpr int64_t kCacheLine = 64;         // bytes
constexpr int64_t kLineInCache = 1 << 18;  // bytes of a line that stays in a cache until its use
constexpr int64_t kAhead = 2;              // rows requested before their use

// Requests a row, or the start of a long row.
void request(const char* row, int64_t bytes) {
  for (int64_t i = 0; i < std::min<int64_t>(bytes, 4096); i += kCacheLine) __builtin_prefetch(row + i);
}

// --- Gather.

// Copies the rows selected by positions first .. last - 1 along the axis.
template <class T> void gather_rows(const Space& s, Space::Place p, int64_t first, int64_t last) {
  const int64_t bytes = s.columns() * static_cast<int64_t>(sizeof(T));
  const char* index = p.index + first * s.index_axis;
  char* to = p.small + first * s.small_axis;
  for (int64_t k = first; k < last; ++k, index += s.index_axis, to += s.small_axis) {
    if (k + kAhead < last) request(p.big + s.clamped(index + kAhead * s.index_axis) * s.big_axis, bytes);
    if (const int64_t i = s.at(index); i >= 0) std::memcpy(to, p.big + i * s.big_axis, static_cast<size_t>(bytes));
  }
}

// Copies elements first .. last - 1 of a line along the axis.
template <class T, bool dense> void gather_line(const Space& s, Space::Place p, int64_t first, int64_t last) {
  const int64_t big = dense ? sizeof(T) : s.big_axis, index = dense ? sizeof(int64_t) : s.index_axis,
                small = dense ? sizeof(T) : s.small_axis;
  const uint64_t extent = static_cast<uint64_t>(s.extent);
  // A processor cannot foresee the order of positions in a line. If a block uses most of its share of a line, it requests
  // the share of the next block.
  constexpr int64_t kBlock = 16;
  const int64_t bytes = s.extent * big / s.length;  // of a line, for each of its positions
  const int64_t share = dense && bytes <= kCacheLine && s.extent * big <= kLineInCache ? bytes * kBlock : 0;
  const char* next = p.big + s.big[s.inner()] + first * bytes;
  for (int64_t from = first; from < last; from += kBlock, next += share) {
    for (int64_t i = 0; i < share; i += kCacheLine) __builtin_prefetch(next + i, 0, 2);
    for (int64_t k = from; k < std::min(last, from + kBlock); ++k) {
      const uint64_t i = load<uint64_t>(p.index + k * index);
      if (i < extent) [[likely]]
        std::memcpy(p.small + k * small, p.big + static_cast<int64_t>(i) * big, sizeof(T));
      else s.refuse(static_cast<int64_t>(i));
    }
  }
}

// Copies positions first .. last - 1 along the axis, for all columns of a line.
template <class T> void gather_columns(const Space& s, Space::Place p, int64_t first, int64_t last) {
  const int64_t big = s.big[s.inner()], index = s.index[s.inner()], small = s.small[s.inner()];
  p.index += first * s.index_axis;
  p.small += first * s.small_axis;
  for (int64_t k = first; k < last; ++k, p.index += s.index_axis, p.small += s.small_axis) {
    for (int64_t c = 0; c < s.columns(); ++c) {
      const int64_t i = s.at(p.index + c * index);
      if (i >= 0) std::memcpy(p.small + c * small, p.big + c * big + i * s.big_axis, sizeof(T));
    }
  }
}

using GatherPiece = void (*)(const Space& s, Space::Place p, int64_t first, int64_t last);

// Divides the lines over the first `dims` dimensions into pieces along the axis; each position has `columns` elements.
void gather_pieces(const Space& s, int threads, int dims, int64_t columns, GatherPiece function) {
  const int64_t piece = std::clamp<int64_t>(kGrain / columns, 1, s.length);
  const int64_t pieces = (s.length + piece - 1) / piece, tasks = s.lines(dims) * pieces;
  const int64_t each = std::max<int64_t>(1, kGrain / (columns * piece));
  parallel(threads, (tasks + each - 1) / each, [&](int64_t task) {
    for (int64_t t = task * each; t < std::min(tasks, (task + 1) * each); ++t) {
      const int64_t first = t % pieces * piece;
      function(s, s.place(t / pieces, dims), first, std::min(s.length, first + piece));
    }
  });
}

template <class T> void gather(const Call& call) {
  if (is_immediate(call.in(0))) throw BackendError(PLUGRAD_UNSUPPORTED, "[gather] x has no extents");
  const int axis = call.attributes<plugrad_axis>().axis, threads = threads_of(call);
  const Space s(call.out(), call.in(0), call.in(1), call.out(), axis);
  if (s.has_whole_rows(sizeof(T))) gather_pieces(s, threads, s.inner(), s.columns(), gather_rows<T>);
  else if (!s.is_along_axis()) gather_pieces(s, threads, s.inner(), s.columns(), gather_columns<T>);
  else if (s.is_dense_along_axis(sizeof(T))) gather_pieces(s, threads, s.rank, 1, gather_line<T, true>);
  else gather_pieces(s, threads, s.rank, 1, gather_line<T, false>);
  s.check("gather");
}

// --- Scatter. Sources with a common target are added in their order along the axis, so the result depends on this order
// alone. `fresh`: the targets are 0 before.

template <class T> void add_to(char* to, const char* from) {
  const T sum = OpFunction<PLUGRAD_OP_ADD>()(load<T>(to), load<T>(from));
  std::memcpy(to, &sum, sizeof sum);
}

template <class T> void add_row(char* __restrict to, const char* __restrict from, int64_t n) {
  T* out = reinterpret_cast<T*>(to);
  const T* in = reinterpret_cast<const T*>(from);
#pragma omp simd
  for (int64_t c = 0; c < n; ++c) out[c] = OpFunction<PLUGRAD_OP_ADD>()(out[c], in[c]);
}

template <class T> void clear(char* to, int64_t stride, int64_t n) {
  if (stride == sizeof(T)) std::memset(to, 0, static_cast<size_t>(n) * sizeof(T));
  else
    for (int64_t i = 0; i < n; ++i) std::memset(to + i * stride, 0, sizeof(T));
}

template <class T, bool dense> void scatter_line(const Space& s, Space::Place p) {
  const int64_t big = dense ? sizeof(T) : s.big_axis, index = dense ? sizeof(int64_t) : s.index_axis,
                small = dense ? sizeof(T) : s.small_axis;
  const uint64_t extent = static_cast<uint64_t>(s.extent);
  for (int64_t k = 0; k < s.length; ++k) {
    const uint64_t i = load<uint64_t>(p.index + k * index);
    if (i < extent) [[likely]]
      add_to<T>(p.big + static_cast<int64_t>(i) * big, p.small + k * small);
    else s.refuse(static_cast<int64_t>(i));
  }
}

// Every line along the axis is a task's own.
template <class T, bool fresh> void scatter_lines(const Space& s, int threads) {
  const bool dense = s.is_dense_along_axis(sizeof(T));
  const int64_t lines = s.lines(s.rank), each = std::max<int64_t>(1, kGrain / (s.length + (fresh ? s.extent : 0)));
  parallel(threads, (lines + each - 1) / each, [&](int64_t task) {
    for (int64_t t = task * each; t < std::min(lines, (task + 1) * each); ++t) {
      const Space::Place p = s.place(t, s.rank);
      if (fresh) clear<T>(p.big, s.big_axis, s.extent);
      dense ? scatter_line<T, true>(s, p) : scatter_line<T, false>(s, p);
    }
  });
}

// Columns are cut into panels; each panel of each line is a task's own.
template <class T, bool fresh> void scatter_columns(const Space& s, int threads) {
  const int64_t big = s.big[s.inner()], index = s.index[s.inner()], small = s.small[s.inner()];
  const int64_t columns = s.columns(), width = std::clamp<int64_t>(kGrain / s.length, 16, 4096);
  const int64_t panels = (columns + width - 1) / width, tasks = s.lines(s.inner()) * panels;
  const int64_t each = std::max<int64_t>(1, kGrain / (s.length * std::min(width, columns)));
  parallel(threads, (tasks + each - 1) / each, [&](int64_t task) {
    for (int64_t t = task * each; t < std::min(tasks, (task + 1) * each); ++t) {
      Space::Place p = s.place(t / panels, s.inner());
      const int64_t first = t % panels * width, last = std::min(columns, first + width);
      for (int64_t i = 0; fresh && i < s.extent; ++i) clear<T>(p.big + i * s.big_axis + first * big, big, last - first);
      for (int64_t k = 0; k < s.length; ++k, p.index += s.index_axis, p.small += s.small_axis) {
        for (int64_t c = first; c < last; ++c)
          if (const int64_t i = s.at(p.index + c * index); i >= 0)
            add_to<T>(p.big + c * big + i * s.big_axis, p.small + c * small);
      }
    }
  });
}

// The target rows of a line, divided into buckets. Each bucket belongs to one task.
struct Buckets {
  static constexpr int64_t kBytes = 1 << 18;  // of a bucket: a cache holds it
  int64_t rows, count;                        // of a bucket; buckets
  uint32_t* order;                            // positions along the axis, sorted by bucket; stable
  uint32_t* ends;                             // where each bucket's positions end

  // There are no more buckets than positions.
  Buckets(const Space& s, int64_t size, char* workspace) : order(reinterpret_cast<uint32_t*>(workspace)) {
    const int64_t wanted = std::max(s.extent * s.columns() * size / kBytes, s.length * s.columns() / kGrain);
    rows = (s.extent + std::clamp<int64_t>(wanted, 1, s.length) - 1) / std::clamp<int64_t>(wanted, 1, s.length);
    count = (s.extent + rows - 1) / rows;
    ends = order + s.length;
  }
  static uint64_t bytes(const Space& s) { return static_cast<uint64_t>(2 * s.length) * sizeof(uint32_t); }

  uint32_t begin(int64_t bucket) const { return bucket ? ends[bucket - 1] : 0; }

  void sort(const Space& s, const char* index) {
    std::fill_n(ends, count, 0u);
    for (int64_t k = 0; k < s.length; ++k)
      if (const int64_t i = s.at(index + k * s.index_axis); i >= 0) ++ends[i / rows];
    uint32_t before = 0;
    for (int64_t b = 0; b < count; ++b) before += std::exchange(ends[b], before);
    for (int64_t k = 0; k < s.length; ++k)
      if (const uint64_t i = load<uint64_t>(index + k * s.index_axis); i < static_cast<uint64_t>(s.extent))
        order[ends[static_cast<int64_t>(i) / rows]++] = static_cast<uint32_t>(k);
  }
};

template <class T, bool fresh> void scatter_bucket(const Space& s, Space::Place p, const Buckets& buckets, int64_t bucket) {
  const int64_t first = bucket * buckets.rows, last = std::min(s.extent, first + buckets.rows), n = s.columns();
  const int64_t bytes = n * static_cast<int64_t>(sizeof(T));
  if (fresh && s.big_axis == bytes) clear<T>(p.big + first * bytes, sizeof(T), (last - first) * n);
  else
    for (int64_t i = first; fresh && i < last; ++i) clear<T>(p.big + i * s.big_axis, sizeof(T), n);
  for (uint32_t j = buckets.begin(bucket), end = buckets.ends[bucket]; j < end; ++j) {
    if (j + kAhead < end) request(p.small + buckets.order[j + kAhead] * s.small_axis, bytes);
    const int64_t k = buckets.order[j];
    add_row<T>(p.big + load<int64_t>(p.index + k * s.index_axis) * s.big_axis, p.small + k * s.small_axis, n);
  }
}

template <class T, bool fresh> void scatter_rows(const Space& s, int threads, char* workspace) {
  Buckets buckets(s, sizeof(T), workspace);
  for (int64_t line = 0, lines = s.lines(s.inner()); line < lines; ++line) {
    const Space::Place p = s.place(line, s.inner());
    if (line == 0 || s.index_varies()) buckets.sort(s, p.index);
    parallel(threads, buckets.count, [&](int64_t bucket) { scatter_bucket<T, fresh>(s, p, buckets, bucket); });
  }
}

// Every line is a task's own.
template <class T, bool fresh> void scatter_rows_by_line(const Space& s, int threads) {
  const int64_t lines = s.lines(s.inner()), n = s.columns();
  parallel(threads, lines, [&](int64_t line) {
    const Space::Place p = s.place(line, s.inner());
    for (int64_t i = 0; fresh && i < s.extent; ++i) clear<T>(p.big + i * s.big_axis, sizeof(T), n);
    for (int64_t k = 0; k < s.length; ++k)
      if (const int64_t i = s.at(p.index + k * s.index_axis); i >= 0)
        add_row<T>(p.big + i * s.big_axis, p.small + k * s.small_axis, n);
  });
}

constexpr int64_t kManyLines = 32;  // for fewer lines of rows, buckets divide the work better

Space scatter_space(const Call& call) {
  const plugrad_view &out = call.out(), &indices = call.in(0), &source = call.in(1);
  const plugrad_view& extents = is_immediate(indices) ? source : indices;
  if (is_immediate(extents)) throw BackendError(PLUGRAD_UNSUPPORTED, "[scatter_add] index and source have no extents");
  return Space(extents, out, indices, source, call.attributes<plugrad_axis>().axis);
}
bool has_buckets(const Space& s, int64_t size) {
  return s.has_whole_rows(size) && s.lines(s.inner()) < kManyLines && s.length <= std::numeric_limits<uint32_t>::max();
}
uint64_t scatter_workspace(const Call& call) {
  const Space s = scatter_space(call);
  return has_buckets(s, static_cast<int64_t>(element_size(call.out().dtype))) ? Buckets::bytes(s) : 0;
}

template <class T, bool fresh> void scatter(const Call& call) {
  const Space s = scatter_space(call);
  const int threads = threads_of(call);
  if (has_buckets(s, sizeof(T))) scatter_rows<T, fresh>(s, threads, call.workspace());
  else if (s.has_whole_rows(sizeof(T))) scatter_rows_by_line<T, fresh>(s, threads);
  else if (s.is_along_axis()) scatter_lines<T, fresh>(s, threads);
  else scatter_columns<T, fresh>(s, threads);
  s.check(fresh ? "scatter_sum" : "scatter_add");
}

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> gathers(Types<T...>) {
  return {kernel<gather<BitsOf<sizeof(T)>>>(PLUGRAD_OP_GATHER, element_dtype<T>)...};
}
template <uint32_t opcode, bool fresh, class... T> constexpr std::array<KernelRow, sizeof...(T)> scatters(Types<T...>) {
  return {with_workspace<scatter_workspace>(kernel<scatter<T, fresh>>(opcode, element_dtype<T>))...};
}
constexpr auto kIndexingRows = join(gathers(kStored), scatters<PLUGRAD_OP_SCATTER_ADD, false>(kNumbers),
                                    scatters<PLUGRAD_OP_SCATTER_SUM, true>(kNumbers));

}  // namespace

void append_indexing(RowList& rows) { append(rows, kIndexingRows); }

}  // namespace plugrad::cpu
