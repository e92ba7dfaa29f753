// The inner loops of convolutions: strips of rows of the weights, held in registers, times panels of positions; or strips of
// positions times panels of rows.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/convolutions.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/convolution.hpp>
#include <backends/cpu/forms.hpp>
#include <backends/cpu/packing-inl.hpp>
#include <backends/cpu/pixels.hpp>
#include <backends/cpu/rows.hpp>
#include <backends/cpu/runs-inl.hpp>
#include <plugrad/sdk/rows.hpp>

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {
// The sums of a strip times a panel fill the registers, as in matmul.cpp.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kPanel = 4, kFewRows = 3;
#else
constexpr int kPanel = 2, kFewRows = 1;
#endif
constexpr int kLongPanel = 8;  // vectors, if there is one row
constexpr int kTaps = 9;

template <class T> struct Kernel : Runs<T> {
  using typename Runs<T>::D;
  using typename Runs<T>::V;
  using Runs<T>::lanes, Runs<T>::load_few, Runs<T>::copy_run;

  // --- Results.

  struct Segment {
    int64_t from, count, to;  // in the panel and in the output
  };
  struct Panel {
    int64_t position;
    T* sums;  // room for the rows' sums
    int vectors, count;
    Segment segments[kPanelElements<T>];
  };

  // Finds the results among the positions from begin to end: the remaining positions are between two lines.
  static void find_segments(const Correlation<T>& c, int64_t begin, int64_t end, Panel& panel) {
    int64_t image = begin / c.image_step, line = begin % c.image_step / c.line_step;
    panel.count = 0;
    for (; image < c.images; ++image, line = 0)
      for (; line < c.lines; ++line) {
        const int64_t start = image * c.image_step + line * c.line_step;
        if (start >= end) return;
        const int64_t low = std::max(start, begin), high = std::min(start + c.columns, end);
        if (low < high)
          panel.segments[panel.count++] = {low - begin, high - low,
                                           image * c.out_image + line * c.out_line + (low - start) * c.out_column};
      }
  }

  static HWY_INLINE void scatter(const Correlation<T>& c, const Panel& panel, const T* sums, T* out) {
    for (int i = 0; i < panel.count; ++i) {
      const Segment s = panel.segments[i];
      if (c.out_column == 1) copy_run(out + s.to, sums + s.from, s.count);
      else
        for (int64_t j = 0; j < s.count; ++j) out[s.to + j * c.out_column] = sums[s.from + j];
    }
  }

  // The results are written only after many products: long enough ahead for memory to deliver them.
  template <int rows> static HWY_INLINE void prefetch(const Correlation<T>& c, const Panel& panel, const T* out) {
    if (c.out_column != 1) return;
    for (int i = 0; i < panel.count; ++i)
      for (int64_t j = 0; j < panel.segments[i].count; j += 64 / static_cast<int64_t>(sizeof(T)))
        for (int r = 0; r < rows; ++r) hwy::Prefetch(out + r * c.out_row + panel.segments[i].to + j);
  }

  template <int rows, int vectors>
  static HWY_INLINE void accumulate(int64_t depth, const T* weights, const int64_t* distances, const T* planes,
                                    V (&sums)[rows][vectors]) {
    const D d;
    const int64_t wide = lanes();
    for (int64_t i = 0; i < depth; ++i, weights += rows) {
      const T* from = planes + distances[i];
      V right[vectors];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) right[v] = hn::LoadU(d, from + v * wide);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const V factor = hn::Set(d, weights[r]);
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(factor, right[v], sums[r][v]);
      }
    }
  }

  // The rows from `row` on, for the products from `begin` to `end`. sums: the panel's.
  template <int rows, int vectors>
  static HWY_NOINLINE void run_strip(const Correlation<T>& c, int64_t row, int64_t begin, int64_t end, const Panel& panel) {
    const D d;
    const int64_t wide = lanes(), step = vectors * wide;
    V sums[rows][vectors];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const V first = hn::Set(d, c.bias && begin == 0 ? c.bias[row + r] : T(0));
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = first;
    }
    if (end == c.depth) prefetch<rows>(c, panel, c.out + row * c.out_row);
    accumulate<rows, vectors>(end - begin, c.weights + row * c.depth + begin * rows, c.distances + begin,
                              c.planes + panel.position, sums);
    T* to = panel.sums + row * step;
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        T* at = to + r * step + v * wide;
        hn::StoreU(begin ? hn::Add(hn::LoadU(d, at), sums[r][v]) : sums[r][v], d, at);
      }
    if (end < c.depth) return;
    for (int r = 0; r < rows; ++r) scatter(c, panel, to + r * step, c.out + (row + r) * c.out_row);
  }

  using RunStrip = void (*)(const Correlation<T>&, int64_t, int64_t, int64_t, const Panel&);
  template <int vectors, int... i>
  static constexpr std::array<RunStrip, sizeof...(i)> strips(std::integer_sequence<int, i...>) {
    return {run_strip<i + 1, vectors>...};
  }
  template <int vectors> static void run_strips(const Correlation<T>& c, int64_t begin, int64_t end, const Panel& panel) {
    static constexpr auto kRun = strips<vectors>(std::make_integer_sequence<int, vectors == kLongPanel ? 1 : kStripRows>());
    const EqualStrips all{c.rows};
    for (int64_t i = 0; i < all.count(); ++i) {
      const int64_t row = all.begin(i), rows = all.begin(i + 1) - row;
      kRun[static_cast<size_t>(rows - 1)](c, row, begin, end, panel);
    }
  }

  // Runs panels with a common block of weights while the block is in the cache.
  static void run_panels(const Correlation<T>& c, Panel* panels, int count) {
    const int64_t* end = c.block_ends;
    for (int64_t begin = 0; begin < c.depth; begin = *end++)
      for (Panel* panel = panels; panel < panels + count; ++panel) {
        if (panel->vectors == 1) run_strips<1>(c, begin, *end, *panel);
        else if (panel->vectors == 2) run_strips<2>(c, begin, *end, *panel);
        else if (panel->vectors == 3) run_strips<std::min(3, kPanel)>(c, begin, *end, *panel);
        else if (panel->vectors == kPanel) run_strips<kPanel>(c, begin, *end, *panel);
        else run_strips<kLongPanel>(c, begin, *end, *panel);
      }
  }

  static void correlate(const Correlation<T>& c) {
    const int64_t end = (c.images - 1) * c.image_step + (c.lines - 1) * c.line_step + c.columns;
    Panel panels[kPanels];
    T* sums = c.sums;
    int count = 0;
    for (int64_t at = 0; at < end;) {
      const int64_t rest = (end - at + lanes() - 1) / lanes();
      Panel& panel = panels[count++];
      panel.vectors = c.rows == 1 && rest > kPanel ? kLongPanel : static_cast<int>(std::min<int64_t>(rest, kPanel));
      panel.position = at;
      panel.sums = sums;
      find_segments(c, at, std::min(end, at + panel.vectors * lanes()), panel);
      at += panel.vectors * lanes();
      sums += c.rows * panel.vectors * lanes();
      if (count < kPanels && at < end) continue;
      run_panels(c, panels, count);
      count = 0;
      sums = c.sums;
    }
  }

  // --- Results with rows side by side in vectors.

  template <int vectors> static constexpr int kPositions = vectors > 2 || kPanel == 2 ? 6 : 8;

  struct Products {
    int64_t begin, end;
  };

  // Positions of a line, for some products. to: their sums.
  template <int positions, int vectors>
  static HWY_NOINLINE void run_positions(const Correlation<T>& c, Products products, int64_t column, const T* planes,
                                         T* to) {
    const D d;
    const auto [begin, end] = products;
    const int64_t wide = lanes(), width = c.width;
    V sums[positions][vectors];
#pragma GCC unroll 8
    for (int p = 0; p < positions; ++p)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v)
        sums[p][v] = c.bias && begin == 0 ? hn::LoadU(d, c.bias + column + v * wide) : hn::Zero(d);
    const T* weights = c.weights + begin * width + column;
    for (int64_t i = begin; i < end; ++i, weights += width) {
      const T* from = planes + c.distances[i];
      V right[vectors];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) right[v] = hn::LoadU(d, weights + v * wide);
