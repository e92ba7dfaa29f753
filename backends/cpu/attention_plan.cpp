#include <backends/cpu/attention.hpp>

#include <backends/cpu/contraction.hpp>
#include <backends/cpu/pieces.hpp>
#include <plugrad/sdk/mask.hpp>

#include <algorithm>
#include <atomic>
#include <optional>

namespace plugrad::cpu {
namespace {

constexpr int64_t kQueries = 32, kKeys = 128;  // of a block; multiples of any vector
constexpr int64_t kRows = 6 * kQueries;        // queries of a shared packed block of keys
constexpr int64_t kFew = kFewVectors;          // up to so many queries read the keys in place
constexpr double kNever = -std::numeric_limits<double>::infinity();

// An operand: matrices along the last two axes, and the steps of the batch's axes, 0 where it is shared.
template <class T> struct Side {
  T* data;
  int64_t row, column;
  int64_t batch[PLUGRAD_MAX_RANK];
};

// The sizes of a call. The batch's axes with shared keys and values come last: a batch is a pair of an owner of keys and a
// member of the group that shares these keys.
class Shapes {
 public:
  Shapes(const plugrad_view& query, const plugrad_view& key, const plugrad_view& value, const plugrad_attention& attributes)
      : causal(attributes.causal), scale(attributes.scale) {
    const int r = query.rank;
    l = query.shape[r - 2];
    e = query.shape[r - 1];
    s = key.shape[r - 2];
    v = value.shape[r - 1];
    for (const bool shared : {false, true})
      for (int d = 0; d < r - 2; ++d)
        if (query.shape[d] > 1 && shared == (key.shape[d] == 1)) append(d, query.shape[d], shared);
    if (l == 1 && !causal && rank_ > 0 && groups > 1) fold_last();
  }

  // An operand with a row for each query, or for each key.
  template <class T> Side<T> of_queries(const plugrad_view& view) const {
    Side<T> side = of_keys<T>(view);
    if (folded_ >= 0) side.row = step(view, folded_);
    return side;
  }
  template <class T> Side<T> of_keys(const plugrad_view& view) const {
    Side<T> side{data<T>(view), step(view, view.rank - 2), step(view, view.rank - 1), {}};
    for (int i = 0; i < rank_; ++i) side.batch[i] = step(view, axes_[i]);
    return side;
  }
  template <class T> Matrix<T> at(const Side<T>& side, int64_t batch) const {
    int64_t offset = 0;
    for (int i = rank_ - 1; i >= 0; batch /= extents_[i--]) offset += batch % extents_[i] * side.batch[i];
    return {side.data + offset, side.row, side.column};
  }
  int64_t batches() const { return owners * groups; }
  // How many keys the queries before `end` see.
  int64_t seen(int64_t end) const { return causal ? std::min(s, end) : s; }

  int64_t l, s, e, v, owners = 1, groups = 1;
  bool causal;
  double scale;

 private:
  static int64_t step(const plugrad_view& view, int d) { return view.shape[d] == 1 ? 0 : view.strides[d]; }
  void append(int d, int64_t extent, bool shared) {
    axes_[rank_] = d;
    extents_[rank_++] = extent;
    (shared ? groups : owners) *= extent;
  }
  // Makes single queries with shared keys the rows of one matrix.
  void fold_last() {
    folded_ = axes_[--rank_];
    l = extents_[rank_];
    groups /= l;
  }

  int rank_ = 0, axes_[PLUGRAD_MAX_RANK], folded_ = -1;
  int64_t extents_[PLUGRAD_MAX_RANK];
};

// Calls f(lane, item) for each item. Lanes run at the same time, each on a thread, and have separate memory.
template <class F> void for_items(int64_t lanes, int64_t items, F&& f) {
  std::atomic<int64_t> next{0};
  parallel(static_cast<int>(lanes), lanes, [&](int64_t lane) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < items;) f(lane, i);
  });
}

// Returns the rows of `from`: in place if they are dense there, otherwise as a dense copy in `to`.
template <class T, class W> Matrix<const W> dense_rows(Matrix<const T> from, int64_t rows, int64_t columns, W* to) {
  if constexpr (std::is_same_v<T, W>)
    if (from.column == 1) return from;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[r * columns + c] = widened(from.data[r * from.row + c * from.column]);
  return {to, columns, 1};
}

