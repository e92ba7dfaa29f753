#include <backends/cpu/reduction.hpp>

#include <backends/cpu/elementwise.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/streaming.hpp>
#include <backends/cpu/tile.hpp>

#include <algorithm>
#include <utility>

namespace plugrad::cpu {

void Axes::append(int64_t extent, int64_t in_step, int64_t out_step) {
  shape[rank] = extent;
  in[rank] = in_step;
  out[rank++] = out_step;
}

void Axes::swap(int a, int b) {
  std::swap(shape[a], shape[b]);
  std::swap(in[a], in[b]);
  std::swap(out[a], out[b]);
}

void Axes::sort() {
  for (int i = 1; i < rank; ++i)
    for (int j = i; j > 0 && in[j - 1] < in[j]; --j) swap(j - 1, j);
}

void Axes::merge() {
  int last = 0;
  for (int d = 1; d < rank; ++d) {
    const bool joins = in[last] == in[d] * shape[d] && out[last] == out[d] * shape[d];
    if (!joins) ++last;
    shape[last] = joins ? shape[last] * shape[d] : shape[d];
    in[last] = in[d];
    out[last] = out[d];
  }
  rank = std::min(rank, last + 1);
}

int64_t Axes::count() const {
  int64_t product = 1;
  for (int d = 0; d < rank; ++d) product *= shape[d];
  return product;
}

int64_t Axes::offset(const int64_t* strides, int64_t index, int dims) const {
  if (dims == 0) return 0;
  int64_t offset = 0;
  for (int d = dims - 1; d > 0; index /= shape[d--]) offset += index % shape[d] * strides[d];
  return offset + index * strides[0];
}

void split_axes(const plugrad_view& in_view, const plugrad_view& out_view, bool any_order, Axes& kept, Axes& folded,
                const char*& in, char*& out) {
  in = data<char>(in_view);
  out = data<char>(out_view);
  for (int d = 0; d < in_view.rank; ++d) {
    const int64_t extent = in_view.shape[d];
    int64_t in_step = step(in_view, d), out_step = step(out_view, d);
    if (extent == 1) continue;
    if (any_order && in_step < 0) {
      in += in_step * (extent - 1);
      out += out_step * (extent - 1);
      in_step = -in_step;
      out_step = -out_step;
    }
    (out_view.shape[d] == 1 ? folded : kept).append(extent, in_step, out_step);
  }
  if (any_order) {
    kept.sort();
    folded.sort();
  }
  kept.merge();
  folded.merge();
}

namespace {

constexpr int64_t kWorthSplitting = 2 * kPiece;
constexpr int64_t kMaxPartials = 256;  // of a split reduction to few outputs
constexpr int64_t kMaxChunks = 32;     // of the rows under one panel of columns
constexpr int64_t kShortFold = 16;     // shorter rows are folded side by side
constexpr int64_t kBuffer = 2048;      // elements made contiguous at once

class Fold {
 public:
  Fold(const Reduction& kind, const Call& call) : kind_(kind), accumulates_(call.accumulates()), threads_(threads_of(call)) {
    split_axes(call.in(0), call.out(), true, kept_, folded_, in_, out_);
  }

  void run() {
    if (folded_.rank == 0) folded_.append(1, 0, 0);
    const int64_t across = kept_.rank ? kept_.in[kept_.rank - 1] : 0, along = folded_.in[folded_.rank - 1];
    const bool is_short = folded_.count() < kShortFold && kept_.rank && kept_.shape[kept_.rank - 1] >= kShortFold;
    if (across != 0 && (across < along || along == 0 || is_short)) run_columns();
    else run_rows();
  }

