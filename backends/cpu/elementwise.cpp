#include <backends/cpu/elementwise.hpp>

#include <backends/cpu/far_rows.hpp>
#include <backends/cpu/streaming.hpp>
#include <backends/cpu/tile.hpp>

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace plugrad::cpu {
namespace {

constexpr int64_t kTile = 2048;  // elements of a tile in buffers
// Pieces for each thread where there is much work: in long pieces, a processor seldom reads ahead into another thread's
// piece.
constexpr int64_t kTasksEach = 16;
constexpr int64_t kWorthSharing = 4 * kGrain;  // for less work, waking a thread costs more than it saves
constexpr int64_t kWhole = 64;                 // elements: parts of an aligned row begin at a cache line
constexpr int64_t kLine = 64;                  // bytes
constexpr int64_t kShortRow = 64;              // for shorter rows, a call per row costs more than copying rows together

// The operands over one index space, without extents of 1. Dimensions are ordered for the first output, and merged.
struct Nest {
  int rank = 0, operands;
  int64_t shape[PLUGRAD_MAX_RANK];
  int64_t strides[kMaxRowOperands][PLUGRAD_MAX_RANK];  // bytes
  char* base[kMaxRowOperands];
  alignas(8) char slots[kMaxRowOperands][8];

  Nest(const Elementwise& kind, const Call& call) : operands(kind.outputs + kind.inputs) {
    const plugrad_view& out = call.out();
    for (int k = 0; k < operands; ++k) base[k] = address(view(kind, call, k), slots[k]);
    for (int d = 0; d < out.rank; ++d) {
      if (out.shape[d] == 1) continue;
      shape[rank] = out.shape[d];
      for (int k = 0; k < operands; ++k) strides[k][rank] = step(view(kind, call, k), d);
      if (strides[0][rank] < 0) flip(rank);
      ++rank;
    }
    sort();
    merge();
    if (rank == 0) append_single(kind);
  }

  static const plugrad_view& view(const Elementwise& kind, const Call& call, int k) {
    return k < kind.outputs ? call.out(k) : call.in(k - kind.outputs);
  }
  void flip(int d) {
    for (int k = 0; k < operands; ++k) {
      base[k] += strides[k][d] * (shape[d] - 1);
      strides[k][d] = -strides[k][d];
    }
  }
  void swap_dims(int a, int b) {
    std::swap(shape[a], shape[b]);
    for (int k = 0; k < operands; ++k) std::swap(strides[k][a], strides[k][b]);
  }
  void sort() {
    for (int i = 1; i < rank; ++i)
      for (int j = i; j > 0 && strides[0][j - 1] < strides[0][j]; --j) swap_dims(j - 1, j);
  }
  void merge() {
    int last = 0;
    for (int d = 1; d < rank; ++d) {
      bool joins = true;
      for (int k = 0; k < operands; ++k) joins &= strides[k][last] == strides[k][d] * shape[d];
      if (!joins) ++last;
      shape[last] = joins ? shape[last] * shape[d] : shape[d];
      for (int k = 0; k < operands; ++k) strides[k][last] = strides[k][d];
    }
    rank = std::min(rank, last + 1);
  }
  void append_single(const Elementwise& kind) {
    rank = 1;
    shape[0] = 1;
    for (int k = 0; k < operands; ++k) strides[k][0] = kind.sizes[k];
  }
  // Makes d the second-to-last dimension.
  void bring_near(int d) {
    for (; d < rank - 2; ++d) swap_dims(d, d + 1);
    for (; d > rank - 2; --d) swap_dims(d, d - 1);
  }
};

// Divides a nest into tiles of the last two dimensions. A tile runs row by row, and some operands go through buffers.
class Tiling {
 public:
  Tiling(const Elementwise& kind, const Call& call, const void* arguments)
      : kind_(kind), nest_(kind, call), arguments_(arguments) {
    classify();
    if (const int d = across_packed(); d >= 0) nest_.bring_near(d);
    const int last = nest_.rank - 1;
    columns_total_ = nest_.shape[last];
    rows_total_ = last > 0 ? nest_.shape[last - 1] : 1;
    if (columns_total_ < kShortRow && rows_total_ > 1) pack_short_rows();
    choose_row();
    choose_sizes();
    if (stores_far(call.out()) && !arguments)
      if (const RowFunction far =
              far_row(call.op().opcode, call.out().dtype, kind.inputs, scalars_ >> kind.outputs, vector_bytes_of(call)))
        row_ = far;
  }

  void run(int threads) const {
    const int64_t tile = std::max<int64_t>(1, rows_ * columns_ * kind_.weight);
    const int64_t piece = std::max<int64_t>({1, kGrain / tile, tiles_ / (kTasksEach * threads)});
    const int64_t each = tiles_ * tile < kWorthSharing ? tiles_ : piece;
    parallel_pass(threads, (tiles_ + each - 1) / each, bytes(), [&](int64_t task) {
      const int64_t end = std::min(tiles_, (task + 1) * each);
      for (int64_t i = task * each; i < end; ++i) run_tile(i);
      hwy::FlushStream();  // stores that bypass the caches are visible to other threads after the task
    });
  }

 private:
  // At most, of all operands with more than one element for a row.
  int64_t bytes() const {
    int64_t element = 0;
    for (int k = 0; k < nest_.operands; ++k) element += is_scalar(k) ? 0 : kind_.sizes[k];
    return tiles_ * rows_ * columns_ * element;
  }
  int64_t inner(int k) const { return nest_.strides[k][nest_.rank - 1]; }
  int64_t outer(int k) const { return nest_.rank > 1 ? nest_.strides[k][nest_.rank - 2] : 0; }
  bool is_packed(int k) const { return packed_ >> k & 1; }
  bool is_scalar(int k) const { return scalars_ >> k & 1; }

  void classify() {
    for (int k = 0; k < nest_.operands; ++k) {
      if (inner(k) == kind_.sizes[k]) continue;
      (inner(k) == 0 && k >= kind_.outputs ? scalars_ : packed_) |= 1u << k;
    }
  }

  // Returns the dimension along which the first packed operand is closest to contiguous, or -1.
  int across_packed() const {
    for (int k = 0; k < nest_.operands; ++k) {
      if (!is_packed(k) || nest_.rank < 2) continue;
      int best = nest_.rank - 2;
      for (int d = 0; d < nest_.rank - 1; ++d) {
        const int64_t stride = std::abs(nest_.strides[k][d]), least = std::abs(nest_.strides[k][best]);
        if (stride != 0 && (least == 0 || stride < least)) best = d;
      }
      return best;
    }
    return -1;
  }

  // Joins short rows: operands are copied to buffers unless they are contiguous over both dimensions.
  void pack_short_rows() {
    for (int k = 0; k < nest_.operands; ++k) {
      if (is_packed(k) || (is_scalar(k) && outer(k) == 0)) continue;
      if (!is_scalar(k) && outer(k) == columns_total_ * kind_.sizes[k]) continue;
      packed_ |= 1u << k;
      scalars_ &= ~(1u << k);
    }
    joined_ = true;
  }

  void choose_row() {
    while (!(row_ = kind_.rows[scalars_ >> kind_.outputs])) {
      const unsigned first = scalars_ & -scalars_;
      scalars_ ^= first;
      packed_ |= first;
    }
  }

  void choose_sizes() {
    if (joined_) {
      columns_ = columns_total_;
      rows_ = std::min(rows_total_, kTile / columns_);
    } else if (packed_) {
      columns_ = std::min<int64_t>(columns_total_, 64);
      rows_ = std::min(rows_total_, kTile / columns_);
      columns_ = std::min(columns_total_, kTile / rows_);
    } else {
      columns_ = std::min(columns_total_, std::max<int64_t>(kTile, kGrain / kind_.weight / kWhole * kWhole));
      rows_ = std::clamp<int64_t>(kTile / columns_, 1, rows_total_);
    }
    across_ = (columns_total_ + columns_ - 1) / columns_;
    down_ = (rows_total_ + rows_ - 1) / rows_;
    tiles_ = across_ * down_;
    for (int d = 0; d < nest_.rank - 2; ++d) tiles_ *= nest_.shape[d];
  }

  // Whether the output is larger than the caches, and aligned in each row. Loads of an op in place have brought the output
  // to the caches.
  bool stores_far(const plugrad_view& out) const {
    bool far = is_streamed(out) && !packed_ && !joined_ && kind_.outputs == 1 && !kind_.reads_outputs;
    far = far && reinterpret_cast<uintptr_t>(nest_.base[0]) % kLine == 0 && columns_ * kind_.sizes[0] % kLine == 0;
    for (int d = 0; d < nest_.rank - 1; ++d) far = far && nest_.strides[0][d] % kLine == 0;
    for (int k = 1; k < nest_.operands; ++k) far = far && nest_.base[k] != nest_.base[0];
    return far;
  }

  void run_tile(int64_t index) const {
    const int64_t column = index % across_ * columns_, columns = std::min(columns_, columns_total_ - column);
    index /= across_;
    const int64_t row = index % down_ * rows_, rows = std::min(rows_, rows_total_ - row);
    index /= down_;
    Tile tiles[kMaxRowOperands];
    for (int k = 0; k < nest_.operands; ++k)
      tiles[k] = {nest_.base[k] + row * outer(k) + column * inner(k), outer(k), inner(k)};
    for (int d = nest_.rank - 3; d >= 0; --d) {
      const int64_t i = index % nest_.shape[d];
      index /= nest_.shape[d];
      for (int k = 0; k < nest_.operands; ++k) tiles[k].data += i * nest_.strides[k][d];
    }
    if (packed_) run_packed(tiles, rows, columns);
    else run_rows(tiles, rows, columns);
  }

  void run_rows(const Tile* tiles, int64_t rows, int64_t columns) const {
    char* at[kMaxRowOperands];
    for (int k = 0; k < nest_.operands; ++k) at[k] = tiles[k].data;
    if (joined_) return row_(at, rows * columns, arguments_);
    for (int64_t r = 0; r < rows; ++r) {
      row_(at, columns, arguments_);
      for (int k = 0; k < nest_.operands; ++k) at[k] += tiles[k].row;
    }
  }

  void run_packed(const Tile* tiles, int64_t rows, int64_t columns) const {
    alignas(64) char buffers[kMaxRowOperands][kTile * 8];
    Tile used[kMaxRowOperands];
    for (int k = 0; k < nest_.operands; ++k) {
      used[k] = tiles[k];
      if (!is_packed(k)) continue;
      used[k] = {buffers[k], columns * kind_.sizes[k], kind_.sizes[k]};
      if (k >= kind_.outputs || kind_.reads_outputs) copy_tile(used[k], tiles[k], rows, columns, kind_.sizes[k]);
    }
    run_rows(used, rows, columns);
    for (int k = 0; k < kind_.outputs; ++k)
      if (is_packed(k)) copy_tile(tiles[k], used[k], rows, columns, kind_.sizes[k]);
  }

  const Elementwise& kind_;
  Nest nest_;
  const void* arguments_;
  unsigned packed_ = 0, scalars_ = 0;  // bit k: operand k goes through a buffer; operand k is one element for a whole row
  bool joined_ = false;                // the rows of a tile are joined to one row
  RowFunction row_ = nullptr;
  int64_t rows_total_, columns_total_, rows_ = 0, columns_ = 0, down_ = 0, across_ = 0, tiles_ = 0;
};

// Runs few elements of dense operands and immediates as one row. Returns false for everything else.
bool run_as_row(const Elementwise& kind, const Call& call, const void* arguments) {
  const int64_t n = call.out().count;
  if (n > kGrain / kind.weight) return false;
  alignas(8) char slots[kMaxRowOperands][8];
  char* at[kMaxRowOperands];
  unsigned scalars = 0;
  for (int k = 0; k < kind.outputs + kind.inputs; ++k) {
    const plugrad_view& view = Nest::view(kind, call, k);
    if (is_immediate(view)) scalars |= 1u << k;
    else if (!is_dense(view)) return false;
    at[k] = address(view, slots[k]);
  }
  const RowFunction row = kind.rows[scalars >> kind.outputs];
  if (!row) return false;
  row(at, n, arguments);
  return true;
}

// Returns the number of elements after which a view repeats, if it repeats along its first axes and is dense along the rest.
// Otherwise returns 0.
int64_t period_of(const plugrad_view& view) {
  int64_t period = 1;
  int d = view.rank;
  for (; d > 0 && (view.shape[d - 1] == 1 || view.strides[d - 1] == period); --d) period *= view.shape[d - 1];
  for (; d > 0; --d)
    if (view.shape[d - 1] != 1 && view.strides[d - 1] != 0) return 0;
  return period;
}

// Fills `to` with copies of its first `size` bytes.
void repeat(char* to, int64_t size, int64_t total) {
  for (int64_t done = size; done < total;) {
    const int64_t some = std::min(done, total - done);
    std::memcpy(to + done, to, static_cast<size_t>(some));
    done += some;
  }
}

// A call on few elements. Its operands are dense or single elements, except for at most one repeating operand, such as a
// bias. The call runs as rows: of a period, or longer rows with copies of the repeated elements side by side.
class RepeatedRow {
 public:
  RepeatedRow(const Elementwise& kind, const Call& call) : kind_(kind), count_(call.out().count) {
    for (int k = 0; k < kind.outputs + kind.inputs; ++k) add(k, Nest::view(kind, call, k));
    row_ = kind.rows[scalars_ >> kind.outputs];
  }

  // Whether the operands are of this form.
  bool fits() const { return fits_ && row_ && count_ <= kGrain / kind_.weight; }

  void run(const void* arguments) {
    if (repeated_ < 0) return row_(at_, count_, arguments);
    const int64_t size = kind_.sizes[repeated_], copies = kMost / period_;
    alignas(64) char buffer[kMost * 8];
    int64_t some = period_;
    if (copies > 1) {
      some = std::min(copies * period_, count_);
      std::memcpy(buffer, at_[repeated_], static_cast<size_t>(period_ * size));
      repeat(buffer, period_ * size, some * size);
      at_[repeated_] = buffer;
    }
    for (int64_t first = 0; first < count_; first += some) {
      row_(at_, std::min(some, count_ - first), arguments);
      for (int k = 0; k < kind_.outputs + kind_.inputs; ++k)
        if (k != repeated_ && !(scalars_ >> k & 1)) at_[k] += some * kind_.sizes[k];
    }
  }

 private:
  static constexpr int64_t kMost = 256;  // elements of a row of copies

  void add(int k, const plugrad_view& view) {
    at_[k] = address(view, slots_[k]);
    if (is_dense(view)) return;
    const int64_t period = is_immediate(view) ? 1 : period_of(view);
    if (period == 1) {
      scalars_ |= 1u << k;
      return;
    }
    fits_ = fits_ && period > 1 && repeated_ < 0;
    repeated_ = k;
    period_ = period;
  }

  const Elementwise& kind_;
  int64_t count_, period_ = 0;
  char* at_[kMaxRowOperands];
  alignas(8) char slots_[kMaxRowOperands][8];
  unsigned scalars_ = 0;  // bit k: operand k is one element
  int repeated_ = -1;     // the repeating operand
  bool fits_ = true;
  RowFunction row_ = nullptr;
};

}  // namespace

void run_elementwise(const Elementwise& kind, const Call& call, const void* arguments) {
  if (run_as_row(kind, call, arguments)) return;
  if (RepeatedRow row(kind, call); row.fits()) return row.run(arguments);
  Tiling(kind, call, arguments).run(threads_of(call));
}

}  // namespace plugrad::cpu
