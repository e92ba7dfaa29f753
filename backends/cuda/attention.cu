// Attention. A block computes a tile of queries: it takes the keys tile by tile, keeps the largest score and the sum of each
// query so far, and scales its totals when a larger score appears (Dao et al., "FlashAttention", 2022). If there are too few
// tiles to fill the device, for example when a single token is decoded, several blocks share the keys of a tile, and a
// second kernel joins their findings.
#include <backends/cuda/attention.hpp>
#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

constexpr int kWidth = kTile * kChunks;  // columns of a tile of out

struct Attention {
  Walk<6> batch;  // of query, key, value, mask, out, lse
  Extents query, key, value, mask, out, lse;
  double scale;
  bool is_causal;
  uint64_t across, of_one, tiles;  // blocks of columns of out; tiles of out, of a matrix and in all
  uint64_t segments;               // of the keys

  explicit Attention(const Call& call)
      : query(call.in(0)), key(call.in(1)), value(call.in(2)), out(call.out(0)), lse(call.out(1)) {
    const plugrad_view of_mask = mask_view(call.in(3), call.in(0), call.in(1));
    mask = Extents(of_mask);
    const plugrad_view* const views[] = {&call.in(0), &call.in(1), &call.in(2), &of_mask, &call.out(0), &call.out(1)};
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
    tiles = of_one * batch.count;
    constexpr uint64_t kBlocksEach = 2, kLeastTiles = 2, kMostSegments = 64;
    const auto multiprocessors = static_cast<uint64_t>(call.backend<CudaBackend>().multiprocessors());
    const uint64_t wanted = kBlocksEach * multiprocessors / std::max<uint64_t>(tiles, 1);
    segments = std::clamp<uint64_t>(std::min(wanted, tiles_of(key.rows) / kLeastTiles), 1, kMostSegments);
  }

  // Returns the first key of a segment. The segments divide the keys that a tile of queries from `row` on may attend to.
  __device__ __forceinline__ int64_t first_key(int64_t row, uint64_t segment) const {
    const int64_t end = is_causal && row + kTile < key.rows ? row + kTile : key.rows;
    return static_cast<int64_t>(segment * ((static_cast<uint64_t>(end) + kTile - 1) / kTile) / segments) * kTile;
  }
};

// A tile of out.
struct OutTile {
  uint64_t matrix;
  int64_t row, column;

  __device__ OutTile(const Attention& a, uint64_t tile) : matrix(tile / a.of_one) {
    const uint64_t inside = tile - matrix * a.of_one;
    row = static_cast<int64_t>(inside / a.across * kTile);
    column = static_cast<int64_t>(inside % a.across * kWidth);
  }
};

// The findings of a tile's segments: for each query its largest score, the sum of its weights, and its totals.
template <class A> struct Findings {
  A *largest, *sum, *totals;

  static constexpr uint64_t kEachTile = kTile * (2 + kWidth);
  Findings() = default;
  Findings(A* first, uint64_t tasks) : largest(first), sum(first + tasks * kTile), totals(first + tasks * kTile * 2) {}
};

template <class T> struct Operands {
  const T *query, *key, *value;
  MaskOperand<T> mask;
  T* out;
  AccumulatorOf<T>* lse;
};

// A thread's state of its queries; the threads of a query agree on `largest` and `sum`.
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
  for (int lanes = 1; lanes < kAcross; lanes *= 2) mine = Combine()(mine, from_lane(mine, lanes));
  return mine;
}

struct Larger {
  template <class A> __device__ A operator()(A a, A b) const { return b > a ? b : a; }
};

// Scales and masks the scores of queries from `row` and keys from `column` on.
template <class T, class A>
__device__ __forceinline__ void mask_scores(const Attention& a, const Mask<T>& mask, int64_t row, int64_t column,
                                            Results<A>& scores) {
  each_element([&](int i, int j) {
    const int64_t query = row + first_row() + i, key = column + first_column() + j;
    A& score = scores.at[i][j];
    if (query >= a.query.rows || key >= a.key.rows || (a.is_causal && key > query)) score = kBottom<A>;
    else score = score * static_cast<A>(a.scale) + mask.at(query, key);
  });
}

// Turns scores into weights relative to the largest score so far. Stores the scale of earlier weights in `kept`.
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

// If all scores of a query are -inf, its sum is 0.
template <class T, class A> __device__ __forceinline__ T mean_of(A total, A sum) {
  return static_cast<T>(sum == 0 ? A(0) : total / sum);
}
template <class A> __device__ __forceinline__ A lse_of(A largest, A sum) {
  return sum == 0 ? kBottom<A> : largest + std::log(sum);
}

template <class T, class A>
__device__ __forceinline__ void store(const Attention& a, const State<A>& state, const OutTile& tile, const MatrixOf<T>& out,
                                      A* lse) {
#pragma unroll
  for (int c = 0; c < kChunks; ++c)
    each_element([&](int i, int j) {
      const int64_t query = tile.row + first_row() + i, place = tile.column + c * kTile + first_column() + j;
      if (query >= a.out.rows || place >= a.out.columns) return;
      out.at(query, place) = mean_of<T>(state.totals.chunk[c].at[i][j], state.sum[i]);
    });
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    if (const int64_t query = tile.row + first_row() + i; tile.column == 0 && first_column() == 0 && query < a.out.rows)
      lse[query * a.lse.row] = lse_of(state.largest[i], state.sum[i]);
}

