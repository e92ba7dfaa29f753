// Sum, max, min and argmax.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/reductions.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/elementwise.hpp>
#include <backends/cpu/fold-inl.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/rows.hpp>
#include <backends/cpu/tile.hpp>
#include <plugrad/sdk/rows.hpp>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

// Sums of narrower types in i64: of bools (0 or 1), and of smaller integers.
template <class T> struct WideSum {
  static void init(char* partials, int64_t n) { std::fill_n(reinterpret_cast<int64_t*>(partials), n, 0); }
  static void row(char* partial, const char* p, int64_t n) {
    const T* x = reinterpret_cast<const T*>(p);
    int64_t sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    *reinterpret_cast<int64_t*>(partial) += sum;
  }
  static void columns(char* partials, const char* p, int64_t rows, int64_t stride, int64_t n) {
    int64_t* sums = reinterpret_cast<int64_t*>(partials);
    for (int64_t r = 0; r < rows; ++r) {
      const T* x = reinterpret_cast<const T*>(p + r * stride);
#pragma omp simd
      for (int64_t c = 0; c < n; ++c) sums[c] += x[c];
    }
  }
  static void merge(char* partials, const char* others, int64_t n) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<int64_t*>(partials)[i] += reinterpret_cast<const int64_t*>(others)[i];
  }
  static void store(char* out, const char* partial, bool accumulate) {
    Sum<int64_t>::store(out, *reinterpret_cast<const int64_t*>(partial), accumulate);
  }
  static constexpr Reduction kKind{sizeof(T), 8, init, row, columns, merge, store, nullptr};
};
// A fold of a narrow type: its elements are widened piece by piece, and the result is rounded.
template <class Wide, class T> struct NarrowFold {
  using Element = ComputeType<T>;
  static constexpr int64_t kPiece = 1024;

  static const char* widen(Element* piece, const char* p, int64_t n) {
    const T* x = reinterpret_cast<const T*>(p);
    for (int64_t i = 0; i < n; ++i) piece[i] = widened(x[i]);
    return reinterpret_cast<const char*>(piece);
  }
  static void row(char* partial, const char* p, int64_t n) {
    Element piece[kPiece];
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t some = std::min(kPiece, n - i);
      Wide::row(partial, widen(piece, p + i * static_cast<int64_t>(sizeof(T)), some), some);
    }
  }
  static void columns(char* partials, const char* p, int64_t rows, int64_t stride, int64_t n) {
    Element piece[kPiece];
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < n; c += kPiece) {
        const int64_t some = std::min(kPiece, n - c);
        const char* x = widen(piece, p + r * stride + c * static_cast<int64_t>(sizeof(T)), some);
        Wide::columns(partials + c * static_cast<int64_t>(sizeof(typename Wide::Partial)), x, 1, 0, some);
      }
  }
  static void store(char* out, const char* partial, bool accumulate) {
    T& to = *reinterpret_cast<T*>(out);
    Element value = widened(to);
    Wide::store(reinterpret_cast<char*>(&value), partial, accumulate);
    to = static_cast<T>(value);
  }
  static constexpr Reduction kKind{sizeof(T), sizeof(typename Wide::Partial), Wide::init, row, columns, Wide::merge, store,
                                   nullptr};
};

template <class T, bool largest>
using Extremum = std::conditional_t<std::is_same_v<T, ComputeType<T>>, Folding<Extreme<ComputeType<T>, largest>>,
                                    NarrowFold<Folding<Extreme<ComputeType<T>, largest>>, T>>;
template <class T> using FoldingSum = Folding<Sum<AccumulatorType<T>>>;
template <class T>
using Summing =
    std::conditional_t<std::is_same_v<T, AccumulatorType<T>>, FoldingSum<T>,
                       std::conditional_t<std::is_integral_v<T>, WideSum<Stored<T>>, NarrowFold<FoldingSum<T>, T>>>;

template <const Reduction& kind> struct Reducing {
  static void general(const Call& call) { run_reduction(kind, call); }

  static plugrad_status run(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
    const plugrad_view &out = *op->views[0], &in = *op->views[1];
    if (out.count == 1 && in.count <= kGrain && is_dense(in)) [[likely]] {
      alignas(16) char partial[kMaxPartial];
      kind.init(partial, 1);
      kind.row(partial, data<char>(in), in.count);
      kind.store(data<char>(out), partial, op->flags & PLUGRAD_ACCUMULATE);
      return PLUGRAD_OK;
    }
    return run_kernel<general>(self, stream, op);
  }
};