 private:
  // The dimension with the smallest stride is folded: contiguous rows, or nearly.
  void run_rows() {
    const int64_t n = folded_.shape[folded_.rank - 1], outputs = kept_.count();
    pieces_ = ceil_div(n, kPiece);
    const int64_t units = folded_.count() / n * pieces_, work = units * std::min(n, kPiece);
    if (outputs >= 16 || work * outputs < kWorthSplitting) {
      const int64_t each = std::max<int64_t>(1, kPiece / work);
      const bool is_plain = kind_.each_row && units == 1 && kept_.rank <= 1 && folded_.in[folded_.rank - 1] == kind_.size;
      parallel_pass(threads_, ceil_div(outputs, each), bytes(), [&](int64_t task) {
        const int64_t first = task * each;
        if (is_plain) return run_plain_rows(first, std::min(outputs, first + each) - first, n);
        alignas(16) char partial[kMaxPartial];
        for (int64_t o = first; o < std::min(outputs, first + each); ++o) {
          fold_units(o, 0, units, partial);
          kind_.store(out_ + kept_.offset_out(o, kept_.rank), partial, accumulates_);
        }
      });
      return;
    }
    const int64_t each = outputs == 1 && folded_.rank == 1 ? pieces_of_chunk(n)
                                                           : std::max(ceil_div(kPiece, std::min(n, kPiece)),
                                                                      ceil_div(units * outputs, kMaxPartials - outputs));
    const int64_t chunks = ceil_div(units, each);
    alignas(16) char partials[kMaxPartials][kMaxPartial];
    parallel_pass(threads_, outputs * chunks, bytes(), [&](int64_t task) {
      const int64_t first = task % chunks * each;
      fold_units(task / chunks, first, std::min(units, first + each), partials[task]);
    });
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t c = 1; c < chunks; ++c) kind_.merge(partials[o * chunks], partials[o * chunks + c], 1);
      kind_.store(out_ + kept_.offset_out(o, kept_.rank), partials[o * chunks], accumulates_);
    }
  }

  int64_t bytes() const { return kept_.count() * folded_.count() * kind_.size; }

  // Contiguous rows, evenly spaced.
  void run_plain_rows(int64_t first, int64_t rows, int64_t n) const {
    const int64_t in_step = kept_.rank ? kept_.in[0] : 0, out_step = kept_.rank ? kept_.out[0] : 0;
    kind_.each_row(out_ + first * out_step, out_step, in_ + first * in_step, in_step, rows, n, accumulates_);
  }

  // A unit is a piece of a row; unit u belongs to row u / pieces_ of the rows of this output.
  void fold_units(int64_t output, int64_t first, int64_t last, char* partial) const {
    const int inner = folded_.rank - 1;
    const int64_t n = folded_.shape[inner], stride = folded_.in[inner];
    const char* base = in_ + kept_.offset_in(output, kept_.rank);
    kind_.init(partial, 1);
    if (last == 1) return fold_row(partial, base, std::min(kPiece, n), stride);
    for (int64_t u = first; u < last; ++u) {
      const int64_t begin = u % pieces_ * kPiece;
      const char* p = base + begin * stride + (inner ? folded_.offset_in(u / pieces_, inner) : 0);
      fold_row(partial, p, std::min(kPiece, n - begin), stride);
    }
  }

  void fold_row(char* partial, const char* p, int64_t n, int64_t stride) const {
    if (stride == kind_.size) return kind_.row(partial, p, n);
    alignas(64) char buffer[kBuffer * 8];
    for (int64_t i = 0; i < n; i += kBuffer) {
      const int64_t some = std::min(kBuffer, n - i);
      copy_tile({buffer, 0, kind_.size}, {const_cast<char*>(p) + i * stride, 0, stride}, 1, some, kind_.size);
      kind_.row(partial, buffer, some);
    }
  }

  // The dimension with the smallest stride is kept: whole rows are folded into as many partials.
  void run_columns() {
    take_longest_last();
    const int64_t columns = kept_.shape[kept_.rank - 1], outer = kept_.count() / columns;
    const int64_t panels = ceil_div(columns, kPanel), height = folded_.shape[folded_.rank - 1];
    const int64_t work = folded_.count() * std::min(columns, kPanel);
    if (outer * panels == 1 && work >= kWorthSplitting && height >= 64) return run_chunks(columns, height);
    const int64_t each = std::max<int64_t>(1, kPiece / work);
    parallel(threads_, ceil_div(outer * panels, each), [&](int64_t task) {
      alignas(64) char partials[kPanel * kMaxPartial];
      for (int64_t i = task * each; i < std::min(outer * panels, (task + 1) * each); ++i) {
        const int64_t column = i % panels * kPanel, n = std::min(kPanel, columns - column);
        fold_panel(partials, i / panels, column, n, 0, height);
        store_panel(partials, i / panels, column, n);
      }
    });
  }