#pragma GCC unroll 8
      for (int p = 0; p < positions; ++p) {
        const V factor = hn::Set(d, from[p]);
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) sums[p][v] = hn::MulAdd(factor, right[v], sums[p][v]);
      }
    }
#pragma GCC unroll 8
    for (int p = 0; p < positions; ++p)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        T* at = to + p * width + v * wide;
        hn::StoreU(begin ? hn::Add(hn::LoadU(d, at), sums[p][v]) : sums[p][v], d, at);
      }
  }

  using RunPositions = void (*)(const Correlation<T>&, Products, int64_t, const T*, T*);
  template <int vectors, int... i>
  static constexpr std::array<RunPositions, sizeof...(i)> runs(std::integer_sequence<int, i...>) {
    return {run_positions<i + 1, vectors>...};
  }

  // All positions, for some products.
  template <int vectors> static void run_lines(const Correlation<T>& c, Products products, int64_t column) {
    constexpr int64_t kMost = kPositions<vectors>;
    static constexpr auto kRun = runs<vectors>(std::make_integer_sequence<int, kPositions<vectors>>());
    const int64_t count = (c.columns + kMost - 1) / kMost;
    T* to = c.sums + column;
    for (int64_t line = 0; line < c.images * c.lines; ++line) {
      const T* planes = c.planes + line / c.lines * c.image_step + line % c.lines * c.line_step;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t some = (i + 1) * c.columns / count - i * c.columns / count;
        kRun[static_cast<size_t>(some - 1)](c, products, column, planes, to);
        planes += some;
        to += some * c.width;
      }
    }
  }

  static void correlate_rows(const Correlation<T>& c) {
    for (int64_t column = 0; column < c.width; column += kPanel * lanes()) {
      const int64_t rest = (c.width - column) / lanes(), *end = c.block_ends;
      for (int64_t begin = 0; begin < c.depth; begin = *end++) {
        const Products some{begin, *end};
        if (rest == 1) run_lines<1>(c, some, column);
        else if (rest == 2) run_lines<2>(c, some, column);
        else if (rest == 3) run_lines<std::min(3, kPanel)>(c, some, column);
        else run_lines<kPanel>(c, some, column);
      }
    }
    store_rows(c);
  }
  static void store_rows(const Correlation<T>& c) {
    const bool dense = c.out_column == 1 && c.out_line == c.columns;  // the lines of an image follow each other
    const int64_t lines = dense ? 1 : c.lines, columns = dense ? c.lines * c.columns : c.columns;
    const T* from = c.sums;
    for (int64_t line = 0; line < c.images * lines; ++line, from += columns * c.width) {
      T* to = c.out + line / lines * c.out_image + line % lines * c.out_line;
      if (c.out_column == 1) Packing<T>::copy(c.rows, columns, {from, 1, c.width}, to, c.out_row);
      else
        for (int64_t row = 0; row < c.rows; ++row)
          for (int64_t i = 0; i < columns; ++i) to[row * c.out_row + i * c.out_column] = from[i * c.width + row];
    }
  }

  // --- Gradients of weights.

  template <int rows, int vectors> static HWY_NOINLINE void run_tile(const WeightGradient<T>& g, int64_t i, int64_t column) {
    const D d;
    const int64_t wide = lanes();
    T* to = g.sums + i * g.rows + column;
    V sums[rows][vectors];
    const T* left[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      left[r] = g.planes + g.distances[i + r];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::LoadU(d, to + r * g.rows + v * wide);
    }
    const T* grad = g.grad + column;
    const int64_t step = g.rows;
    for (const int64_t *place = g.places, *const end = place + g.positions; place != end; ++place, grad += step) {
      const int64_t at = *place;
      V right[vectors];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) right[v] = hn::LoadU(d, grad + v * wide);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const V factor = hn::Set(d, left[r][at]);
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(factor, right[v], sums[r][v]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) hn::StoreU(sums[r][v], d, to + r * g.rows + v * wide);
  }

  using RunTile = void (*)(const WeightGradient<T>&, int64_t, int64_t);
  template <int vectors, int... i>
  static constexpr std::array<RunTile, sizeof...(i)> tiles(std::integer_sequence<int, i...>) {
    return {run_tile<i + 1, vectors>...};
  }
  template <int vectors> static void run_tiles(const WeightGradient<T>& g, int64_t column) {
    static constexpr auto kRun = tiles<vectors>(std::make_integer_sequence<int, kStripRows>());
    const EqualStrips strips{g.depth};
    for (int64_t i = 0; i < strips.count(); ++i) {
      const int64_t at = strips.begin(i);
      kRun[static_cast<size_t>(strips.begin(i + 1) - at - 1)](g, at, column);
    }
  }

  static void weight_gradient(const WeightGradient<T>& g) {
    for (int64_t column = 0; column < g.rows; column += kPanel * lanes()) {
      const int64_t rest = (g.rows - column) / lanes();
      if (rest == 1) run_tiles<1>(g, column);
      else if (rest == 2) run_tiles<2>(g, column);
      else if (rest == 3) run_tiles<std::min(3, kPanel)>(g, column);
      else run_tiles<kPanel>(g, column);
    }
  }

  // --- Gradients of weights with few rows.

  template <int rows>
  static HWY_INLINE void add_products(const T* const (&x)[kTaps], const T* const (&grad)[rows], int64_t at, int64_t count,
                                      V (&sums)[rows][kTaps]) {
    const D d;
    const bool whole = count >= lanes();
    V left[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) left[r] = whole ? hn::LoadU(d, grad[r] + at) : load_few(grad[r] + at, count);
#pragma GCC unroll 16
    for (int t = 0; t < kTaps; ++t) {
      const V right = whole ? hn::LoadU(d, x[t] + at) : load_few(x[t] + at, count);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) sums[r][t] = hn::MulAdd(left[r], right, sums[r][t]);
    }
  }

  template <int rows> static HWY_NOINLINE void run_few(const FewRowsGradient<T>& g, int64_t row, int64_t tap) {
    const D d;
    const int64_t taps = std::min<int64_t>(kTaps, g.depth - tap);
    V sums[rows][kTaps];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
      for (int t = 0; t < kTaps; ++t) sums[r][t] = hn::Zero(d);
    for (int64_t line = 0; line < g.images * g.lines; ++line) {
      const int64_t image = line / g.lines, in = line % g.lines;
      const T *x[kTaps], *grad[rows];
      for (int t = 0; t < kTaps; ++t)
        x[t] = g.planes + image * g.image_step + in * g.line_step + g.distances[tap + std::min<int64_t>(t, taps - 1)];
      for (int r = 0; r < rows; ++r) grad[r] = g.grad + image * g.grad_image + (row + r) * g.grad_row + in * g.grad_line;
      int64_t at = 0;
      for (; at + lanes() <= g.columns; at += lanes()) add_products<rows>(x, grad, at, lanes(), sums);
      if (at < g.columns) add_products<rows>(x, grad, at, g.columns - at, sums);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
      for (int t = 0; t < kTaps; ++t)
        if (t < taps) g.sums[(row + r) * g.sums_row + tap + t] += hn::GetLane(hn::SumOfLanes(d, sums[r][t]));
  }

  static void few_rows_gradient(const FewRowsGradient<T>& g) {
    for (int64_t tap = 0; tap < g.depth; tap += kTaps)
      for (int64_t row = 0; row < g.rows; row += kFewRows) {
        const int64_t rest = g.rows - row;
        if (rest == 1) run_few<1>(g, row, tap);
        else if (rest == 2 && kFewRows > 2) run_few<2>(g, row, tap);
        else run_few<kFewRows>(g, row, tap);
      }
  }

  static ConvolutionKernels<T> kernels() {
    return {Runs<T>::copy_line, Packing<T>::copy, correlate, correlate_rows, weight_gradient, few_rows_gradient};
  }
  static void forward(const Call& call) {
    if (is_better_by_pixels<T>(call)) return run_by_pixels<T>(call, pixel_kernels<HWY_TARGET, T>());
    if (!is_dense(call)) throw BackendError(PLUGRAD_UNSUPPORTED, "few rows are faster on dense copies");
    run_convolution<T>(call, kernels());
  }
  static uint64_t forward_workspace(const Call& call) {
    if (is_better_by_pixels<T>(call)) return pixels_workspace<T>(call, pixel_kernels<HWY_TARGET, T>().columns);
    return is_dense(call) ? convolution_workspace<T>(call) : 0;
  }
  // With packed weights.
  static void forward_packed(const Call& call) { run_by_pixels<T>(call, pixel_kernels<HWY_TARGET, T>(), true); }
  static uint64_t packed_workspace(const Call& call) {
    return pixels_workspace<T>(call, pixel_kernels<HWY_TARGET, T>().columns, true);
  }
  static void pack(const Call& call) { pack_weights<T>(call, pixel_kernels<HWY_TARGET, T>()); }
  static uint64_t packed_bytes(const Call& call) {
    return packed_weights_bytes<T>(call.in(1), call.attributes<plugrad_convolution>(),
                                   pixel_kernels<HWY_TARGET, T>().columns);
  }

  static void input_gradient(const Call& call) { run_input_gradient<T>(call, kernels()); }
  static void weights(const Call& call) { run_weight_gradient<T>(call, kernels()); }
};

