// The inner loops of matrix products: a strip of rows of the output, held in registers, times panels of columns.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/contraction.hpp>
#include <backends/cpu/dots-inl.hpp>
#include <backends/cpu/narrow_dots-inl.hpp>
#include <backends/cpu/packing-inl.hpp>
#include <backends/cpu/product.hpp>
#include <backends/cpu/rows.hpp>
#include <backends/cpu/tile.hpp>
#include <backends/cpu/wide_product.hpp>
#include <plugrad/sdk/rows.hpp>

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

// The sums of a strip of rows times a panel of vectors fill the registers, together with a row of the panel and an element
// of the left operand. Wide panels need the fewest instructions per product; the last columns use narrower panels.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kPanelVectors = 4;
template <int vectors> constexpr int kRows = vectors == 4 ? 6 : vectors == 2 ? 12 : 14;
constexpr int kUnrolled = 4;  // columns of a strip in a row of the inner loop
#else
constexpr int kPanelVectors = 2;
template <int vectors> constexpr int kRows = 6;
constexpr int kUnrolled = 1;  // with more, the compiler moves loads up until the 16 registers spill
#endif
// From so many panels on, it pays to pack rows that a cache maps to one set, and rows with elements far apart.
constexpr int64_t kPanelsForRows = 4, kPanelsForColumns = 2;
constexpr int64_t kPackedBytes = 1 << 17;  // of strips packed together

// Strips of rows times panels of `vectors` vectors: a and c begin with the first strip.
template <class T> struct Strips {
  int64_t k;
  Matrix<const T> a;
  const T* b;
  int64_t b_row, b_panel, panels;  // elements between rows, between panels; number of panels
  T* c;
  int64_t c_row;
  Addend<T> addend;
  int64_t last;            // how many columns of the last panel exist
  Ahead* ahead = nullptr;  // the memory to pack next; otherwise packing would wait for memory
  Ahead* soon = nullptr;   // the memory that follows the product
};

