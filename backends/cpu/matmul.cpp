#include <backends/cpu/matmul.hpp>

#include <backends/cpu/blas.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/tile.hpp>

#include <algorithm>
#include <utility>

namespace plugrad::cpu {
namespace {

constexpr int64_t kTaskWork = 1 << 20;   // multiplications that are worth a task
constexpr int64_t kStackBytes = 32768;   // a right operand of this size is transposed on the stack

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One operand of the batch: where its matrices are, in elements.
template <class T> struct Operand {
  T* data;
  int64_t row, column;
  int64_t batch[PLUGRAD_MAX_RANK];

  Matrix<T> at(int64_t offset) const { return {data + offset, row, column}; }
};

template <class T> class Product {
 public:
  Product(const Call& call, Multiply<T> multiply)
      : multiply_(multiply), accumulates_(call.accumulates()), a_(operand<const T>(call.in(0))),
        b_(operand<const T>(call.in(1))), c_(operand<T>(call.out())) {
    const plugrad_view &a = call.in(0), &out = call.out();
    m_ = out.shape[out.rank - 2];
    n_ = out.shape[out.rank - 1];
    k_ = a.shape[a.rank - 1];
    for (int d = 0; d < out.rank - 2; ++d)
      append_batch(out.shape[d], step_of(a, d), step_of(call.in(1), d), step_of(out, d));
    if (is_better_transposed()) transpose();
    if (n_ == 1) c_.column = 1;
    fold_batch();
    plan_copies();
  }

  uint64_t workspace() const { return uint64_t(elements_) * sizeof(T); }

  void run(int threads, char* workspace) {
    make_copies(threads, reinterpret_cast<T*>(workspace));
    choose_tiles();
    const int64_t tiles = down_ * across_, tasks = batches_ * tiles, work = m_ * n_ * k_ / tiles;
    const int64_t each = std::max<int64_t>(1, kTaskWork / std::max<int64_t>(1, work));
    parallel(threads, ceil_div(tasks, each), [&](int64_t task) {
      for (int64_t t = task * each; t < std::min(tasks, (task + 1) * each); ++t) multiply_tile(t / tiles, t % tiles);
    });
    if (scratch_) copy_back(threads);
  }

 private:
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

  // A batch of left operands over one right operand is one tall left operand, where rows follow each other evenly.
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

  // Contiguous rows or columns, the rest at least as far apart as those are long.
  static bool is_plain(int64_t row, int64_t column, int64_t rows, int64_t columns) {
    return (columns == 1 || column == 1) && (rows == 1 || row >= columns) && row < INT32_MAX && columns < INT32_MAX;
  }
  template <class U> bool is_plain(const Operand<U>& o, int64_t rows, int64_t columns) const {
    return is_plain(o.row, o.column, rows, columns) || is_plain(o.column, o.row, columns, rows);
  }
  bool is_own() const { return m_ * n_ * k_ <= kOwnWork || m_ == 1 || n_ == 1 || std::max({m_, n_, k_}) >= INT32_MAX; }
  bool fits_stack() const { return k_ * n_ * int64_t(sizeof(T)) <= kStackBytes; }

  template <class U> int64_t distinct(const Operand<U>& o) const {
    return std::all_of(o.batch, o.batch + rank_, [](int64_t s) { return s == 0; }) ? 1 : batches_;
  }

  void plan_copies() {
    const bool own = is_own();
    copies_a_ = !own && !is_plain(a_, m_, k_);
    const bool b_serves = own ? n_ == 1 || b_.column == 1 || fits_stack() : is_plain(b_, k_, n_);
    copies_b_ = !b_serves;
    scratch_ = c_.column != 1 || (m_ > 1 && c_.row < n_) || c_.row >= INT32_MAX;
    elements_ = (copies_a_ ? distinct(a_) * m_ * k_ : 0) + (copies_b_ ? distinct(b_) * k_ * n_ : 0) +
                (scratch_ ? batches_ * m_ * n_ : 0);
  }

  template <class U> int64_t offset(const Operand<U>& o, int64_t batch) const {
    int64_t sum = 0;
    for (int d = rank_ - 1; d >= 0; batch /= batch_[d--]) sum += batch % batch_[d] * o.batch[d];
    return sum;
  }

  // Copies matrices between an operand and dense memory.
  template <bool into, class U>
  void copy(int threads, const Operand<U>& o, T* dense, int64_t rows, int64_t columns, int64_t count) const {
    constexpr int64_t kSize = sizeof(T), kBand = 32;
    const int64_t bands = ceil_div(rows, kBand);
    parallel(threads, count * bands, [&](int64_t task) {
      const int64_t i = task / bands, first = task % bands * kBand, some = std::min(kBand, rows - first);
      T* strided = const_cast<T*>(o.data) + (count == 1 ? 0 : offset(o, i)) + first * o.row;
      T* packed = dense + (i * rows + first) * columns;
      for (int64_t c = 0; c < columns; c += 64) {
        const int64_t wide = std::min<int64_t>(64, columns - c);
        const Tile from{reinterpret_cast<char*>(strided + c * o.column), o.row * kSize, o.column * kSize};
        const Tile to{reinterpret_cast<char*>(packed + c), columns * kSize, kSize};
        copy_tile(into ? to : from, into ? from : to, some, wide, kSize);
      }
    });
  }

  template <class U> void make_dense(Operand<U>& o, T* dense, int64_t rows, int64_t columns, int64_t count) const {
    o.data = dense;
    o.row = columns;
    o.column = 1;
    int64_t step = count == 1 ? 0 : rows * columns;
    for (int d = rank_ - 1; d >= 0; step *= batch_[d--]) o.batch[d] = step;
  }

  void make_copies(int threads, T* workspace) {
    if (copies_a_) {
      const int64_t count = distinct(a_);
      copy<true>(threads, a_, workspace, m_, k_, count);
      make_dense(a_, workspace, m_, k_, count);
      workspace += count * m_ * k_;
    }
    if (copies_b_) {
      const int64_t count = distinct(b_);
      copy<true>(threads, b_, workspace, k_, n_, count);
      make_dense(b_, workspace, k_, n_, count);
      workspace += count * k_ * n_;
    }
    target_ = c_;
    if (!scratch_) return;
    if (accumulates_) copy<true>(threads, c_, workspace, m_, n_, batches_);
    make_dense(target_, workspace, m_, n_, batches_);
  }

  void copy_back(int threads) const { copy<false>(threads, c_, target_.data, m_, n_, batches_); }

  // A product of some size is cut into tiles of the output, whatever the number of threads.
  void choose_tiles() {
    const int64_t side = m_ * n_ > (int64_t(1) << 20) ? 512 : 256;
    down_ = ceil_div(m_, side);
    across_ = ceil_div(n_, side);
    while (batches_ * down_ * across_ < 4 && m_ * n_ * k_ / (down_ * across_) > 4 * kTaskWork) {
      if (m_ / down_ > n_ / across_) down_ *= 2;
      else across_ *= 2;
    }
    rows_ = ceil_div(ceil_div(m_, down_), 16) * 16;
    columns_ = ceil_div(ceil_div(n_, across_), 16) * 16;
    down_ = ceil_div(m_, rows_);
    across_ = ceil_div(n_, columns_);
  }

  void multiply_tile(int64_t batch, int64_t tile) const {
    const int64_t row = tile / across_ * rows_, column = tile % across_ * columns_;
    const int64_t m = std::min(rows_, m_ - row), n = std::min(columns_, n_ - column);
    const Matrix<const T> a = a_.at(offset(a_, batch) + row * a_.row);
    const Matrix<const T> b = b_.at(offset(b_, batch) + column * b_.column);
    const Matrix<T> c = target_.at(offset(target_, batch) + row * target_.row + column * target_.column);
    if (!is_own()) return multiply_by_blas(m, n, a, b, c);
    if (n_ == 1 || b.column == 1) return multiply_(m, n, k_, a, b, c, accumulates_);
    alignas(64) T packed[kStackBytes / sizeof(T)];
    constexpr int64_t kSize = sizeof(T);
    copy_tile({reinterpret_cast<char*>(packed), n * kSize, kSize},
              {reinterpret_cast<char*>(const_cast<T*>(b.data)), b.row * kSize, b.column * kSize}, k_, n, kSize);
    multiply_(m, n, k_, a, {packed, n, 1}, c, accumulates_);
  }

  static BlasMatrix<T> blas_operand(Matrix<const T> x, int64_t rows, int64_t columns) {
    if (is_plain(x.row, x.column, rows, columns)) return {x.data, std::max(x.row, columns), false};
    return {x.data, std::max(x.column, rows), true};
  }

  void multiply_by_blas(int64_t m, int64_t n, Matrix<const T> a, Matrix<const T> b, Matrix<T> c) const {
    if constexpr (kHasBlas)
      blas_multiply(m, n, k_, blas_operand(a, m, k_), blas_operand(b, k_, n), c.data, std::max(c.row, n), accumulates_);
    else
      multiply_(m, n, k_, a, b, c, accumulates_);
  }

  Multiply<T> multiply_;
  bool accumulates_, copies_a_ = false, copies_b_ = false, scratch_ = false;
  int64_t m_, n_, k_;
  int rank_ = 0;
  int64_t batch_[PLUGRAD_MAX_RANK], batches_ = 1, elements_ = 0;
  Operand<const T> a_, b_;
  Operand<T> c_, target_;
  int64_t down_ = 1, across_ = 1, rows_ = 0, columns_ = 0;
};

}  // namespace

template <class T> void run_matmul(const Call& call, Multiply<T> multiply) {
  Product<T>(call, multiply).run(threads_of(call), call.op().workspace ? call.workspace() : nullptr);
}
template <class T> uint64_t matmul_workspace(const Call& call) { return Product<T>(call, nullptr).workspace(); }

template void run_matmul<float>(const Call&, Multiply<float>);
template void run_matmul<double>(const Call&, Multiply<double>);
template uint64_t matmul_workspace<float>(const Call&);
template uint64_t matmul_workspace<double>(const Call&);

}  // namespace plugrad::cpu