  void run_chunks(int64_t columns, int64_t height) const {
    const int64_t each = folded_.rank == 1
                             ? rows_of_chunk(height, columns)
                             : std::max(ceil_div(kPiece * height, folded_.count() * columns), ceil_div(height, kMaxChunks));
    const int64_t chunks = ceil_div(height, each);
    alignas(64) char partials[kMaxChunks][kPanel * kMaxPartial];
    parallel_pass(threads_, chunks, bytes(),
                  [&](int64_t c) { fold_panel(partials[c], 0, 0, columns, c * each, std::min(height, (c + 1) * each)); });
    for (int64_t c = 1; c < chunks; ++c) kind_.merge(partials[0], partials[c], columns);
    store_panel(partials[0], 0, 0, columns);
  }

  void take_longest_last() {
    int longest = folded_.rank - 1;
    for (int d = 0; d < folded_.rank; ++d)
      if (folded_.shape[d] > folded_.shape[longest]) longest = d;
    folded_.swap(longest, folded_.rank - 1);
  }

  void fold_panel(char* partials, int64_t outer, int64_t column, int64_t n, int64_t first, int64_t last) const {
    const int inner = folded_.rank - 1;
    const int64_t across = kept_.in[kept_.rank - 1], rows = folded_.count() / folded_.shape[inner];
    const char* base = in_ + kept_.offset_in(outer, kept_.rank - 1) + column * across + first * folded_.in[inner];
    kind_.init(partials, n);
    for (int64_t r = 0; r < rows; ++r)
      fold_rows(partials, base + folded_.offset_in(r, inner), last - first, folded_.in[inner], across, n);
  }

  void fold_rows(char* partials, const char* p, int64_t rows, int64_t stride, int64_t across, int64_t n) const {
    if (across == kind_.size) {
      if (stride == n * kind_.size && n <= kPanel / 4 && rows >= 64) return fold_narrow(partials, p, rows, n);
      return kind_.columns(partials, p, rows, stride, n);
    }
    alignas(64) char buffer[kBuffer * 8];
    const int64_t height = kBuffer / n;
    for (int64_t r = 0; r < rows; r += height) {
      const int64_t some = std::min(height, rows - r);
      copy_tile({buffer, n * kind_.size, kind_.size}, {const_cast<char*>(p) + r * stride, stride, across}, some, n,
                kind_.size);
      kind_.columns(partials, buffer, some, n * kind_.size, n);
    }
  }

  // Short adjacent rows: several are folded as one wide row.
  void fold_narrow(char* partials, const char* p, int64_t rows, int64_t n) const {
    const int64_t together = kPanel / n, wide = together * n, folds = rows / together;
    alignas(64) char wide_partials[kPanel * kMaxPartial];
    kind_.init(wide_partials, wide);
    kind_.columns(wide_partials, p, folds, wide * kind_.size, wide);
    for (int64_t i = 0; i < together; ++i) kind_.merge(partials, wide_partials + i * n * kind_.partial, n);
    kind_.columns(partials, p + folds * wide * kind_.size, rows - folds * together, n * kind_.size, n);
  }

  void store_panel(const char* partials, int64_t outer, int64_t column, int64_t n) const {
    const int64_t across = kept_.out[kept_.rank - 1];
    char* out = out_ + kept_.offset_out(outer, kept_.rank - 1) + column * across;
    for (int64_t c = 0; c < n; ++c) kind_.store(out + c * across, partials + c * kind_.partial, accumulates_);
  }

  const Reduction& kind_;
  const bool accumulates_;
  const int threads_;
  Axes kept_, folded_;
  const char* in_;
  char* out_;
  int64_t pieces_ = 1;
};

}  // namespace

int64_t pieces_of_chunk(int64_t n) {
  const int64_t pieces = ceil_div(n, kPiece);
  return pieces * std::min(n, kPiece) < kWorthSplitting ? 0 : std::max<int64_t>(1, ceil_div(pieces, kMaxPartials - 1));
}

int64_t rows_of_chunk(int64_t rows, int64_t columns) {
  if (columns > kPanel || rows * columns < kWorthSplitting || rows < 64) return 0;
  const int64_t each = std::max(ceil_div(kPiece, columns), ceil_div(rows, kMaxChunks));
  return ceil_div(each, kBlockRows) * kBlockRows;
}

void run_reduction(const Reduction& kind, const Call& call) { Fold(kind, call).run(); }

}  // namespace plugrad::cpu