template <class T> struct Argmax {
  using W = ComputeType<T>;
  using Largest = Extreme<W, true>;
  static constexpr int64_t kBlock = 1024;

  static bool beats(W x, W best) { return x > best || (x != x && best == best); }

  // n elements, stride bytes apart, side by side and widened.
  static const W* packed(W* buffer, const char* p, int64_t stride, int64_t n) {
    if constexpr (std::is_same_v<T, W>) {
      copy_tile({reinterpret_cast<char*>(buffer), 0, sizeof(T)}, {const_cast<char*>(p), 0, stride}, 1, n, sizeof(T));
    } else {
      for (int64_t i = 0; i < n; ++i) buffer[i] = widened(*reinterpret_cast<const T*>(p + i * stride));
    }
    return buffer;
  }

  // Finds the first largest of n contiguous elements; best and index hold the result for the elements before them.
  static void row(const W* p, int64_t n, int64_t first, W& best, int64_t& index) {
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t some = std::min(kBlock, n - i);
      const W largest = Folding<Largest>::block(p + i, some);
      if (!beats(largest, best)) continue;
      int64_t at = 0;
      while (p[i + at] != largest && p[i + at] == p[i + at]) ++at;
      best = largest;
      index = first + i + at;
    }
  }

  static void columns(const W* p, int64_t n, int64_t at, W* best, int64_t* index) {
#pragma omp simd
    for (int64_t c = 0; c < n; ++c) {
      const bool wins = beats(p[c], best[c]);
      best[c] = wins ? p[c] : best[c];
      index[c] = wins ? at : index[c];
    }
  }

  // One output whose last folded dimension, in row-major order, is contiguous or is copied to be contiguous.
  static int64_t of_rows(const Axes& folded, const char* base) {
    const int inner = folded.rank - 1;
    const int64_t n = folded.shape[inner], rows = folded.count() / n, stride = folded.in[inner];
    W buffer[kBlock], best = widened(*reinterpret_cast<const T*>(base));
    int64_t index = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const char* p = base + folded.offset_in(r, inner);
      if (std::is_same_v<T, W> && stride == sizeof(T)) {
        row(reinterpret_cast<const W*>(p), n, r * n, best, index);
        continue;
      }
      for (int64_t i = 0; i < n; i += kBlock) {
        const int64_t some = std::min(kBlock, n - i);
        row(packed(buffer, p + i * stride, stride, some), some, r * n + i, best, index);
      }
    }
    return index;
  }

  // n outputs side by side in the input, `across` bytes apart.
  static void of_columns(const Axes& folded, const char* base, int64_t across, int64_t n, int64_t* index) {
    W best[kPanel], buffer[kPanel];
    for (int64_t i = 0, count = folded.count(); i < count; ++i) {
      const char* p = base + folded.offset_in(i, folded.rank);
      const bool as_it_is = std::is_same_v<T, W> && across == sizeof(T);
      const W* x = as_it_is ? reinterpret_cast<const W*>(p) : packed(buffer, p, across, n);
      if (i == 0) std::copy_n(x, n, best);
      columns(x, n, i, best, index);
    }
  }

  static void run(const Call& call) {
    Axes kept, folded;
    const char* in;
    char* out;
    split_axes(call.in(0), call.out(), false, kept, folded, in, out);
    if (folded.rank == 0) folded.append(1, 0, 0);
    if (kept.rank == 0) kept.append(1, 0, 0);
    const int last = kept.rank - 1;
    const int64_t across = std::abs(kept.in[last]), along = std::abs(folded.in[folded.rank - 1]);
    const bool by_columns = kept.shape[last] > 1 && across != 0 && (across < along || along == 0);
    const int64_t width = by_columns ? std::min(kept.shape[last], kPanel) : 1;
    const int64_t panels = (kept.shape[last] + width - 1) / width, tasks = kept.count() / kept.shape[last] * panels;
    const int64_t each = std::max<int64_t>(1, kGrain / (folded.count() * width));
    parallel(threads_of(call), (tasks + each - 1) / each, [&](int64_t task) {
      for (int64_t t = task * each; t < std::min(tasks, (task + 1) * each); ++t) {
        const int64_t outer = t / panels, column = t % panels * width, n = std::min(width, kept.shape[last] - column);
        const char* from = in + kept.offset_in(outer, last) + column * kept.in[last];
        char* to = out + kept.offset_out(outer, last) + column * kept.out[last];
        int64_t index[kPanel] = {};
        if (by_columns) of_columns(folded, from, kept.in[last], n, index);
        else index[0] = of_rows(folded, from);
        for (int64_t c = 0; c < n; ++c) std::memcpy(to + c * kept.out[last], &index[c], sizeof(int64_t));
      }
    });
  }
};

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> sums(Types<T...>) {
  return {of_kind(kernel_row(PLUGRAD_OP_SUM, element_dtype<T>, Reducing<Summing<T>::kKind>::run, PLUGRAD_ALL_LAYOUTS,
                             kPlainFlags | PLUGRAD_ACCUMULATE),
                  Summing<T>::kKind)...};
}
template <class T, bool largest> constexpr KernelRow extreme_row(uint32_t opcode) {
  using Kind = Extremum<T, largest>;
  return of_kind(kernel_row(opcode, element_dtype<T>, Reducing<Kind::kKind>::run), Kind::kKind);
}
template <class... T> constexpr auto extremes(Types<T...>) {
  return join(std::array{extreme_row<T, true>(PLUGRAD_OP_MAX)...}, std::array{extreme_row<T, false>(PLUGRAD_OP_MIN)...},
              std::array{kernel<Argmax<T>::run>(PLUGRAD_OP_ARGMAX, element_dtype<T>)...});
}
constexpr auto kRows = join(sums(kAny), extremes(kNumbers));

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_reductions<HWY_TARGET>(RowList& rows) { append(rows, HWY_NAMESPACE::kRows); }
}  // namespace plugrad::cpu
