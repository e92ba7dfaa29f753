// The gradients of attention's query, key and value. Each is a sum of weights times rows of an operand; one kernel computes
// all three. A block computes a tile of rows of a gradient, and the weights anew from the saved log-sum-exp, so no sum needs
// atomic additions, and the order is fixed.
#include <backends/cuda/attention.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/softmax.hpp>

namespace plugrad::cuda {
namespace {

enum class Of : uint8_t { query, key, value };

// The gradient of `of`. Its rows belong to queries, and the columns of the weights to keys, or the reverse.
struct Gradient {
  // The operands of the walks.
  enum : int { kLeft, kRight, kLeftValue, kRightValue, kMask, kLse, kDelta, kOut, kOperands };
  Walk<kOperands> owners, sharers;  // matrices of the result, and the queries that share each
  Extents left, right, left_value, right_value, mask, lse, delta, out;  // lse and delta: of the shape of the weights
  double scale;
  bool is_causal, rows_are_queries, takes_slopes;
  uint64_t across, of_one, all;  // blocks of columns of the result; tasks of a matrix and in all

  Gradient(const Call& call, Of of);

 private:
  void add_batch(const Call& call, Of of, const plugrad_view& lse_and_delta);
};

// The sums of grad out, one for each query, lie in the workspace without gaps, in the order of lse.
plugrad_view delta_of(const plugrad_view& lse) {
  plugrad_view delta = lse;
  int64_t step = 1;
  for (int d = lse.rank - 1; d >= 0; --d) {
    delta.strides[d] = step;
    step *= lse.shape[d];
  }
  return delta;
}

// Returns a matrix with this column of numbers as each of its columns.
Extents widened_column(const plugrad_view& column) {
  Extents extents(column);
  extents.column = 0;
  return extents;
}

Gradient::Gradient(const Call& call, Of of)
    : mask(mask_view(call.in(4), call.in(1), call.in(2))), lse(widened_column(call.in(6))),
      delta(widened_column(delta_of(call.in(6)))), out(call.out(static_cast<int>(of))), rows_are_queries(of == Of::query),
      takes_slopes(of != Of::value) {
  const Extents grad(call.in(0)), query(call.in(1)), key(call.in(2)), value(call.in(3));
  left = rows_are_queries ? query : key;
  right = rows_are_queries ? key : query;
  left_value = rows_are_queries ? grad : value;
  right_value = rows_are_queries ? value : grad;
  for (Extents* each : {&mask, &lse, &delta})
    if (!rows_are_queries) *each = each->transposed();
  const auto& attributes = call.attributes<plugrad_attention>();
  scale = attributes.scale;
  is_causal = attributes.causal != 0;
  add_batch(call, of, delta_of(call.in(6)));
  across = chunks_of(out.columns);
  of_one = across * tiles_of(out.rows);
  all = of_one * owners.count;
}

void Gradient::add_batch(const Call& call, Of of, const plugrad_view& own_delta) {
  const plugrad_view &grad = call.in(0), &query = call.in(1), &key = call.in(2), &value = call.in(3);
  const plugrad_view of_mask = mask_view(call.in(4), query, key);
  const plugrad_view* const views[kOperands] = {rows_are_queries ? &query : &key,
                                                rows_are_queries ? &key : &query,
                                                rows_are_queries ? &grad : &value,
                                                rows_are_queries ? &value : &grad,
                                                &of_mask,
                                                &call.in(6),
                                                &own_delta,
                                                &call.out(static_cast<int>(of))};
  for (int d = query.rank - 3; d >= 0; --d) {
    int64_t strides[kOperands];
    for (int k = 0; k < kOperands; ++k) strides[k] = stride_of(*views[k], d);
    const bool is_shared = !rows_are_queries && key.shape[d] == 1;
    (is_shared ? sharers : owners).add(query.shape[d], strides);
  }
  owners.close();
  sharers.close();
}

template <class T> struct Pointers {
  const T *left, *right, *left_value, *right_value;
  MaskOperand<T> mask;
  const AccumulatorOf<T>*lse, *delta;
  T* out;
};

// A block's operands, for one matrix of queries.
template <class T> struct Place {
  using A = AccumulatorOf<T>;
  MatrixOf<const T> left, right, left_value, right_value;
  Mask<T> mask;
  MatrixOf<const A> lse, delta;

  __device__ Place(const Gradient& g, const Pointers<T>& p, const Reach<Gradient::kOperands>& owner,
                   const Reach<Gradient::kOperands>& sharer)
      : left{p.left + owner.at[Gradient::kLeft] + sharer.at[Gradient::kLeft], g.left},
        right{p.right + owner.at[Gradient::kRight] + sharer.at[Gradient::kRight], g.right},
        left_value{p.left_value + owner.at[Gradient::kLeftValue] + sharer.at[Gradient::kLeftValue], g.left_value},
        right_value{p.right_value + owner.at[Gradient::kRightValue] + sharer.at[Gradient::kRightValue], g.right_value},
        mask(p.mask.matrix(owner.at[Gradient::kMask] + sharer.at[Gradient::kMask], g.mask)),
        lse{p.lse + owner.at[Gradient::kLse] + sharer.at[Gradient::kLse], g.lse},
        delta{p.delta + owner.at[Gradient::kDelta] + sharer.at[Gradient::kDelta], g.delta} {}
};

// The weight of a score. It is 0 for a query without keys.
template <class T, class A>
__device__ __forceinline__ A weight_of(const Gradient& g, const Place<T>& place, int64_t row, int64_t column, A product) {
  if (row >= g.left.rows || column >= g.right.rows) return 0;
  if (g.is_causal && (g.rows_are_queries ? column > row : row > column)) return 0;
  const A lse = place.lse.at(row, column);
  if (lse == kBottom<A>) return 0;
  return std::exp(product * static_cast<A>(g.scale) + place.mask.at(row, column) - lse);
}

// Returns the weights of rows from `row` on and columns from `column` on, or their slopes.
template <class T, class A>
__device__ __forceinline__ Results<A> weights_of(SharedTiles<A>& shared, const Gradient& g, const Place<T>& place,
                                                 int64_t row, int64_t column) {
  Results<A> weights = multiply_rows(shared, place.left, row, place.right, column);
  const int64_t first = row + first_row(), across = column + first_column();
  each_element([&](int i, int j) { weights.at[i][j] = weight_of(g, place, first + i, across + j, weights.at[i][j]); });
  if (!g.takes_slopes) return weights;
  const Results<A> changes = multiply_rows(shared, place.left_value, row, place.right_value, column);
  each_element([&](int i, int j) {
    if (first + i >= g.left.rows || across + j >= g.right.rows) return;
    const A change = changes.at[i][j] - place.delta.at(first + i, across + j);
    weights.at[i][j] *= change * static_cast<A>(g.scale);
  });
  return weights;
}

template <class T, class A>
__device__ __forceinline__ void add_rows(SharedTiles<A>& shared, const Gradient& g, const Results<A>& weights, int64_t row,
                                         const MatrixOf<const T>& from, int64_t first, int64_t column, Totals<A>& totals) {
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    if (column + c * kTile >= g.out.columns) continue;
    Results<A> sums = multiply_weights(shared, weights, g.out.rows - row, from, first, column + c * kTile);
    flush(sums, totals.chunk[c]);
  }
}

template <class T, class A>
__device__ __forceinline__ void store(const MatrixOf<T>& out, const Totals<A>& totals, int64_t row, int64_t column) {
#pragma unroll
  for (int c = 0; c < kChunks; ++c)
    each_element([&](int i, int j) {
      const int64_t y = row + first_row() + i, x = column + c * kTile + first_column() + j;
      if (y < out.of.rows && x < out.of.columns) out.at(y, x) = static_cast<T>(totals.chunk[c].at[i][j]);
    });
}

template <class T>
__global__ void __launch_bounds__(kBlock, kBlocksAtOnce<AccumulatorOf<T>>)
    attention_backward_kernel(const __grid_constant__ Gradient g, const __grid_constant__ Pointers<T> p) {
  using A = AccumulatorOf<T>;
  __shared__ SharedTiles<A> shared;
  for (uint64_t task = blockIdx.x; task < g.all; task += gridDim.x) {
    const uint64_t owner = task / g.of_one, inside = task - owner * g.of_one;
    const auto row = static_cast<int64_t>(inside / g.across * kTile),
               column = static_cast<int64_t>(inside % g.across * (kTile * kChunks));
    const auto reach = g.owners.reach(owner);
    const bool ends_early = g.is_causal && g.rows_are_queries && row + kTile < g.right.rows;
    const int64_t begin = g.is_causal && !g.rows_are_queries ? row : 0, end = ends_early ? row + kTile : g.right.rows;
    Totals<A> totals{};
    for (uint64_t sharer = 0; sharer < g.sharers.count; ++sharer) {
      const Place<T> place(g, p, reach, g.sharers.reach(sharer));
      for (int64_t first = begin; first < end; first += kTile) {
        const Results<A> weights = weights_of(shared, g, place, row, first);
        add_rows(shared, g, weights, row, g.takes_slopes ? place.right : place.right_value, first, column, totals);
      }
    }
    store<T>({p.out + reach.at[Gradient::kOut], g.out}, totals, row, column);
  }
}

// The sum of grad out along a query, in the order of the queries. Operands: grad, out.
template <class T, int V, class A = AccumulatorOf<T>>
__global__ void __launch_bounds__(kBlock)
    delta_kernel(const __grid_constant__ Lines<2> lines, A* deltas, const Input<T> grad, const Input<T> out) {
  __shared__ A shared[kBlock];
  for (uint64_t group = blockIdx.x; group < lines.groups(); group += gridDim.x) {
    const uint64_t line = group * lines.team.teams() + lines.team.team();
    const int64_t n = line < lines.walk.count ? lines.length : 0;
    const Reach<2> reach = n ? lines.walk.reach(line) : Reach<2>{};
    A sum = 0;
    for (int64_t from = 0; from < n; from += Turn<T, V>::length(lines.team)) {
      const Turn<T, V> turn(lines.team, from, n);
      Held<T, V> grads, outs;
      grads.load(turn, grad, reach.at[0], lines.stride[0]);
      outs.load(turn, out, reach.at[1], lines.stride[1]);
      turn.each([&](int k, uint32_t) { sum += static_cast<A>(grads[k]) * static_cast<A>(outs[k]); });
    }
    sum = lines.team.reduce<Add>(sum, shared);
    if (n && lines.team.member() == 0) deltas[line] = sum;
  }
}

template <class T> void launch_gradient(const Call& call, const Submission& submission, Of of) {
  static Occupancy occupancy;
  const Gradient g(call, of);
  const bool is_query = g.rows_are_queries;
  const auto in = [&](int i) { return data<const T>(call.in(i)); };
  auto* const delta = reinterpret_cast<AccumulatorOf<T>*>(call.workspace());
  T* const out = data<T>(call.out(static_cast<int>(of)));
  const Pointers<T> pointers{in(is_query ? 1 : 2),
                             in(is_query ? 2 : 1),
                             in(is_query ? 0 : 3),
                             in(is_query ? 3 : 0),
                             MaskOperand<T>(call.in(4)),
                             data<const AccumulatorOf<T>>(call.in(6)),
                             delta,
                             out};
  const auto kernel = attention_backward_kernel<T>;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, g.all, occupancy), kBlock, 0, submission.handle(), g, pointers);
  submission.launched();
}

template <class T> void attention_backward(const Call& call, const Submission& submission) {
  using A = AccumulatorOf<T>;
  const plugrad_view& grad = call.in(0);
  const Lines<2> lines({&grad, &call.in(5)}, grad.rank - 1);
  launch_lines<T>(
      submission, lines, [](auto packs) { return delta_kernel<T, packs()>; }, reinterpret_cast<A*>(call.workspace()),
      Input<T>(grad), Input<T>(call.in(5)));
  for (const Of of : {Of::query, Of::key, Of::value}) launch_gradient<T>(call, submission, of);
}

template <class T> uint64_t workspace(const Call& call) {
  return static_cast<uint64_t>(call.in(6).count) * sizeof(AccumulatorOf<T>);
}

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> rows(Types<T...>) {
  return {with_workspace<workspace<T>>(
      kernel<submit<attention_backward<T>>>(PLUGRAD_OP_ATTENTION_BACKWARD, element_dtype<T>))...};
}
constexpr auto kRows = rows(kWithHalves);

}  // namespace

Rows attention_backward_rows() { return kRows; }

}  // namespace plugrad::cuda
