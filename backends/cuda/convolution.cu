// Convolutions and their gradients. A block computes a tile of results as a product of matrices; it reads the right operand
// through the windows, without a copy of them in memory.
#include <backends/cuda/accumulator.hpp>
#include <backends/cuda/convolution.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/tile.hpp>

namespace plugrad::cuda {
namespace {

// One term of the sums of a block, and its places in the operands.
struct Term {
  bool is_there;
  int32_t at[kSpace];
  int64_t left, right;

  Term() = default;
  __device__ Term(const Contraction& c, int64_t k, int64_t end) : is_there(k < end) {
    if (!is_there) return;
    const Parts parts = c.k_index.parts(k);
    left = parts.outer * c.left_outer + parts.inner;
    right = parts.outer * c.right_k;
    for (int d = 0; d < kSpace; ++d) at[d] = parts.at[d] * c.step_k[d];
  }
};

// A thread's column of the right operand.
struct Column {
  bool is_there;
  int32_t at[kSpace];
  int64_t first;

  __device__ Column(const Contraction& c, int64_t j) : is_there(j < c.n) {
    if (!is_there) return;
    const Parts parts = c.j_index.parts(j);
    first = parts.outer * c.right_j;
    for (int d = 0; d < kSpace; ++d) at[d] = parts.at[d] * c.step_j[d] + c.shift[d];
  }
  // The element of this column and a term, or 0 outside of the extents.
  template <class T> __device__ __forceinline__ T element(const Contraction& c, const Term& term, const T* right) const {
    int64_t place = 0;
    bool is_inside = is_there && term.is_there;
#pragma unroll
    for (int d = 0; d < kSpace; ++d) {
      int32_t at_d = is_inside ? at[d] + term.at[d] : -1;
      if (c.divisor[d].divisor != 1 && at_d >= 0) {
        const auto quotient = static_cast<int32_t>(c.divisor[d].quotient(static_cast<uint32_t>(at_d)));
        at_d = quotient * static_cast<int32_t>(c.divisor[d].divisor) == at_d ? quotient : -1;
      }
      is_inside = is_inside && at_d >= 0 && at_d < c.extent[d];
      place = place * c.extent[d] + at_d;
    }
    return is_inside ? right[first + term.right + place] : T(0);
  }
};

// One block's part of the work.
struct Task {
  uint64_t group, segment;
  int64_t row, column, begin, end;

  __device__ Task(const Contraction& c, uint64_t task) {
    const uint64_t tile = task / c.segments, across = (static_cast<uint64_t>(c.n) + kTile - 1) / kTile;
    segment = task - tile * c.segments;
    group = tile / c.tiles;
    const uint64_t inside = tile - group * c.tiles, down = inside / across;
    row = static_cast<int64_t>(down * kTile);
    column = static_cast<int64_t>((inside - down * across) * kTile);
    begin = static_cast<int64_t>(segment) * c.segment;
    end = begin + c.segment < c.k ? begin + c.segment : c.k;
  }
};

// Fills the tiles with the terms of `terms`: kTile rows of left, and this thread's column of right.
template <class T, class A>
__device__ __forceinline__ void load(const Contraction& c, const Task& task, const Column& column, const Term* terms,
                                     const T* left, const T* right, Tile<A>& a, Tile<A>& b) {
  constexpr int kStep = kBlock / kDepth, kDeep = kBlock / kTile;
  const int me = static_cast<int>(threadIdx.x);
  const Term& term = terms[me % kDepth];
#pragma unroll
  for (int place = me / kDepth; place < kTile; place += kStep) {
    const bool is_there = term.is_there && task.row + place < c.m;
    a[me % kDepth][place] = is_there ? widened(left[(task.row + place) * c.left_row + term.left]) : A(0);
  }
#pragma unroll
  for (int depth = me / kTile; depth < kDepth; depth += kDeep)
    b[depth][me % kTile] = widened(column.element(c, terms[depth], right));
}

template <class T, class A>
__device__ __forceinline__ Results<A> sum_of(const Contraction& c, const Task& task, const T* left, const T* right) {
  __shared__ Tile<A> a, b;
  __shared__ Term terms[kDepth];
  const Column column(c, task.column + static_cast<int64_t>(threadIdx.x) % kTile);
  const bool is_used = task.row + first_row() < c.m && task.column + first_column() < c.n;
  Results<A> sums{}, totals{};
  int filled = 0;
  for (int64_t k = task.begin; k < task.end; k += kDepth) {
    if (threadIdx.x < kDepth) terms[threadIdx.x] = Term(c, k + static_cast<int64_t>(threadIdx.x), task.end);
    __syncthreads();
    load(c, task, column, terms, left, right, a, b);
    __syncthreads();
    if (is_used) add_products(a, b, sums);
    if (++filled % kFlush == 0) flush(sums, totals);
  }
  __syncthreads();
  flush(sums, totals);
  return totals;
}

// With one segment, the sums are the results. With several segments, the sums go to the partials.
template <class T, class A = AccumulatorOf<T>>
__global__ void __launch_bounds__(kBlock)
    convolution_kernel(const __grid_constant__ Contraction c, const T* left, const T* right, const T* bias, T* out,
                       A* partials, int64_t count) {
  for (uint64_t i = blockIdx.x; i < c.all; i += gridDim.x) {
    const Task task(c, i);
    const auto group = static_cast<int64_t>(task.group);
    const Results<A> sums = sum_of<T, A>(c, task, left + group * c.left_group, right + group * c.right_group);
#pragma unroll
    for (int x = 0; x < kEach; ++x) {
      const int64_t column = task.column + first_column() + x;
      if (column >= c.n) continue;
      const Parts parts = c.j_index.parts(column);
#pragma unroll
      for (int y = 0; y < kEach; ++y) {
        const int64_t row = task.row + first_row() + y;
        if (row >= c.m) continue;
        const int64_t at = group * c.out_group + row * c.out_row + parts.outer * c.out_outer + parts.inner;
        if (partials) partials[static_cast<int64_t>(task.segment) * count + at] = sums.at[y][x];
        else out[at] = static_cast<T>(bias ? sums.at[y][x] + static_cast<A>(bias[group * c.m + row]) : sums.at[y][x]);
      }
    }
  }
}

// Adds the segments' sums in their order.
template <class T, class A = AccumulatorOf<T>>
__global__ void __launch_bounds__(kBlock) sum_segments_kernel(const A* partials, uint64_t segments, const T* bias,
                                                              int64_t plane, int64_t channels, T* out, int64_t count) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kBlock;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x; i < count; i += threads) {
    A sum = 0;
    for (uint64_t s = 0; s < segments; ++s) sum += partials[static_cast<int64_t>(s) * count + i];
    out[i] = static_cast<T>(bias ? sum + static_cast<A>(bias[i / plane % channels]) : sum);
  }
}