template <class T> struct Kernel {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr int64_t kSize = sizeof(T);
  static int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

  // Adds the products of one panel to sums.
  template <int rows, int vectors>
  static HWY_INLINE void accumulate(int64_t k, Matrix<const T> a, const T* b, int64_t b_row, V (&sums)[rows][vectors]) {
    if constexpr (rows * vectors < 3) return accumulate_in_turns<rows, vectors>(k, a, b, b_row, sums);
    constexpr int kGroups = (rows + 2) / 3;  // one address register can address three rows
    const T* left[kGroups];
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) left[g] = a.data + 3 * g * a.row;
    int64_t i = 0;
    if (a.column == 1) {
      for (; i + kUnrolled <= k; i += kUnrolled) {
#pragma GCC unroll 8
        for (int u = 0; u < kUnrolled; ++u, b += b_row) add_product<rows, vectors>(left, a.row, u, b, sums);
        advance<kGroups>(left, kUnrolled);
      }
    }
    for (; i < k; ++i, b += b_row) {
      add_product<rows, vectors>(left, a.row, 0, b, sums);
      advance<kGroups>(left, a.column);
    }
  }

  // The same for one or two sums: several partial sums take turns, since a product waits for the product before it in the
  // same sum.
  template <int rows, int vectors>
  static HWY_INLINE void accumulate_in_turns(int64_t k, Matrix<const T> a, const T* b, int64_t b_row,
                                             V (&sums)[rows][vectors]) {
    V second[rows][vectors], third[rows][vectors], fourth[rows][vectors];
    zero<rows, vectors>(second);
    zero<rows, vectors>(third);
    zero<rows, vectors>(fourth);
    const T* left[1] = {a.data};
    const auto add = [&](V(&to)[rows][vectors]) {
      add_product<rows, vectors>(left, a.row, 0, b, to);
      left[0] += a.column;
      b += b_row;
    };
    int64_t i = 0;
    for (; i + 4 <= k; i += 4) {
      add(sums);
      add(second);
      add(third);
      add(fourth);
    }
    for (; i < k; ++i) add(sums);
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v)
        sums[r][v] = hn::Add(hn::Add(sums[r][v], second[r][v]), hn::Add(third[r][v], fourth[r][v]));
  }

  template <int groups> static HWY_INLINE void advance(const T* (&left)[groups], int64_t by) {
#pragma GCC unroll 8
    for (int g = 0; g < groups; ++g) {
      left[g] += by;
      asm("" : "+r"(left[g]));  // else the compiler keeps a pointer per row, more than there are registers
    }
  }

  // Adds the products of one column of the strip, `at` elements from left, and one row of the panel.
  template <int rows, int vectors, int groups>
  static HWY_INLINE void add_product(const T* const (&left)[groups], int64_t row, int at, const T* b,
                                     V (&sums)[rows][vectors]) {
    const D d;
    const int64_t wide = lanes();
    V right[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) right[v] = hn::LoadU(d, b + v * wide);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const V factor = hn::Set(d, (left[r / 3] + (r % 3) * row)[at]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(factor, right[v], sums[r][v]);
    }
  }

  template <int rows, int vectors> static HWY_INLINE void store(const V (&sums)[rows][vectors], T* c, int64_t c_row) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) hn::StoreU(sums[r][v], D(), c + v * lanes());
      c += c_row;
      asm("" : "+r"(c));
    }
  }
  // The same with the rows that begin at `addend` added.
  template <int rows, int vectors>
  static HWY_INLINE void store_sum(const V (&sums)[rows][vectors], T* c, int64_t c_row, const T* addend,
                                   int64_t addend_row) {
    const D d;
    const int64_t wide = lanes();
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) hn::StoreU(hn::Add(sums[r][v], hn::LoadU(d, addend + v * wide)), d, c + v * wide);
      c += c_row;
      addend += addend_row;
      asm("" : "+r"(c), "+r"(addend));
    }
  }

  // The output is read or written only after many products: long enough ahead for memory to deliver it.
  template <int rows, int vectors> static HWY_INLINE void prefetch(const T* c, int64_t c_row) {
    for (int r = 0; r < rows; ++r, c += c_row)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) hwy::Prefetch(c + v * lanes());
  }

  template <int rows, int vectors> static HWY_INLINE void zero(V (&sums)[rows][vectors]) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::Zero(D());
  }

  // A panel whose last columns do not exist in c: computes whole vectors in a buffer.
  template <int rows, int vectors>
  static HWY_NOINLINE void finish(const Strips<T>& s, Matrix<const T> a, const T* b, T* c, const T* addend) {
    constexpr int64_t kWide = vectors * HWY_MAX_BYTES / kSize;
    HWY_ALIGN T buffer[rows * kWide] = {};
    V sums[rows][vectors];
    zero<rows, vectors>(sums);
    accumulate<rows, vectors>(s.k, a, b, s.b_row, sums);
    store<rows, vectors>(sums, buffer, kWide);
    for (int r = 0; r < rows; ++r)
      for (int64_t j = 0; j < s.last; ++j)
        c[r * s.c_row + j] = addend ? buffer[r * kWide + j] + addend[r * s.addend.row + j] : buffer[r * kWide + j];
  }

  // Runs the strip with rows from `left`, `c` and `addend`. These pointers are not members of s: a member written just
  // before would be read together with its neighbour, and the processor would wait for the write.
  template <int rows, int vectors>
  static HWY_NOINLINE void run_strip(const Strips<T>& s, const T* left, T* c, const T* addend) {
    const int64_t wide = vectors * lanes(), whole = s.panels - (s.last < wide);
    const Matrix<const T> a{left, s.a.row, s.a.column};
    const bool reads_more = addend && addend != c && s.addend.row != 0;
    const T* b = s.b;
    for (int64_t p = 0; p < whole; ++p, b += s.b_panel, c += wide) {
      prefetch<rows, vectors>(c, s.c_row);
      if (reads_more) prefetch<rows, vectors>(addend, s.addend.row);
      if (s.ahead) s.ahead->fetch();
      if (s.soon) s.soon->fetch();
      V sums[rows][vectors];
      zero<rows, vectors>(sums);
      accumulate<rows, vectors>(s.k, a, b, s.b_row, sums);
      if (addend) {
        store_sum<rows, vectors>(sums, c, s.c_row, addend, s.addend.row);
        addend += wide;
      } else {
        store<rows, vectors>(sums, c, s.c_row);
      }
    }
    if (whole < s.panels) finish<rows, vectors>(s, a, b, c, addend);
  }

  using RunStrip = void (*)(const Strips<T>&, const T*, T*, const T*);
  template <int vectors, int... i>
  static constexpr std::array<RunStrip, sizeof...(i)> strips(std::integer_sequence<int, i...>) {
    return {run_strip<i + 1, vectors>...};
  }

  // Rows in strips of nearly equal height: the first `higher` strips have a row more.
  struct Heights {
    Heights(int64_t m, int64_t most) : count((m + most - 1) / most), least(m / count), higher(m - least * count) {}
    int64_t of(int64_t strip) const { return least + (strip < higher); }
    int64_t count, least, higher;
  };

  // Computes m rows. No copy of s: the processor would wait for freshly written members.
  template <int vectors> static HWY_INLINE void run_strips(int64_t m, Strips<T>& s) {
    if constexpr (vectors == kPanelVectors)
      if (s.a.column == 1 ? s.panels >= kPanelsForRows && s.a.row * kSize % 4096 == 0 : s.panels >= kPanelsForColumns)
        return run_packed(m, s);
    static constexpr auto kRun = strips<vectors>(std::make_integer_sequence<int, kRows<vectors>>());
    const T *a = s.a.data, *addend = s.addend.data;
    T* c = s.c;
    const Heights heights(m, kRows<vectors>);
    for (int64_t i = 0; i < heights.count; ++i) {
      const int64_t rows = heights.of(i);
      kRun[static_cast<size_t>(rows - 1)](s, a, c, addend);
      a += rows * s.a.row;
      c += rows * s.c_row;
      if (addend) addend += rows * s.addend.row;
    }
  }

  // The same with copies of the strips, since a cache may map their rows or columns to one set.
  static HWY_NOINLINE void run_packed(int64_t m, Strips<T>& s) {
    constexpr int kMost = kRows<kPanelVectors>;
    constexpr int64_t kPacked = kPackedBytes / kSize, kLine = 64 / kSize;
    static constexpr auto kRun = strips<kPanelVectors>(std::make_integer_sequence<int, kMost>());
    static_assert(kMost * (kDepth<T> + kLine) <= kPacked);
    HWY_ALIGN T packed[kPacked];
    const int64_t stride = s.k + kLine;
    Matrix<const T> a = s.a;
    const T* addend = s.addend.data;
    T* c = s.c;
    Ahead ahead;
    s.a = {packed, stride, 1};
    s.ahead = &ahead;
    const Heights heights(m, kMost);
    for (int64_t i = 0, left = m; i < heights.count;) {
      const int64_t some = a.column == 1 ? 1 : std::min(heights.count - i, kPacked / (kMost * stride));
      const int64_t rows = some * heights.least + std::clamp<int64_t>(heights.higher - i, 0, some);
      Packing<T>::copy(rows, s.k, a, packed, stride);
      a.data += rows * a.row;
      left -= rows;
      ahead = a.column == 1 && left > 0 ? ahead_of(a, heights.of(i + some), s.k, some * s.panels) : Ahead();
      const T* from = packed;
      for (const int64_t end = i + some; i < end; ++i) {
        const int64_t height = heights.of(i);
        kRun[static_cast<size_t>(height - 1)](s, from, c, addend);
        from += height * stride;
        c += height * s.c_row;
        if (addend) addend += height * s.addend.row;
      }
    }
  }
  // The contiguous rows of a. Each of `panels` panels fetches a part of them.
  static Ahead ahead_of(Matrix<const T> a, int64_t rows, int64_t k, int64_t panels) {
    const int64_t lines = (k * kSize + 126) / 64;  // a row may begin within a line
    return {reinterpret_cast<const char*>(a.data), a.row * kSize, lines, 0, (rows * lines + panels - 1) / panels};
  }

  static Addend<T> past(Addend<T> addend, int64_t columns) {
    return {addend.data ? addend.data + columns : nullptr, addend.row};
  }

  static void multiply_panels(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Panels<T> b, Matrix<T> c, Addend<T> addend,
                              Ahead* soon) {
    const int64_t wide = kPanelVectors * lanes(), rest = n % wide;
    const bool narrow = rest <= lanes() * (kPanelVectors / 2);  // the last columns, if any, need no whole panel
    const int64_t panels = narrow ? n / wide : (n + wide - 1) / wide;
    Strips<T> s{k, a, b.data, wide, b.stride, panels, c.data, c.row, addend, narrow ? wide : rest};
    s.soon = soon;
    if (soon && panels > 0) soon->divide_by(panels * Heights(m, kRows<kPanelVectors>).count);
    if (panels > 0) run_strips<kPanelVectors>(m, s);
    if (rest == 0 || !narrow) return;
    const int64_t done = panels * wide;
    Strips<T> last{k, a, b.data + panels * b.stride, wide, b.stride, 1, c.data + done, c.row, past(addend, done), rest};
    if (rest <= lanes()) run_strips<1>(m, last);
    else run_strips<2>(m, last);
  }

  // The last columns, fewer than a vector, from a copy with whole vectors: nothing is read beyond the operand.
  static HWY_NOINLINE void multiply_rest(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c,
                                         Addend<T> addend) {
    HWY_ALIGN T packed[kDepth<T> * HWY_MAX_BYTES / sizeof(T)];
    const int64_t wide = lanes();
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < wide; ++j) packed[i * wide + j] = j < n ? b.data[i * b.row + j] : T(0);
    Strips<T> s{k, a, packed, wide, 0, 1, c.data, c.row, addend, n};
    run_strips<1>(m, s);
  }

  static void multiply(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c,
                       Addend<T> addend) {
    if (n == 1 && a.column == 1 && b.row == 1) return Dots<T>::of_one(m, k, a, b, c, addend);
    if (n > 1 && b.column != 1) return Dots<T>::of(n)(m, k, a, b, c, addend);
    const int64_t most = k <= kDepth<T> ? k : even_part(k, kDepth<T>, 8);  // as in panels
    for (int64_t first = 0; first < k; first += most, addend = {c, true}) {
      const int64_t depth = std::min(most, k - first);
      multiply_slice(m, n, depth, {a.data + first * a.column, a.row, a.column}, {b.data + first * b.row, b.row, 1}, c,
                     addend);
    }
  }

  // The same for k of at most kDepth.
  static HWY_INLINE void multiply_slice(int64_t m, int64_t n, int64_t k, const Matrix<const T>& a, const Matrix<const T>& b,
                                        const Matrix<T>& c, const Addend<T>& addend) {
    constexpr int kLong = 8;  // vectors: if m is 1, each element of b is read once, so long rows are faster
    int64_t j = 0;
    const auto next = [&](int64_t columns) {
      const int64_t panels = (n - j) / columns;
      const Strips<T> s{k, a, b.data + j, b.row, columns, panels, c.data + j, c.row, past(addend, j), columns};
      j += panels * columns;
      return s;
    };
    if (m == 1 && n >= kLong * lanes()) run_strip<1, kLong>(next(kLong * lanes()), a.data, c.data, addend.data);
    if (n - j >= kPanelVectors * lanes()) {
      Strips<T> s = next(kPanelVectors * lanes());
      run_strips<kPanelVectors>(m, s);
    }
    if (n - j >= 2 * lanes()) {
      Strips<T> s = next(2 * lanes());
      run_strips<2>(m, s);
    }
    if (n - j >= lanes()) {
      Strips<T> s = next(lanes());
      run_strips<1>(m, s);
    }
    if (j < n) multiply_rest(m, n - j, k, a, {b.data + j, b.row, 1}, {c.data + j, c.row, 1}, past(addend, j));
  }

  static const ProductKernels<T>& kernels() {
    static const ProductKernels<T> all{kPanelVectors * lanes(), multiply, multiply_panels,
                                       Packing<T>::template pack_panels<kPanelVectors>, Packing<T>::copy};
    return all;
  }
  // With the right operand in kept panels.
  static void kept(const Call& call) { run_kept_product<T>(call, kernels()); }
  static void keep(const Call& call) { keep_panels<T>(call, kernels()); }
  static uint64_t kept_bytes(const Call& call) { return kept_panels_bytes<T>(call, kernels().columns); }

  static void general(const Call& call) { run_product<T>(call, kernels()); }
  static bool run_followed(const Call& call, const Following& following) {
    return !is_small(call.op()) && run_product<T>(call, kernels(), following);
  }

  static plugrad_status run(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
    if (!is_small(*op)) return run_kernel<general>(self, stream, op);
    const plugrad_view &a = *op->views[1], &b = *op->views[2];
    if (is_dense(b)) multiply_small(*op, data<T>(b));
    else if (is_dense(a)) multiply_transposed(*op);
    else return run_kernel<general>(self, stream, op);
    return PLUGRAD_OK;
  }
  // Whether the kernels can multiply matrices in place, in one piece and without packing.
  static bool is_small(const plugrad_op& op) {
    const plugrad_view &c = *op.views[0], &a = *op.views[1], &b = *op.views[2];
    if (c.rank != 2 || !is_dense(c)) return false;
    if (!(is_dense(a) || is_transposed(a)) || !(is_dense(b) || is_transposed(b))) return false;
    const int64_t m = c.shape[0], n = c.shape[1], k = a.shape[1];
    if (m * k > kSmall || m * n > kSmall || k * n > kSmall) return false;
    if (!is_dense(a) && n <= kNarrow) return n == 1 && op.inputs == 2;
    return op.inputs == 2 || n == 1 || op.views[3]->strides[1] == 1;
  }
  // b: dense.
  static void multiply_small(const plugrad_op& op, const T* b) {
    const plugrad_view &c = *op.views[0], &a = *op.views[1];
    const int64_t m = c.shape[0], n = c.shape[1], k = a.shape[1];
    const Matrix<T> to{data<T>(c), n, 1};
    Addend<T> addend(to, op.flags & PLUGRAD_ACCUMULATE);
    if (op.inputs == 3) addend = {data<T>(*op.views[3]), op.views[3]->strides[0]};
    if (is_dense(a)) multiply(m, n, k, {data<T>(a), k, 1}, {b, n, 1}, to, addend);
    else if (n > 1) multiply(m, n, k, {data<T>(a), 1, m}, {b, n, 1}, to, addend);
    else multiply(1, m, k, {b, k, 1}, {data<T>(a), m, 1}, {to.data, m, 1}, {addend.data, 0});  // sums of a's columns
  }
  [[gnu::noinline]] static void multiply_transposed(const plugrad_op& op) {
    const plugrad_view& b = *op.views[2];
    const int64_t k = b.shape[0], n = b.shape[1];
    alignas(64) T dense[kSmall];
    copy_tile({reinterpret_cast<char*>(dense), n * kSize, kSize}, {data<char>(b), kSize, k * kSize}, k, n, kSize);
    multiply_small(op, dense);
  }
  static bool is_transposed(const plugrad_view& b) {
    return b.rank == 2 && b.strides[0] == 1 && b.strides[1] == b.shape[0] && !is_immediate(b);
  }
  static constexpr int64_t kSmall = 4096;         // elements of a matrix: three such matrices need no packing or tasks
  static constexpr int64_t kNarrow = 16 / kSize;  // so few columns fill no vector, but the rows of a transposed operand do
};