// Sets the first row of `to` to factor times `from`, or to 0 for a factor of 0.
template <class T, class W> void scale_row(const ScoreKernels<W>& rows, Matrix<T> to, const W* from, int64_t n, W factor) {
  if constexpr (std::is_same_v<T, W>)
    if (to.column == 1 && factor != 0) return rows.multiply(to.data, from, n, factor);
  for (int64_t i = 0; i < n; ++i) to.data[i * to.column] = static_cast<T>(factor == 0 ? W(0) : from[i] * factor);
}

// The mask of a block's row, or null without a mask.
template <class T, class W> class MaskRows {
 public:
  // mask, query, key: the operands of the call.
  MaskRows(const Shapes& shapes, const plugrad_view& mask, const plugrad_view& query, const plugrad_view& key)
      : side_(shapes.of_queries<const T>(mask_view(mask, query, key))) {
    const bool same = std::ranges::all_of(side_.batch, [](int64_t step) { return step == 0; });
    if (!side_.data) number_ = immediate<W>(mask);
    else if (same && !side_.row && !side_.column) number_ = widened(*side_.data);
  }
  const W* row(const Shapes& shapes, int64_t batch, int64_t query, int64_t key, int64_t n, W* buffer) const {
    if (number_ == W(0)) return nullptr;
    if (number_) return std::fill_n(buffer, n, *number_), buffer;
    const Matrix<const T> m = shapes.at(side_, batch);
    const T* from = m.data + query * m.row + key * m.column;
    for (int64_t i = 0; i < n; ++i) buffer[i] = widened(from[i * m.column]);
    return buffer;
  }

 private:
  Side<const T> side_;
  std::optional<W> number_;  // of each score
};

