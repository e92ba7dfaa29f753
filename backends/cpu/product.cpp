#include <backends/cpu/product.hpp>

#include <backends/cpu/pool.hpp>
#include <backends/cpu/tile.hpp>

#include <algorithm>
#include <utility>

namespace plugrad::cpu {
namespace {

constexpr int64_t kTaskWork = 1 << 20;    // how many multiplications are worth a task
constexpr int64_t kStackBytes = 32768;    // a right operand of this size is transposed on the stack
constexpr int64_t kPanelBytes = 1 << 20;  // the most bytes of panels at a time
constexpr int64_t kPlaceBytes = 1 << 20;  // a right operand of this size is multiplied where it lies

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Divides `extent` into equal parts of at most `most`, each a multiple of `unit`.
int64_t even_part(int64_t extent, int64_t most, int64_t unit) {
  return round_up(ceil_div(extent, ceil_div(extent, most)), unit);
}

// One operand of the batch: the positions of its matrices, in elements.
template <class T> struct Operand {
  T* data;
  int64_t row, column;
  int64_t batch[PLUGRAD_MAX_RANK];

  Matrix<T> at(int64_t offset) const { return {data + offset, row, column}; }
};

template <class T> class Product {
 public:
  explicit Product(const Call& call)
      : accumulates_(call.accumulates()), a_(operand<const T>(call.in(0))), b_(operand<const T>(call.in(1))),
        c_(operand<T>(call.out())) {
    const plugrad_view &a = call.in(0), &out = call.out();
    m_ = out.shape[out.rank - 2];
    n_ = out.shape[out.rank - 1];
    k_ = a.shape[a.rank - 1];
    for (int d = 0; d < out.rank - 2; ++d)
      append_batch(out.shape[d], step_of(a, d), step_of(call.in(1), d), step_of(out, d));
    if (is_better_transposed()) transpose();
    if (n_ == 1) c_.column = 1;
    fold_batch();
    scratch_ = c_.column != 1 || (m_ > 1 && c_.row < n_);
    if (!is_multiplied_in_place()) plan_panels();
  }

  uint64_t workspace() const {
    return static_cast<uint64_t>(panel_elements() + (scratch_ ? batches_ * m_ * n_ : 0)) * sizeof(T);
  }

  void run(const ProductKernels<T>& kernels, int threads, char* workspace) {
    T* panels = reinterpret_cast<T*>(workspace);
    target_ = c_;
    if (scratch_) prepare_scratch(threads, panels + panel_elements());
    if (panels_) multiply_panels(kernels, threads, panels);
    else multiply_in_place(kernels, threads);
    if (scratch_) copy<false>(threads, c_, target_.data);
  }

 private:
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kWidest = 256 / kSize;  // a multiple of the columns of any kernel's panel

  static int64_t step_of(const plugrad_view& v, int d) { return v.shape[d] == 1 ? 0 : v.strides[d]; }
  template <class U> static Operand<U> operand(const plugrad_view& v) {
    return {data<U>(v), step_of(v, v.rank - 2), step_of(v, v.rank - 1), {}};
  }

  void append_batch(int64_t extent, int64_t a, int64_t b, int64_t c) {
    if (extent == 1) return;
    batch_[rank_] = extent;
    a_.batch[rank_] = a;
    b_.batch[rank_] = b;
    c_.batch[rank_++] = c;
    batches_ *= extent;
  }

  // Products with a vector are dots of contiguous rows or sums of contiguous rows; others write contiguous rows.
  bool is_better_transposed() const {
    if (n_ == 1) return a_.column != 1 && a_.row == 1;
    if (m_ == 1) return b_.column != 1 && b_.row == 1;
    return c_.column != 1 && c_.row == 1;
  }

  // (a b)^T = b^T a^T
  void transpose() {
    std::swap(m_, n_);
    std::swap(a_, b_);
    for (auto* o : {&a_, &b_}) std::swap(o->row, o->column);
    std::swap(c_.row, c_.column);
  }

  // A batch of left operands with one right operand is one tall left operand, if the distance between rows is constant.
  void fold_batch() {
    while (rank_ > 0) {
      const int d = rank_ - 1;
      const bool even = m_ == 1 || (a_.batch[d] == m_ * a_.row && c_.batch[d] == m_ * c_.row);
      if (b_.batch[d] != 0 || !even) return;
      if (m_ == 1) {
        a_.row = a_.batch[d];
        c_.row = c_.batch[d];
      }
      m_ *= batch_[d];
      batches_ /= batch_[d];
      --rank_;
    }
  }

  // Panels cost a copy of b but are read faster. They do not pay for few rows, or if b fits the caches.
  bool is_multiplied_in_place() const {
    if (n_ == 1 || (b_.column != 1 && k_ * n_ * kSize <= kStackBytes)) return true;
    return b_.column == 1 && (m_ <= 32 || k_ * n_ * kSize <= kPlaceBytes);
  }

  template <class U> bool is_shared(const Operand<U>& o) const {
    return std::all_of(o.batch, o.batch + rank_, [](int64_t s) { return s == 0; });
  }

  // Panels hold all of b if it fits kPanelBytes, else some of its batches, or some slices or columns of one batch.
  void plan_panels() {
    panels_ = true;
    const int64_t most = kPanelBytes / kSize;
    depth_ = even_part(k_, kDepth<T>, 8);
    slices_ = ceil_div(k_, depth_);
    width_ = even_part(n_, most / depth_ / kWidest * kWidest, kWidest);
    deep_ = std::clamp<int64_t>(most / (depth_ * width_), 1, slices_);
    const bool whole = width_ >= n_ && deep_ == slices_;
    packs_ = !whole || is_shared(b_) ? 1 : std::clamp<int64_t>(most / (depth_ * width_ * slices_), 1, batches_);
    group_ = whole && is_shared(b_) ? batches_ : packs_;
  }
  int64_t panel_elements() const { return packs_ * deep_ * depth_ * width_; }

  template <class U> int64_t offset(const Operand<U>& o, int64_t batch) const {
    int64_t sum = 0;
    for (int d = rank_ - 1; d >= 0; batch /= batch_[d--]) sum += batch % batch_[d] * o.batch[d];
    return sum;
  }

  // Copies matrices of the output's shape between strided and dense memory.
  template <bool into> void copy(int threads, const Operand<T>& o, T* dense) const {
    constexpr int64_t kBand = 32;
    const int64_t bands = ceil_div(m_, kBand);
    parallel(threads, batches_ * bands, [&](int64_t task) {
      const int64_t i = task / bands, first = task % bands * kBand, some = std::min(kBand, m_ - first);
      T* strided = o.data + offset(o, i) + first * o.row;
      T* packed = dense + (i * m_ + first) * n_;
      for (int64_t c = 0; c < n_; c += 64) {
        const Tile from{reinterpret_cast<char*>(strided + c * o.column), o.row * kSize, o.column * kSize};
        const Tile to{reinterpret_cast<char*>(packed + c), n_ * kSize, kSize};
        copy_tile(into ? to : from, into ? from : to, some, std::min<int64_t>(64, n_ - c), kSize);
      }
    });
  }

  void prepare_scratch(int threads, T* dense) {
    if (accumulates_) copy<true>(threads, c_, dense);
    target_.data = dense;
    target_.row = n_;
    target_.column = 1;
    int64_t step = m_ * n_;
    for (int d = rank_ - 1; d >= 0; step *= batch_[d--]) target_.batch[d] = step;
  }

  // Divides the output into tiles, independently of the number of threads.
  struct Tiles {
    int64_t rows, columns, down, across;
    int64_t count() const { return down * across; }
  };
  static Tiles tiles(int64_t m, int64_t n, int64_t k, int64_t batches, int64_t side) {
    int64_t down = ceil_div(m, side), across = ceil_div(n, side);
    while (batches * down * across < 4 && m * n * k / (down * across) > 4 * kTaskWork) {
      if (m / down > n / across) down *= 2;
      else across *= 2;
    }
    const int64_t rows = ceil_div(m, down), columns = round_up(ceil_div(n, across), kWidest);
    return {rows, columns, ceil_div(m, rows), ceil_div(n, columns)};
  }

  // Calls f(batch, row, column, m, n) for all tiles of `batches` outputs with n columns; a task takes several small tiles.
  template <class F> void for_tiles(int threads, const Tiles& t, int64_t batches, int64_t n, int64_t k, F&& f) const {
    const int64_t tasks = batches * t.count(), work = m_ * n * k / t.count();
    const int64_t each = std::max<int64_t>(1, kTaskWork / std::max<int64_t>(1, work));
    parallel(threads, ceil_div(tasks, each), [&](int64_t task) {
      for (int64_t i = task * each; i < std::min(tasks, (task + 1) * each); ++i) {
        const int64_t tile = i % t.count(), row = tile % t.down * t.rows, column = tile / t.down * t.columns;
        f(i / t.count(), row, column, std::min(t.rows, m_ - row), std::min(t.columns, n - column));
      }
    });
  }

  Matrix<const T> left(int64_t batch, int64_t row, int64_t k) const {
    return a_.at(offset(a_, batch) + row * a_.row + k * a_.column);
  }
  Matrix<const T> right(int64_t batch, int64_t k, int64_t column) const {
    return b_.at(offset(b_, batch) + k * b_.row + column * b_.column);
  }
  Matrix<T> target(int64_t batch, int64_t row, int64_t column) const {
    return target_.at(offset(target_, batch) + row * target_.row + column * target_.column);
  }

  void multiply_in_place(const ProductKernels<T>& kernels, int threads) const {
    const Tiles grid = tiles(m_, n_, k_, batches_, m_ * n_ > (1 << 20) ? 512 : 256);
    for_tiles(threads, grid, batches_, n_, k_, [&](int64_t batch, int64_t row, int64_t column, int64_t m, int64_t n) {
      const Matrix<const T> a = left(batch, row, 0), b = right(batch, 0, column);
      const Matrix<T> c = target(batch, row, column);
      if (n_ == 1 || b.column == 1) return kernels.multiply(m, n, k_, a, b, c, accumulates_);
      alignas(64) T packed[kStackBytes / kSize];
      copy_tile({reinterpret_cast<char*>(packed), n * kSize, kSize},
                {reinterpret_cast<char*>(const_cast<T*>(b.data)), b.row * kSize, b.column * kSize}, k_, n, kSize);
      kernels.multiply(m, n, k_, a, {packed, n, 1}, c, accumulates_);
    });
  }

  void multiply_panels(const ProductKernels<T>& kernels, int threads, T* panels) const {
    for (int64_t batch = 0; batch < batches_; batch += group_)
      for (int64_t column = 0; column < n_; column += width_)
        for (int64_t slice = 0; slice < slices_; slice += deep_) {
          const Chunk chunk{batch, std::min(group_, batches_ - batch), column, std::min(width_, n_ - column), slice,
                            std::min(deep_, slices_ - slice)};
          pack_chunk(kernels, threads, chunk, panels);
          multiply_chunk(kernels, threads, chunk, panels);
        }
  }

  // The part of b that is in panels at a time: some batches, columns and slices of k.
  struct Chunk {
    int64_t batch, batches, column, columns, slice, slices;
  };
  int64_t slice_depth(int64_t slice) const { return std::min(depth_, k_ - slice * depth_); }

  void pack_chunk(const ProductKernels<T>& kernels, int threads, const Chunk& chunk, T* panels) const {
    const int64_t some = 4 * kernels.columns, groups = ceil_div(chunk.columns, some);
    const int64_t packs = std::min(packs_, chunk.batches);
    parallel(threads, packs * chunk.slices * groups, [&](int64_t task) {
      const int64_t first = task % groups * some, i = task / groups, slice = chunk.slice + i % chunk.slices;
      const int64_t batch = chunk.batch + i / chunk.slices;
      kernels.pack(std::min(some, chunk.columns - first), slice_depth(slice),
                   right(batch, slice * depth_, chunk.column + first), panels + i * depth_ * width_ + first * depth_,
                   depth_ * kernels.columns);
    });
  }

  void multiply_chunk(const ProductKernels<T>& kernels, int threads, const Chunk& chunk, const T* panels) const {
    const Tiles grid = tiles(m_, chunk.columns, k_, chunk.batches, 512);
    for_tiles(threads, grid, chunk.batches, chunk.columns, chunk.slices * depth_,
              [&](int64_t batch, int64_t row, int64_t column, int64_t m, int64_t n) {
      const int64_t pack = packs_ == 1 ? 0 : batch;
      const Matrix<T> c = target(chunk.batch + batch, row, chunk.column + column);
      for (int64_t i = 0; i < chunk.slices; ++i) {
        const int64_t slice = chunk.slice + i;
        const T* first = panels + (pack * chunk.slices + i) * depth_ * width_ + column * depth_;
        kernels.multiply_panels(m, n, slice_depth(slice), left(chunk.batch + batch, row, slice * depth_),
                                {first, depth_ * kernels.columns}, c, accumulates_ || slice > 0);
      }
    });
  }

  bool accumulates_, scratch_ = false, panels_ = false;
  int64_t m_, n_, k_;
  int rank_ = 0;
  int64_t batch_[PLUGRAD_MAX_RANK], batches_ = 1;
  Operand<const T> a_, b_;
  Operand<T> c_, target_;
  int64_t depth_ = 0, slices_ = 0, deep_ = 0;    // of a slice; how many there are; how many are in panels at a time
  int64_t width_ = 0, packs_ = 0, group_ = 0;    // columns, right operands and batches at a time
};

}  // namespace

template <class T> void run_product(const Call& call, const ProductKernels<T>& kernels) {
  Product<T>(call).run(kernels, threads_of(call), call.op().workspace ? call.workspace() : nullptr);
}
template <class T> uint64_t product_workspace(const Call& call) {
  const plugrad_view &c = call.out(), &b = call.in(1);
  const bool dense = is_dense(c) && is_dense(call.in(0)) && is_dense(b);
  if (dense && c.rank == 2 && b.count * static_cast<int64_t>(sizeof(T)) <= kPlaceBytes) return 0;  // the usual case, early
  return Product<T>(call).workspace();
}

template void run_product<float>(const Call&, const ProductKernels<float>&);
template void run_product<double>(const Call&, const ProductKernels<double>&);
template uint64_t product_workspace<float>(const Call&);
template uint64_t product_workspace<double>(const Call&);

}  // namespace plugrad::cpu