template <class T> const FewVectors& few_vectors_of() {
  static constexpr FewVectors kFew{
      [](const Call& call) { return NarrowDots<T>(call).serves(); },
      [](const Call& call) { return NarrowDots<T>(call).workspace(); },
      [](const Call& call) { NarrowDots<T>(call).run(threads_of(call), reinterpret_cast<float*>(call.workspace())); }};
  return kFew;
}

template <class T> struct NarrowKernel {
  static uint64_t workspace(const Call& call) {
    const FewVectors& few = few_vectors_of<T>();
    return few.serves(call) ? few.workspace(call) : WideProduct<T>::workspace(call);
  }
  static void dots(const Call& call) { few_vectors_of<T>().multiply(call); }
  static plugrad_status run(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
    const Call call(self, stream, op);
    if (NarrowDots<T>(call).serves()) return run_kernel<dots>(self, stream, op);
    WideProduct<T> wide(call);
    const plugrad_status status = Kernel<ComputeType<T>>::run(self, stream, wide.op());
    if (status == PLUGRAD_OK) wide.round_result();
    return status;
  }
};

template <uint32_t opcode, class T>
constexpr FormRows kForm{kernel<Kernel<T>::keep>(opcode, element_dtype<T>),
                         kernel<Kernel<T>::kept>(opcode, element_dtype<T>), gains_from_panels<T>, Kernel<T>::kept_bytes};
