// Attention. A block computes a tile of queries: it takes the keys tile by tile, keeps the largest score and the sum of each
// query so far, and scales what it has when a larger score appears (Dao and others, "FlashAttention", 2022).
#include <backends/cuda/attention.hpp>
#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

struct Attention {
  Walk<6> batch;  // of query, key, value, mask, out, lse
  Extents query, key, value, mask, out, lse;
  double scale;
  bool is_causal;
  uint64_t across, of_one, all;  // blocks of columns of out; tasks of one matrix and in all

  explicit Attention(const Call& call)
      : query(call.in(0)), key(call.in(1)), value(call.in(2)), mask(call.in(3)), out(call.out(0)), lse(call.out(1)) {
    const plugrad_view* const views[] = {&call.in(0), &call.in(1), &call.in(2), &call.in(3), &call.out(0), &call.out(1)};
    for (int d = views[0]->rank - 3; d >= 0; --d) {
      int64_t strides[6];
      for (int k = 0; k < 6; ++k) strides[k] = stride_of(*views[k], d);
      batch.add(views[0]->shape[d], strides);
    }
    batch.close();
    const auto& attributes = call.attributes<plugrad_attention>();
    scale = attributes.scale;
    is_causal = attributes.causal != 0;
    across = chunks_of(value.columns);
    of_one = across * tiles_of(query.rows);
    all = of_one * batch.count;
  }
};

template <class T> struct Operands {
  const T *query, *key, *value, *mask;
  T *out, *lse;
};

// What a thread knows of its queries; the threads of a query agree on `largest` and `sum`.
template <class A> struct State {
  A largest[kEach], sum[kEach];
  Totals<A> totals;

  __device__ State() : totals{} {
    for (int i = 0; i < kEach; ++i) {
      largest[i] = kBottom<A>;
      sum[i] = 0;
    }
  }
};

// Combines the values of the kAcross threads of a query.
template <class Combine, class A> __device__ __forceinline__ A across_columns(A mine) {
#pragma unroll
  for (int lanes = 1; lanes < kAcross; lanes *= 2) mine = Combine()(mine, exchange(mine, lanes));
  return mine;
}

struct Larger {
  template <class A> __device__ A operator()(A a, A b) const { return b > a ? b : a; }
};

// Scales and masks the scores of queries from `row` and keys from `column` on.
template <class T, class A>
__device__ __forceinline__ void mask_scores(const Attention& a, const MatrixOf<const T>& mask, int64_t row, int64_t column,
                                            Results<A>& scores) {
  each_element([&](int i, int j) {
    const int64_t query = row + first_row() + i, key = column + first_column() + j;
    A& score = scores.at[i][j];
    if (query >= a.query.rows || key >= a.key.rows || (a.is_causal && key > query))
      score = kBottom<A>;
    else
      score = score * static_cast<A>(a.scale) + static_cast<A>(mask.at(query, key));
  });
}

// Turns scores into weights relative to the largest score so far. Returns in `kept` what earlier weights are scaled by.
template <class A> __device__ __forceinline__ void weigh(Results<A>& scores, State<A>& state, A (&kept)[kEach]) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    A largest = state.largest[i], sum = 0;
#pragma unroll
    for (int j = 0; j < kEach; ++j) largest = Larger()(largest, scores.at[i][j]);
    largest = across_columns<Larger>(largest);
    const A shift = largest == kBottom<A> ? A(0) : largest;
    kept[i] = std::exp(state.largest[i] - shift);
#pragma unroll
    for (int j = 0; j < kEach; ++j) sum += scores.at[i][j] = std::exp(scores.at[i][j] - shift);
    state.largest[i] = largest;
    state.sum[i] = state.sum[i] * kept[i] + across_columns<Add>(sum);
  }
}

template <class T, class A>
__device__ __forceinline__ void add_values(SharedTiles<A>& shared, const Results<A>& weights, const A (&kept)[kEach],
                                           int64_t rows, const MatrixOf<const T>& value, int64_t row, int64_t column,
                                           State<A>& state) {
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    if (column + c * kTile >= value.of.columns) continue;
    const Results<A> sums = multiply_weights(shared, weights, rows, value, row, column + c * kTile);
    each_element([&](int i, int j) {
      A& total = state.totals.chunk[c].at[i][j];
      total = total * kept[i] + sums.at[i][j];
    });
  }
}

// A query whose scores are all -inf has the sum 0.
template <class T, class A>
__device__ __forceinline__ void store(const Attention& a, const State<A>& state, int64_t row, int64_t column,
                                      const MatrixOf<T>& out, T* lse) {
#pragma unroll
  for (int c = 0; c < kChunks; ++c)
    each_element([&](int i, int j) {
      const int64_t query = row + first_row() + i, place = column + c * kTile + first_column() + j;
      if (query >= a.out.rows || place >= a.out.columns) return;
      out.at(query, place) = static_cast<T>(state.sum[i] == 0 ? A(0) : state.totals.chunk[c].at[i][j] / state.sum[i]);
    });
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    if (const int64_t query = row + first_row() + i; column == 0 && first_column() == 0 && query < a.out.rows)
      lse[query * a.lse.row] =
          static_cast<T>(state.sum[i] == 0 ? kBottom<A> : state.largest[i] + std::log(state.sum[i]));
}

template <class T>
__global__ void __launch_bounds__(kBlock, kBlocksAtOnce<AccumulatorOf<T>>)
    attention_kernel(const __grid_constant__ Attention a, const __grid_constant__ Operands<T> operands) {
  using A = AccumulatorOf<T>;
  __shared__ SharedTiles<A> shared;
  for (uint64_t task = blockIdx.x; task < a.all; task += gridDim.x) {
    const uint64_t matrix = task / a.of_one, inside = task - matrix * a.of_one;
    const auto row = static_cast<int64_t>(inside / a.across * kTile),
               column = static_cast<int64_t>(inside % a.across * (kTile * kChunks));
    const Reach<6> reach = a.batch.reach(matrix);
    const MatrixOf<const T> query{operands.query + reach.at[0], a.query}, key{operands.key + reach.at[1], a.key},
        value{operands.value + reach.at[2], a.value}, mask{operands.mask + reach.at[3], a.mask};
    State<A> state;
    const int64_t end = a.is_causal && row + kTile < a.key.rows ? row + kTile : a.key.rows;
    for (int64_t first = 0; first < end; first += kTile) {
      Results<A> weights = multiply_rows(shared, query, row, key, first);
      mask_scores(a, mask, row, first, weights);
      A kept[kEach];
      weigh(weights, state, kept);
      add_values(shared, weights, kept, a.query.rows - row, value, first, column, state);
    }
    store<T>(a, state, row, column, {operands.out + reach.at[4], a.out}, operands.lse + reach.at[5]);
  }
}

template <class T> void attention(const Call& call, const Submission& submission) {
  static Occupancy occupancy;
  const Attention a(call);
  const Operands<T> operands{data<const T>(call.in(0)), data<const T>(call.in(1)), data<const T>(call.in(2)),
                             data<const T>(call.in(3)), data<T>(call.out(0)),      data<T>(call.out(1))};
  const auto kernel = attention_kernel<T>;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, a.all, occupancy), kBlock, 0, submission.handle(), a, operands);
  submission.launched();
}

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> rows(Types<T...>) {
  return {kernel<submit<attention<T>>>(PLUGRAD_OP_ATTENTION, element_dtype<T>, kMemoryOnly)...};
}
constexpr auto kRows = rows(kFloating);

}  // namespace

Rows attention_rows() { return kRows; }

}  // namespace plugrad::cuda
