// The geometry of a batched matrix product: sizes, strides and tiles, for plans to cut it into pieces.
#pragma once
#include <backends/cpu/operand.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/product.hpp>
#include <backends/cpu/tile.hpp>

#include <algorithm>
#include <utility>

namespace plugrad::cpu {

constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Divides `extent` into equal parts of at most `most`, each a multiple of `unit`.
constexpr int64_t even_part(int64_t extent, int64_t most, int64_t unit) {
  return round_up(ceil_div(extent, ceil_div(extent, most)), unit);
}

inline constexpr int64_t kTaskWork = 1 << 17;  // how many multiplications are worth a task

// One operand of the batch: the positions of its matrices, in elements.
template <class T> struct Operand {
  T* data;
  int64_t row, column;
  int64_t batch[PLUGRAD_MAX_RANK];

  Matrix<T> at(int64_t offset) const { return {data + offset, row, column}; }
};

struct Tiles {
  int64_t rows, columns, down, across;
  int64_t count() const { return down * across; }
};

// Divides outputs of m x n into tiles, independently of the number of threads; a tile's columns are a multiple of `unit`.
inline Tiles tiles_of(int64_t m, int64_t n, int64_t k, int64_t batches, int64_t most_rows, int64_t most_columns,
                      int64_t unit) {
  int64_t down = ceil_div(m, most_rows), across = ceil_div(n, most_columns);
  while (batches * down * across < 4 && m * n * k / (down * across) > kTaskWork) {
    if (m / down * most_columns > n / across * most_rows) down *= 2;
    else across *= 2;
  }
  const int64_t rows = ceil_div(m, down), columns = round_up(ceil_div(n, across), unit);
  return {rows, columns, ceil_div(m, rows), ceil_div(n, columns)};
}

// The operands of a MATMUL: c (m x n) = a (m x k) b (k x n) for each of the batches. A MATMUL_ADD adds addend_.
template <class T> class Contraction {
 protected:
  explicit Contraction(const Call& call)
      : has_addend_(call.op().inputs == 3), a_(operand<const T>(call.in(0))), b_(operand<const T>(call.in(1))),
        addend_(operand<const T>(call.in(has_addend_ ? 2 : 0))), c_(operand<T>(call.out())) {
    const plugrad_view &a = call.in(0), &out = call.out(), &addend = call.in(has_addend_ ? 2 : 0);
    m_ = out.shape[out.rank - 2];
    n_ = out.shape[out.rank - 1];
    k_ = a.shape[a.rank - 1];
    for (int d = 0; d < out.rank - 2; ++d)
      append_batch(out.shape[d], step_of(a, d), step_of(call.in(1), d), step_of(addend, d), step_of(out, d));
  }

  // (a b)^T = b^T a^T
  void transpose() {
    std::swap(m_, n_);
    std::swap(a_, b_);
    for (auto* o : {&a_, &b_, &addend_}) std::swap(o->row, o->column);
    std::swap(c_.row, c_.column);
  }

  // A batch of left operands with a common right operand is a single tall left operand, if the distance between rows is
  // constant.
  void fold_batch() {
    while (rank_ > 0) {
      const int d = rank_ - 1;
      const auto is_even = [&](const auto& o) { return m_ == 1 || o.batch[d] == m_ * o.row; };
      if (b_.batch[d] != 0 || !is_even(a_) || !is_even(c_) || (has_addend_ && !is_even(addend_))) return;
      if (m_ == 1) {
        a_.row = a_.batch[d];
        addend_.row = addend_.batch[d];
        c_.row = c_.batch[d];
      }
      m_ *= batch_[d];
      batches_ /= batch_[d];
      --rank_;
    }
  }

  template <class U> int64_t offset(const Operand<U>& o, int64_t batch) const {
    int64_t sum = 0;
    for (int d = rank_ - 1; d >= 0; batch /= batch_[d--]) sum += batch % batch_[d] * o.batch[d];
    return sum;
  }
  // Returns the addend of a product of m x n elements of a batch, with the output c. `any`: the kernel reads any columns;
  // otherwise an addend without contiguous rows is copied to the output.
  Addend<T> addend_at(int64_t batch, int64_t row, int64_t column, int64_t m, int64_t n, Matrix<T> c, bool any) const {
    if (any || n == 1 || addend_.column == 1)
      return {addend_.data + offset(addend_, batch) + row * addend_.row + column * addend_.column, addend_.row,
              addend_.column};
    copy_addend(batch, row, column, m, n, c);
    return {c, true};
  }
  // Copies the addend of m x n elements of a batch to `to`.
  void copy_addend(int64_t batch, int64_t row, int64_t column, int64_t m, int64_t n, Matrix<T> to) const {
    constexpr int kSize = sizeof(T);
    T* from = const_cast<T*>(addend_.data) + offset(addend_, batch) + row * addend_.row + column * addend_.column;
    copy_tile({reinterpret_cast<char*>(to.data), to.row * kSize, to.column * kSize},
              {reinterpret_cast<char*>(from), addend_.row * kSize, addend_.column * kSize}, m, n, kSize);
  }
  template <class U> bool is_shared(const Operand<U>& o) const {
    return std::all_of(o.batch, o.batch + rank_, [](int64_t s) { return s == 0; });
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

  int64_t m_, n_, k_;
  int rank_ = 0;
  int64_t batch_[PLUGRAD_MAX_RANK], batches_ = 1;
  bool has_addend_;
  Operand<const T> a_, b_, addend_;  // addend_ is valid if has_addend_
  Operand<T> c_;

 private:
  static int64_t step_of(const plugrad_view& v, int d) { return v.shape[d] == 1 ? 0 : v.strides[d]; }
  template <class U> static Operand<U> operand(const plugrad_view& v) {
    return {data<U>(v), step_of(v, v.rank - 2), step_of(v, v.rank - 1), {}};
  }

  void append_batch(int64_t extent, int64_t a, int64_t b, int64_t addend, int64_t c) {
    if (extent == 1) return;
    batch_[rank_] = extent;
    a_.batch[rank_] = a;
    b_.batch[rank_] = b;
    addend_.batch[rank_] = addend;
    c_.batch[rank_++] = c;
    batches_ *= extent;
  }
};

}  // namespace plugrad::cpu