template <class A>
__device__ __forceinline__ void store_findings(const Attention& a, const State<A>& state, const OutTile& tile, uint64_t task,
                                               const Findings<A>& findings) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (tile.row + first_row() + i >= a.out.rows) continue;
    const uint64_t query = task * kTile + static_cast<uint64_t>(first_row() + i);
    A* const totals = findings.totals + query * kWidth + first_column();
#pragma unroll
    for (int c = 0; c < kChunks; ++c)
#pragma unroll
      for (int j = 0; j < kEach; ++j) totals[c * kTile + j] = state.totals.chunk[c].at[i][j];
    if (first_column()) continue;
    findings.largest[query] = state.largest[i];
    findings.sum[query] = state.sum[i];
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock, kBlocksAtOnce<AccumulatorOf<T>>)
    attention_kernel(const __grid_constant__ Attention a, const __grid_constant__ Operands<T> operands,
                     const __grid_constant__ Findings<AccumulatorOf<T>> findings) {
  using A = AccumulatorOf<T>;
  __shared__ SharedTiles<A> shared;
  for (uint64_t task = blockIdx.x; task < a.tiles * a.segments; task += gridDim.x) {
    const OutTile tile(a, task / a.segments);
    const Reach<6> reach = a.batch.reach(tile.matrix);
    const MatrixOf<const T> query{operands.query + reach.at[0], a.query}, key{operands.key + reach.at[1], a.key},
        value{operands.value + reach.at[2], a.value};
    const Mask<T> mask = operands.mask.matrix(reach.at[3], a.mask);
    State<A> state;
    const int64_t end = a.first_key(tile.row, task % a.segments + 1);
    for (int64_t first = a.first_key(tile.row, task % a.segments); first < end; first += kTile) {
      Results<A> weights = multiply_rows(shared, query, tile.row, key, first);
      mask_scores(a, mask, tile.row, first, weights);
      A kept[kEach];
      weigh(weights, state, kept);
      add_values(shared, weights, kept, a.query.rows - tile.row, value, first, tile.column, state);
    }
    if (a.segments == 1) store<T>(a, state, tile, {operands.out + reach.at[4], a.out}, operands.lse + reach.at[5]);
    else store_findings(a, state, tile, task, findings);
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    join_kernel(const __grid_constant__ Attention a, const __grid_constant__ Operands<T> operands,
                const __grid_constant__ Findings<AccumulatorOf<T>> findings) {
  using A = AccumulatorOf<T>;
  for (uint64_t task = blockIdx.x; task < a.tiles; task += gridDim.x) {
    const OutTile tile(a, task);
    const Reach<6> reach = a.batch.reach(tile.matrix);
    const MatrixOf<T> out{operands.out + reach.at[4], a.out};
    for (int i = threadIdx.x; i < kTile * kWidth; i += kBlock) {
      const int64_t query = tile.row + i / kWidth, place = tile.column + i % kWidth;
      if (query >= a.out.rows || place >= a.out.columns) continue;
      const uint64_t first = task * a.segments * kTile + static_cast<uint64_t>(i / kWidth);
      A largest = kBottom<A>, sum = 0, total = 0;
      for (uint64_t s = 0; s < a.segments; ++s) largest = Larger()(largest, findings.largest[first + s * kTile]);
      const A shift = largest == kBottom<A> ? A(0) : largest;
      for (uint64_t s = 0; s < a.segments; ++s) {
        const uint64_t at = first + s * kTile;
        const A factor = std::exp(findings.largest[at] - shift);
        sum = std::fma(factor, findings.sum[at], sum);
        total = std::fma(factor, findings.totals[at * kWidth + static_cast<uint64_t>(i % kWidth)], total);
      }
      out.at(query, place) = mean_of<T>(total, sum);
      if (place == 0) operands.lse[reach.at[5] + query * a.lse.row] = lse_of(largest, sum);
    }
  }
}

template <class T> void attention(const Call& call, const Submission& submission) {
  using A = AccumulatorOf<T>;
  static Occupancy of_attention, of_join;
  const Attention a(call);
  const Operands<T> operands{data<const T>(call.in(0)),  data<const T>(call.in(1)), data<const T>(call.in(2)),
                             MaskOperand<T>(call.in(3)), data<T>(call.out(0)),      data<A>(call.out(1))};
  const uint64_t tasks = a.tiles * a.segments;
  const Findings<A> findings = a.segments > 1 ? Findings<A>(reinterpret_cast<A*>(call.workspace()), tasks) : Findings<A>{};
  const auto kernel = attention_kernel<T>;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, tasks, of_attention), kBlock, 0, submission.handle(), a, operands,
                 findings);
  submission.launched();
  if (a.segments == 1) return;
  const auto join = join_kernel<T>;
  PLUGRAD_LAUNCH(join, submission.blocks(join, a.tiles, of_join), kBlock, 0, submission.handle(), a, operands, findings);
  submission.launched();
}

template <class T> uint64_t workspace(const Call& call) {
  using A = AccumulatorOf<T>;
  const Attention a(call);
  return a.segments > 1 ? a.tiles * a.segments * Findings<A>::kEachTile * sizeof(A) : 0;
}

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> rows(Types<T...>) {
  return {with_workspace<workspace<T>>(kernel<submit<attention<T>>>(PLUGRAD_OP_ATTENTION, element_dtype<T>))...};
}
constexpr auto kRows = rows(kWithHalves);

}  // namespace

Rows attention_rows() { return kRows; }

}  // namespace plugrad::cuda