template <class T> class Forward {
 public:
  using W = ComputeType<T>;

  explicit Forward(const Call& call)
      : call_(call), shapes_(call.in(0), call.in(1), call.in(2), call.attributes<plugrad_attention>()),
        query_(shapes_.of_queries<const T>(call.in(0))), key_(shapes_.of_keys<const T>(call.in(1))),
        value_(shapes_.of_keys<const T>(call.in(2))), out_(shapes_.of_queries<T>(call.out(0))),
        lse_(shapes_.of_queries<W>(call.out(1))), mask_(shapes_, call.in(3), call.in(0), call.in(1)) {
    chunks_ = ceil_div(shapes_.l, kRows);
    items_ = shapes_.batches() * chunks_;
    lanes_ = std::min<int64_t>(items_, threads_of(call));
  }

  uint64_t workspace() const { return static_cast<uint64_t>(lanes_ * Memory(shapes_, nullptr).size) * sizeof(W); }

  void run(const ProductKernels<W>& products, const ScoreKernels<W>& rows) const {
    W* const first = reinterpret_cast<W*>(call_.workspace());
    const int64_t size = Memory(shapes_, first).size;
    for_items(lanes_, items_, [&](int64_t lane, int64_t item) {
      const int64_t query = item % chunks_ * kRows;
      const int64_t count = std::min(kRows, shapes_.l - query);
      attend({products, rows, Memory(shapes_, first + lane * size), item / chunks_, query, count});
    });
  }

 private:
  // The memory of a lane.
  struct Memory {
    Memory(const Shapes& p, W* first) {
      Pieces<W> pieces(first);
      queries = pieces.take(kQueries * p.e);
      keys = pieces.take(kKeys * p.e);
      rows = pieces.take(kKeys * p.e);
      values = pieces.take(kKeys * p.v);
      scores = pieces.take(kQueries * kKeys);
      mask = pieces.take(kKeys);
      sums = pieces.take(std::min(p.l, kRows) * p.v);
      largest = pieces.take(kRows);
      totals = pieces.take(kRows);
      size = pieces.taken();
    }
    W *queries, *keys, *rows, *values, *scores, *mask, *sums, *largest, *totals;
    int64_t size;
  };
  // Some queries of a batch: an item of work.
  struct Item {
    const ProductKernels<W>& products;
    const ScoreKernels<W>& rows;
    Memory memory;
    int64_t batch, query, count;
  };
  struct Block {
    Matrix<const W> keys, values;  // keys: rows of them for few queries, else their transpose
    int64_t key, count;
  };

  void attend(const Item& item) const {
    std::fill_n(item.memory.largest, item.count, static_cast<W>(kNever));
    std::fill_n(item.memory.totals, item.count, W(0));
    std::fill(item.memory.totals + item.count, item.memory.totals + kRows, W(1));  // finish takes logarithms of vectors
    const bool few = item.count <= kFew && shapes_.e > 1;
    const int64_t end = shapes_.seen(item.query + item.count);
    for (int64_t key = 0; key < end; key += kKeys) {
      const Block block = loaded(item, few, key, std::min(kKeys, end - key));
      for (int64_t first = 0; first < item.count; first += kQueries)
        add_block(item, few, block, first, std::min(kQueries, item.count - first));
    }
    finish(item);
  }

  Block loaded(const Item& item, bool few, int64_t key, int64_t count) const {
    const Matrix<const T> k = shapes_.at(key_, item.batch), v = shapes_.at(value_, item.batch);
    const Matrix<const W> rows =
        dense_rows<T, W>({k.data + key * k.row, k.row, k.column}, count, shapes_.e, item.memory.rows);
    const Matrix<const W> values =
        dense_rows<T, W>({v.data + key * v.row, v.row, v.column}, count, shapes_.v, item.memory.values);
    if (few) return {rows, values, key, count};
    item.products.copy(shapes_.e, count, {rows.data, rows.column, rows.row}, item.memory.keys, kKeys);
    return {{item.memory.keys, kKeys, 1}, values, key, count};
  }

  void add_block(const Item& item, bool few, const Block& block, int64_t first, int64_t count) const {
    const Memory& m = item.memory;
    const int64_t seen = std::min(block.count, shapes_.seen(item.query + first + count) - block.key);
    if (seen <= 0) return;
    const Matrix<const T> q = shapes_.at(query_, item.batch);
    const Matrix<const W> queries =
        dense_rows<T, W>({q.data + (item.query + first) * q.row, q.row, q.column}, count, shapes_.e, m.queries);
    if (few)
      item.products.multiply(seen, count, shapes_.e, block.keys, {queries.data, 1, queries.row}, {m.scores, 1, kKeys}, {});
    else item.products.multiply(count, seen, shapes_.e, queries, block.keys, {m.scores, kKeys, 1}, {});
    for (int64_t r = 0; r < count; ++r) weigh(item, block, first + r, seen, m.scores + r * kKeys);
    const Matrix<W> sums{m.sums + first * shapes_.v, shapes_.v, 1};
    item.products.multiply(count, shapes_.v, seen, {m.scores, kKeys, 1}, block.values, sums, {sums, block.key > 0});
  }

  // Turns a row of scores into weights relative to the largest score so far, and rescales the earlier sums to this score.
  void weigh(const Item& item, const Block& block, int64_t row, int64_t seen, W* scores) const {
    const Memory& m = item.memory;
    const int64_t query = item.query + row, some = std::clamp<int64_t>(shapes_.seen(query + 1) - block.key, 0, seen);
    const W* mask = mask_.row(shapes_, item.batch, query, block.key, some, m.mask);
    const W old = m.largest[row], here = item.rows.weigh(scores, mask, some, static_cast<W>(shapes_.scale));
    const W largest = std::max(old, here), shift = largest == static_cast<W>(kNever) ? W(0) : largest;
    const W sum = item.rows.exponentiate(scores, some, seen, shift);
    if (old != largest && block.key > 0) {
      const W factor = item.rows.exponential(old - shift);
      W* const sums = m.sums + row * shapes_.v;
      item.rows.multiply(sums, sums, shapes_.v, factor);
      m.totals[row] *= factor;
    }
    m.largest[row] = largest;
    m.totals[row] += sum;
  }

  void finish(const Item& item) const {
    const Matrix<T> out = shapes_.at(out_, item.batch);
    const Matrix<W> lse = shapes_.at(lse_, item.batch);
    const Memory& m = item.memory;
    for (int64_t r = 0; r < item.count; ++r)
      scale_row(item.rows, Matrix<T>{out.data + (item.query + r) * out.row, 0, out.column}, m.sums + r * shapes_.v,
                shapes_.v, m.totals[r] == 0 ? W(0) : 1 / m.totals[r]);
    item.rows.logarithm(m.totals, item.count);  // -inf of 0
    for (int64_t r = 0; r < item.count; ++r) lse.data[(item.query + r) * lse.row] = m.largest[r] + m.totals[r];
  }

  const Call& call_;
  Shapes shapes_;
  Side<const T> query_, key_, value_;
  Side<T> out_;
  Side<W> lse_;
  MaskRows<T, W> mask_;
  int64_t chunks_, items_, lanes_;
};