template <class T> void convolution(const Call& call, const Submission& submission) {
  using A = AccumulatorOf<T>;
  static Occupancy of_products, of_sums;
  const Contraction c(call);
  const plugrad_view& out = call.out();
  const bool weight_is_left = call.op().opcode != PLUGRAD_OP_CONVOLUTION_WEIGHT_GRAD;
  const T* const left = data<const T>(call.in(weight_is_left ? 1 : 0));
  const T* const right = data<const T>(call.in(weight_is_left ? 0 : 1));
  const T* const bias = call.op().inputs == 3 ? data<const T>(call.in(2)) : nullptr;
  A* const partials = c.segments > 1 ? reinterpret_cast<A*>(call.workspace()) : nullptr;
  const auto kernel = convolution_kernel<T>;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, c.all, of_products), kBlock, 0, submission.handle(), c, left, right, bias,
                 data<T>(out), partials, out.count);
  submission.launched();
  if (!partials) return;
  const auto sum = sum_segments_kernel<T>;
  PLUGRAD_LAUNCH(sum, submission.blocks(sum, (static_cast<uint64_t>(out.count) + kBlock - 1) / kBlock, of_sums), kBlock, 0,
                 submission.handle(), partials, c.segments, bias, c.out_row, out.shape[1], data<T>(out), out.count);
  submission.launched();
}

// There is no kernel for a window with too long a reach; run reports the error.
template <class T> uint64_t workspace(const Call& call) {
  try {
    return Contraction(call).partials(call.out()) * sizeof(AccumulatorOf<T>);
  } catch (const BackendError&) {
    return 0;
  }
}

template <class... T> constexpr auto rows(uint32_t opcode, Types<T...>) {
  constexpr uint16_t kDense = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;
  return std::array{with_workspace<workspace<T>>(kernel<submit<convolution<T>>>(opcode, element_dtype<T>, kDense))...};
}
constexpr auto kRows =
    join(rows(PLUGRAD_OP_CONVOLUTION, kWithHalves), rows(PLUGRAD_OP_CONVOLUTION_BIAS, kWithHalves),
         rows(PLUGRAD_OP_CONVOLUTION_INPUT_GRAD, kWithHalves), rows(PLUGRAD_OP_CONVOLUTION_WEIGHT_GRAD, kWithHalves));

}  // namespace

Rows convolution_rows() { return kRows; }

}  // namespace plugrad::cuda