template <uint32_t opcode, class T> constexpr FollowedProduct kFollowed{Kernel<T>::run_followed, &kForm<opcode, T>};

template <uint32_t opcode, class T> constexpr KernelRow row(uint32_t flags) {
  constexpr uint16_t kMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;
  if constexpr (std::is_same_v<T, ComputeType<T>>) {
    KernelRow row = kernel_row(opcode, element_dtype<T>, Kernel<T>::run, kMemory, flags);
    row.own = &kFollowed<opcode, T>;
    return with_workspace<product_workspace<T>>(row);
  } else {
    return with_workspace<NarrowKernel<T>::workspace>(
        kernel_row(opcode, element_dtype<T>, NarrowKernel<T>::run, kMemory, flags));
  }
}
template <class... T> constexpr auto rows(Types<T...>) {
  return join(std::array{row<PLUGRAD_OP_MATMUL, T>(kPlainFlags | PLUGRAD_ACCUMULATE)...},
              std::array{row<PLUGRAD_OP_MATMUL_ADD, T>(kPlainFlags)...});
}
constexpr auto kProductRows = rows(kFloating);

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_matmul<HWY_TARGET>(RowList& rows) { append(rows, HWY_NAMESPACE::kProductRows); }
template <> const FewVectors& few_vectors<HWY_TARGET, BFloat16>() { return HWY_NAMESPACE::few_vectors_of<BFloat16>(); }
template <> const ProductKernels<float>& product_kernels<HWY_TARGET, float>() {
  return HWY_NAMESPACE::Kernel<float>::kernels();
}
template <> const ProductKernels<double>& product_kernels<HWY_TARGET, double>() {
  return HWY_NAMESPACE::Kernel<double>::kernels();
}
}  // namespace plugrad::cpu