// Recomputes the weights w from lse. With the slopes ds = w (grad value^T - sum_v grad out), the gradients are scale ds key,
// scale ds^T query and w^T grad. An item of work has all queries of its keys, so two items never add to the same gradient.
template <class T> class Backward {
 public:
  explicit Backward(const Call& call)
      : call_(call), shapes_(call.in(1), call.in(2), call.in(3), call.attributes<plugrad_attention>()),
        grad_(shapes_.of_queries<const T>(call.in(0))), query_(shapes_.of_queries<const T>(call.in(1))),
        key_(shapes_.of_keys<const T>(call.in(2))), value_(shapes_.of_keys<const T>(call.in(3))),
        out_(shapes_.of_queries<const T>(call.in(5))), lse_(shapes_.of_queries<const T>(call.in(6))),
        grad_query_(shapes_.of_queries<T>(call.out(0))), grad_key_(shapes_.of_keys<T>(call.out(1))),
        grad_value_(shapes_.of_keys<T>(call.out(2))), mask_(shapes_, call.in(4), call.in(1), call.in(2)) {
    lanes_ = std::min<int64_t>(shapes_.owners, threads_of(call));
  }

  uint64_t workspace() const { return static_cast<uint64_t>(lanes_ * Memory(shapes_, nullptr).size) * sizeof(T); }

  void run(const ProductKernels<T>& products, const ScoreKernels<T>& rows) const {
    T* const first = reinterpret_cast<T*>(call_.workspace());
    const int64_t size = Memory(shapes_, first).size;
    for_items(lanes_, shapes_.owners, [&](int64_t lane, int64_t owner) {
      differentiate({products, rows, Memory(shapes_, first + lane * size), {}, {}, {}, {}}, owner);
    });
  }

 private:
  struct Memory {
    Memory(const Shapes& p, T* first) {
      Pieces<T> pieces(first);
      const int64_t s = round_up(p.s, kKeys);
      key_columns = pieces.take(s * p.e);
      value_columns = pieces.take(s * p.v);
      keys = pieces.take(p.s * p.e);
      values = pieces.take(p.s * p.v);
      grad_keys = pieces.take(p.s * p.e);  // of gradients whose rows are not contiguous; also the queries'
      grad_values = pieces.take(p.s * p.v);
      queries = pieces.take(kQueries * p.e);
      grads = pieces.take(kQueries * p.v);
      grad_queries = pieces.take(kQueries * p.e);
      weights = pieces.take(kQueries * kKeys);
      slopes = pieces.take(kQueries * kKeys);
      mask = pieces.take(kKeys);
      out = pieces.take(p.v);
      deltas = pieces.take(kQueries);
      size = pieces.taken();
    }
    T *key_columns, *value_columns, *keys, *values, *grad_keys, *grad_values, *queries, *grads, *grad_queries, *weights,
        *slopes, *mask, *out, *deltas;
    int64_t size;
  };
  struct Item {
    const ProductKernels<T>& products;
    const ScoreKernels<T>& rows;
    Memory memory;
    Matrix<const T> keys, values;
    Matrix<T> grad_keys, grad_values;
  };
  // Some queries of a batch.
  struct Queries {
    int64_t batch, first, count;
    bool are_first;  // to add to the gradients of keys and values
    Matrix<const T> rows, grads;
  };

  void differentiate(Item item, int64_t owner) const {
    const Memory& m = item.memory;
    const int64_t batch = owner * shapes_.groups;
    item.keys = dense_rows<T, T>(shapes_.at(key_, batch), shapes_.s, shapes_.e, m.keys);
    item.values = dense_rows<T, T>(shapes_.at(value_, batch), shapes_.s, shapes_.v, m.values);
    for (int64_t key = 0; key < shapes_.s; key += kKeys) {
      const int64_t count = std::min(kKeys, shapes_.s - key);
      item.products.copy(shapes_.e, count, {item.keys.data + key * item.keys.row, 1, item.keys.row},
                         m.key_columns + key * shapes_.e, kKeys);
      item.products.copy(shapes_.v, count, {item.values.data + key * item.values.row, 1, item.values.row},
                         m.value_columns + key * shapes_.v, kKeys);
    }
    item.grad_keys = with_rows(shapes_.at(grad_key_, batch), m.grad_keys, shapes_.e);
    item.grad_values = with_rows(shapes_.at(grad_value_, batch), m.grad_values, shapes_.v);
    clear_unseen(item.grad_keys, shapes_.e);
    clear_unseen(item.grad_values, shapes_.v);
    // The last queries come first: they see the keys of every query.
    for (int64_t member = 0; member < shapes_.groups; ++member)
      for (int64_t first = (ceil_div(shapes_.l, kQueries) - 1) * kQueries; first >= 0; first -= kQueries)
        add_queries(item, loaded(item, batch + member, first));
    store(shapes_.at(grad_key_, batch), item.grad_keys, shapes_.s, shapes_.e);
    store(shapes_.at(grad_value_, batch), item.grad_values, shapes_.s, shapes_.v);
  }

  // Returns the matrix, or a matrix in `memory` if its rows are not contiguous.
  static Matrix<T> with_rows(Matrix<T> to, T* memory, int64_t columns) {
    return to.column == 1 ? to : Matrix<T>{memory, columns, 1};
  }
  // Copies the elements to the matrix if with_rows placed them in memory.
  static void store(Matrix<T> to, Matrix<T> from, int64_t rows, int64_t columns) {
    if (to.data == from.data) return;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) to.data[r * to.row + c * to.column] = from.data[r * from.row + c];
  }
  void clear_unseen(Matrix<T> to, int64_t columns) const {
    for (int64_t r = shapes_.seen(shapes_.l); r < shapes_.s; ++r) std::fill_n(to.data + r * to.row, columns, T(0));
  }

  Queries loaded(const Item& item, int64_t batch, int64_t first) const {
    const int64_t count = std::min(kQueries, shapes_.l - first);
    const bool are_first = batch % shapes_.groups == 0 && first + count == shapes_.l;
    const auto rows = [&](const Side<const T>& side, int64_t columns, T* to) {
      const Matrix<const T> x = shapes_.at(side, batch);
      return dense_rows<T, T>({x.data + first * x.row, x.row, x.column}, count, columns, to);
    };
    const Matrix<const T> queries = rows(query_, shapes_.e, item.memory.queries);
    return {batch, first, count, are_first, queries, rows(grad_, shapes_.v, item.memory.grads)};
  }

  void add_queries(const Item& item, const Queries& q) const {
    const Memory& m = item.memory;
    const Matrix<const T> out = shapes_.at(out_, q.batch);
    for (int64_t r = 0; r < q.count; ++r) {
      const T* y = dense_rows<T, T>({out.data + (q.first + r) * out.row, 0, out.column}, 1, shapes_.v, m.out).data;
      m.deltas[r] = item.rows.dot(q.grads.data + r * q.grads.row, y, shapes_.v);
    }
    const int64_t end = shapes_.seen(q.first + q.count);
    const Matrix<T> all = shapes_.at(grad_query_, q.batch), to{all.data + q.first * all.row, all.row, all.column};
    const Matrix<T> queries = with_rows(to, m.grad_queries, shapes_.e);
    for (int64_t key = 0; key < end; key += kKeys) add_block(item, q, queries, key, std::min(kKeys, end - key));
    store(to, queries, q.count, shapes_.e);
  }

  void add_block(const Item& item, const Queries& q, Matrix<T> queries, int64_t key, int64_t n) const {
    const Memory& m = item.memory;
    const int64_t e = shapes_.e, v = shapes_.v;
    const auto& multiply = item.products.multiply;
    multiply(q.count, n, e, q.rows, {m.key_columns + key * e, kKeys, 1}, {m.weights, kKeys, 1}, {});
    multiply(q.count, n, v, q.grads, {m.value_columns + key * v, kKeys, 1}, {m.slopes, kKeys, 1}, {});
    for (int64_t r = 0; r < q.count; ++r) weigh(item, q, r, key, n);
    const Matrix<const T> weights{m.weights, 1, kKeys}, slopes{m.slopes, 1, kKeys};  // transposed
    const Matrix<T> keys{item.grad_keys.data + key * item.grad_keys.row, item.grad_keys.row, 1};
    const Matrix<T> values{item.grad_values.data + key * item.grad_values.row, item.grad_values.row, 1};
    multiply(n, v, q.count, weights, q.grads, values, {values, !q.are_first});
    multiply(n, e, q.count, slopes, q.rows, keys, {keys, !q.are_first});
    multiply(q.count, e, n, {m.slopes, kKeys, 1}, {item.keys.data + key * item.keys.row, item.keys.row, 1}, queries,
             {queries, key > 0});
  }

  void weigh(const Item& item, const Queries& q, int64_t r, int64_t key, int64_t n) const {
    const Memory& m = item.memory;
    T *weights = m.weights + r * kKeys, *slopes = m.slopes + r * kKeys;
    const int64_t query = q.first + r, some = std::clamp<int64_t>(shapes_.seen(query + 1) - key, 0, n);
    const Matrix<const T> lse = shapes_.at(lse_, q.batch);
    const T sum = lse.data[query * lse.row];
    const auto scale = static_cast<T>(shapes_.scale);
    item.rows.weigh(weights, mask_.row(shapes_, q.batch, query, key, some, m.mask), some, scale);
    item.rows.exponentiate(weights, some, n, sum == static_cast<T>(kNever) ? -sum : sum);
    item.rows.slope(slopes, weights, n, m.deltas[r], scale);
  }

  const Call& call_;
  Shapes shapes_;
  Side<const T> grad_, query_, key_, value_, out_, lse_;
  Side<T> grad_query_, grad_key_, grad_value_;
  MaskRows<T, T> mask_;
  int64_t lanes_;
};

}  // namespace