constexpr uint16_t kDense = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;
template <auto run, auto workspace, class T> constexpr KernelRow row(uint32_t opcode, uint16_t layouts = kDense) {
  return with_workspace<workspace>(kernel<run>(opcode, element_dtype<T>, layouts));
}
template <uint32_t opcode, class T>
constexpr FormRows kForm{kernel<Kernel<T>::pack>(opcode, element_dtype<T>),
                         row<Kernel<T>::forward_packed, Kernel<T>::packed_workspace, T>(opcode), gains_from_packing<T>,
                         Kernel<T>::packed_bytes};
template <uint32_t opcode, class T> constexpr KernelRow forward_row() {
  KernelRow made = row<Kernel<T>::forward, Kernel<T>::forward_workspace, T>(opcode, kDense | PLUGRAD_STRIDED);
  made.own = &kForm<opcode, T>;
  return made;
}
template <class... T> constexpr auto rows(Types<T...>) {
  return join(
      std::array{forward_row<PLUGRAD_OP_CONVOLUTION, T>()...}, std::array{forward_row<PLUGRAD_OP_CONVOLUTION_BIAS, T>()...},
      std::array{row<Kernel<T>::input_gradient, input_gradient_workspace<T>, T>(PLUGRAD_OP_CONVOLUTION_INPUT_GRAD)...},
      std::array{row<Kernel<T>::weights, weight_gradient_workspace<T>, T>(PLUGRAD_OP_CONVOLUTION_WEIGHT_GRAD)...});
}
constexpr auto kConvolutionRows = rows(kComputable);

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_convolutions<HWY_TARGET>(RowList& rows) { append(rows, HWY_NAMESPACE::kConvolutionRows); }
}  // namespace plugrad::cpu