template <class T>
void run_attention(const Call& call, const ProductKernels<ComputeType<T>>& products,
                   const ScoreKernels<ComputeType<T>>& rows) {
  Forward<T>(call).run(products, rows);
}
template <class T> uint64_t attention_workspace(const Call& call) { return Forward<T>(call).workspace(); }
template <class T>
void run_attention_backward(const Call& call, const ProductKernels<T>& products, const ScoreKernels<T>& rows) {
  Backward<T>(call).run(products, rows);
}
template <class T> uint64_t attention_backward_workspace(const Call& call) { return Backward<T>(call).workspace(); }

template void run_attention<float>(const Call&, const ProductKernels<float>&, const ScoreKernels<float>&);
template void run_attention<double>(const Call&, const ProductKernels<double>&, const ScoreKernels<double>&);
template void run_attention<BFloat16>(const Call&, const ProductKernels<float>&, const ScoreKernels<float>&);
template uint64_t attention_workspace<float>(const Call&);
template uint64_t attention_workspace<double>(const Call&);
template uint64_t attention_workspace<BFloat16>(const Call&);
template void run_attention_backward<float>(const Call&, const ProductKernels<float>&, const ScoreKernels<float>&);
template void run_attention_backward<double>(const Call&, const ProductKernels<double>&, const ScoreKernels<double>&);
template uint64_t attention_backward_workspace<float>(const Call&);
template uint64_t attention_backward_workspace<double>(const Call&);

}  // namespace plugrad::cpu
