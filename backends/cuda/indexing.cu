// Gather, scatter-add, and the gradient of max-pooling (a scatter-add of planes). A kernel reports an index out of range and
// skips its element.
#include <backends/cuda/accumulator.hpp>
#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/functions.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/walk.hpp>

namespace plugrad::cuda {
namespace {

struct Axis {
  int64_t extent, stride;  // of the indexed operand
};

// The view with stride 0 along an axis.
plugrad_view without_axis(plugrad_view view, int axis) {
  view.strides[axis] = 0;
  view.layout |= PLUGRAD_STRIDED;
  return view;
}

Axis axis_of(const plugrad_view& view, int axis) { return {view.shape[axis], stride_of(view, axis)}; }

template <class T> __device__ __forceinline__ T read(const Memories<3>& from, int k, int32_t offset) {
  if (from.base[k]) return reinterpret_cast<const T*>(from.base[k])[offset];
  T value;
  memcpy(&value, &from.value[k], sizeof value);
  return value;
}

// A thread processes kAhead packs at a time: it first reads all their indices, then the selected elements.
constexpr int kAhead = 4;
constexpr uint32_t kTile = kBlock * kAhead;

__device__ __forceinline__ bool is_inside(int64_t index, const Axis& axis) { return index >= 0 && index < axis.extent; }

// Calls f(u, i) for the packs i of this thread in the tile that begins at first.
template <int N, class F> __device__ __forceinline__ void each_of_tile(const Grid<N>& grid, uint32_t first, F f) {
#pragma unroll
  for (int u = 0; u < kAhead; ++u)
    if (const uint32_t i = first + u * kBlock + threadIdx.x; i < grid.count) f(u, i);
}

// A pack for moving elements, as whole words: the compiler would take bytes apart.
template <class T, int V>
using Moved = std::conditional_t<sizeof(Pack<T, V>) == 16, Pack<uint64_t, 2>,
                                 Pack<typename BitsOf<std::min<size_t>(8, sizeof(Pack<T, V>))>::type, 1>>;

// Operands: out, index, x; one index per pack.
template <class T, int V>
__global__ void __launch_bounds__(kBlock)
    gather_kernel(const __grid_constant__ Grid<3> grid, const Axis axis, const IndexReport report) {
  for (uint32_t first = blockIdx.x * kTile; first < grid.count; first += gridDim.x * kTile) {
    Offsets<3> offsets[kAhead];
    int64_t index[kAhead];
    Moved<T, V> packs[kAhead];
    each_of_tile(grid, first, [&](int u, uint32_t i) {
      offsets[u] = locate(grid.axes, i);
      index[u] = read<int64_t>(grid.memories, 1, offsets[u].at[1]);
    });
    each_of_tile(grid, first, [&](int u, uint32_t) {
      const T* line = reinterpret_cast<const T*>(grid.memories.base[2]) + offsets[u].at[2];
      if (is_inside(index[u], axis)) packs[u] = *reinterpret_cast<const Moved<T, V>*>(line + index[u] * axis.stride);
    });
    each_of_tile(grid, first, [&](int u, uint32_t) {
      T* out = reinterpret_cast<T*>(const_cast<char*>(grid.memories.base[0])) + offsets[u].at[0];
      if (is_inside(index[u], axis)) *reinterpret_cast<Moved<T, V>*>(out) = packs[u];
      else report();
    });
  }
}

// Adds atomically; returns the previous value.
template <class T> __device__ __forceinline__ T add_to(T* place, T term) {
  if constexpr (std::is_integral_v<T>) {
    using Word = std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>;
    return static_cast<T>(atomicAdd(reinterpret_cast<Word*>(place), static_cast<Word>(term)));
  } else {
    return atomicAdd(place, term);
  }
}

// On a GPU, an atomic addition of floats in global memory treats denormal operands and sums as 0. The dropped part follows
// from the addition's return value, and compare-and-swap adds it as one more term. The part is nearly always 0, so the only
// costs are the return value and a few instructions to test it.
__device__ __forceinline__ float denormal_part(float x) { return std::fabs(x) < 0x1p-126f ? x : 0; }

__device__ __forceinline__ void add_dropped(float* place, float old, float term) {
  const float sum = (old - denormal_part(old)) + (term - denormal_part(term));
  const float dropped = denormal_part(old) + denormal_part(term) + denormal_part(sum);
  if (dropped == 0) return;
  auto* const word = reinterpret_cast<unsigned*>(place);
  unsigned seen = *static_cast<volatile unsigned*>(word), expected;
  do {
    expected = seen;
    seen = atomicCAS(word, expected, __float_as_uint(__uint_as_float(expected) + dropped));
  } while (seen != expected);
}
template <class T> __device__ __forceinline__ void add_dropped(T*, T, T) {}  // other types lose nothing

// Operands: source, index, out. Adjacent threads add to adjacent elements, so a warp's additions touch few memory sectors;
// packs would spread the additions.
template <class T>
__global__ void __launch_bounds__(kBlock)
    scatter_kernel(const __grid_constant__ Grid<3> grid, const Axis axis, const IndexReport report) {
  for (uint32_t first = blockIdx.x * kTile; first < grid.count; first += gridDim.x * kTile) {
    T* places[kAhead];
    T terms[kAhead], old[kAhead];
    int64_t index[kAhead];
    each_of_tile(grid, first, [&](int u, uint32_t i) {
      const Offsets<3> offsets = locate(grid.axes, i);
      places[u] = reinterpret_cast<T*>(const_cast<char*>(grid.memories.base[2])) + offsets.at[2];
      index[u] = read<int64_t>(grid.memories, 1, offsets.at[1]);
      terms[u] = read<T>(grid.memories, 0, offsets.at[0]);
    });
    each_of_tile(grid, first, [&](int u, uint32_t) {
      if (is_inside(index[u], axis)) old[u] = add_to(places[u] += index[u] * axis.stride, terms[u]);
      else report();
    });
    each_of_tile(grid, first, [&](int u, uint32_t) {
      if (is_inside(index[u], axis)) add_dropped(places[u], old[u], terms[u]);
    });
  }
}

template <auto kernel> void launch(const Submission& submission, const Grid<3>& grid, Axis axis) {
  static Occupancy occupancy;
  const uint64_t tiles = (static_cast<uint64_t>(grid.count) + kTile - 1) / kTile;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, tiles, occupancy), kBlock, 0, submission.handle(), grid, axis,
                 submission.index_report());
  submission.launched();
}

// Whether whole rows are gathered, as in an embedding: the index is constant along the innermost axis, x and out are packed.
template <int V> bool copies_rows(const Box& box, const Axis& axis) {
  return V > 1 && box.extent[0] % V == 0 && box.stride[1][0] == 0 && box.stride[2][0] == 1 && axis.stride % V == 0 &&
         has_packs(box, V);
}

template <class T> void gather(const Call& call, const Submission& submission) {
  const int axis = call.attributes<plugrad_axis>().axis;
  const plugrad_view x = without_axis(call.in(0), axis);
  const plugrad_view* const views[] = {&call.out(), &call.in(1), &x};
  const Axis chosen = axis_of(call.in(0), axis);
  Box(views, 3).cut(kSpan, [&](const Box& part) {
    if (copies_rows<kPack<T>>(part, chosen))
      launch<gather_kernel<T, kPack<T>>>(submission, grid_of<3>(part, kPack<T>), chosen);
    else launch<gather_kernel<T, 1>>(submission, grid_of<3>(part, 1), chosen);
  });
}

// Adds `source` to elements of `out`; `index` selects the elements along an axis.
struct Scatter {
  plugrad_view out, index, source;
  int axis;

  explicit Scatter(const Call& call)
      : out(call.out()), index(call.in(0)), source(call.in(1)), axis(call.attributes<plugrad_axis>().axis) {}
  Scatter(const plugrad_view& to, const plugrad_view& at, const plugrad_view& from, int along)
      : out(to), index(at), source(from), axis(along) {}
};

template <class T> void scatter_any_order(const Scatter& scatter, const Submission& submission) {
  const plugrad_view out = without_axis(scatter.out, scatter.axis);
  const bool index_leads = is_immediate(scatter.source);  // an immediate has no shape
  const plugrad_view &first = index_leads ? scatter.index : scatter.source,
                     &second = index_leads ? scatter.source : scatter.index;
  const plugrad_view* const views[] = {&first, &second, &out};
  Box box(views, 3);
  if (index_leads) {
    std::swap(box.operand[0], box.operand[1]);
    std::swap(box.stride[0], box.stride[1]);
  }
  const Axis axis = axis_of(scatter.out, scatter.axis);
  box.cut(kSpan, [&](const Box& part) { launch<scatter_kernel<T>>(submission, grid_of<3>(part, 1), axis); });
}

// --- Scatter-add in a fixed order of additions, for deterministic results.

template <class T> struct Lines {
  Walk<3> walk;    // the first elements of the lines: of out, index, source
  int64_t length;  // of index and source
  int64_t index_stride, source_stride;
  Axis axis;
  T* out;
  Input<int64_t> index;
  Input<T> source;

  __device__ __forceinline__ int64_t place(const Reach<3>& reach, int64_t i) const {
    return index.at(reach.at[1] + i * index_stride);
  }
  __device__ __forceinline__ T term(const Reach<3>& reach, int64_t i) const {
    return source.at(reach.at[2] + i * source_stride);
  }
};

// One thread computes a line.
template <class T>
__global__ void __launch_bounds__(kBlock)
    scatter_lines_kernel(const __grid_constant__ Lines<T> lines, const IndexReport report) {
  const uint64_t threads = static_cast<uint64_t>(gridDim.x) * kBlock;
  for (uint64_t line = static_cast<uint64_t>(blockIdx.x) * kBlock + threadIdx.x; line < lines.walk.count; line += threads) {
    const Reach<3> reach = lines.walk.reach(line);
    for (int64_t first = 0; first < lines.length; first += kAhead) {
      int64_t places[kAhead];
      T terms[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        if (first + u >= lines.length) continue;
        places[u] = lines.place(reach, first + u);
        terms[u] = lines.term(reach, first + u);
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        if (first + u >= lines.length) continue;
        if (is_inside(places[u], lines.axis)) lines.out[reach.at[0] + places[u] * lines.axis.stride] += terms[u];
        else report();
      }
    }
  }
}

// A block computes a line and takes as many elements at a time as it has threads. The first thread with an index adds the
// elements of all threads with the same index.
template <class T>
__global__ void __launch_bounds__(kBlock)
    scatter_blocks_kernel(const __grid_constant__ Lines<T> lines, const IndexReport report) {
  __shared__ int64_t places[kBlock];
  __shared__ T terms[kBlock];
  const auto me = static_cast<int>(threadIdx.x);
  for (uint64_t line = blockIdx.x; line < lines.walk.count; line += gridDim.x) {
    const Reach<3> reach = lines.walk.reach(line);
    for (int64_t first = 0; first < lines.length; first += kBlock) {
      const int n = lines.length - first < kBlock ? static_cast<int>(lines.length - first) : kBlock;
      int64_t place = -1;
      if (me < n) {
        place = lines.place(reach, first + me);
        if (!is_inside(place, lines.axis)) {
          report();
          place = -1;
        }
        places[me] = place;
        terms[me] = lines.term(reach, first + me);
      }
      __syncthreads();
      bool leads = place >= 0;
      for (int j = 0; j < me && leads; ++j) leads = places[j] != place;
      if (leads) {
        T* const out = lines.out + reach.at[0] + place * lines.axis.stride;
        auto sum = static_cast<AccumulatorOf<T>>(*out);
        for (int j = me; j < n; ++j)
          if (places[j] == place) sum += static_cast<AccumulatorOf<T>>(terms[j]);
        *out = static_cast<T>(sum);
      }
      __syncthreads();
    }
  }
}

template <class T> Lines<T> lines_of(const Scatter& scatter) {
  const auto& [out, index, source, axis] = scatter;
  const plugrad_view& shape = is_immediate(source) ? index : source;
  const auto stride = [](const plugrad_view& view, int d) { return is_immediate(view) ? 0 : stride_of(view, d); };
  Lines<T> lines{{},           shape.shape[axis],     stride(index, axis), stride(source, axis), axis_of(out, axis),
                 data<T>(out), Input<int64_t>(index), Input<T>(source)};
  for (int d = out.rank - 1; d >= 0; --d)
    if (d != axis) lines.walk.add(out.shape[d], {stride_of(out, d), stride(index, d), stride(source, d)});
  lines.walk.close();
  return lines;
}

template <class T> void scatter_in_order(const Scatter& scatter, const Submission& submission) {
  static Occupancy of_lines, of_blocks;
  constexpr int64_t kShort = 64;
  constexpr uint64_t kMany = 16384;
  const Lines<T> lines = lines_of<T>(scatter);
  if (lines.length <= kShort || lines.walk.count >= kMany) {
    const auto kernel = scatter_lines_kernel<T>;
    PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, (lines.walk.count + kBlock - 1) / kBlock, of_lines), kBlock, 0,
                   submission.handle(), lines, submission.index_report());
  } else {
    const auto kernel = scatter_blocks_kernel<T>;
    PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, lines.walk.count, of_blocks), kBlock, 0, submission.handle(), lines,
                   submission.index_report());
  }
  submission.launched();
}

// Integer sums do not depend on the order.
template <class T> void scatter(const Scatter& scatter, const Submission& submission) {
  if (std::is_floating_point_v<T> && submission.is_deterministic()) scatter_in_order<T>(scatter, submission);
  else scatter_any_order<T>(scatter, submission);
}

template <class T> void scatter_add(const Call& call, const Submission& submission) {
  scatter<T>(Scatter(call), submission);
}

// --- Sums that begin at zero.

template <class T> struct Zero {
  static constexpr int kOutputs = 1;
  static constexpr bool kInOut = false;
  __device__ __forceinline__ void operator()(T& out) const { out = 0; }
};

template <class T> void clear(const plugrad_view& out, const Submission& submission) {
  const plugrad_view* const views[] = {&out};
  map_box<Zero<Bits<T>>, Bits<T>>(submission, Box(views, 1), {});
}

template <class T> void scatter_sum(const Call& call, const Submission& submission) {
  clear<T>(call.out(), submission);
  scatter<T>(Scatter(call), submission);
}

// A dense view of (a, b, ..) as a matrix of a b rows.
plugrad_view planes_of(const plugrad_view& view) {
  plugrad_view planes = view;
  planes.rank = 2;
  planes.shape[0] = view.shape[0] * view.shape[1];
  planes.shape[1] = planes.strides[0] = view.count / planes.shape[0];
  planes.strides[1] = 1;
  return planes;
}

template <class T> void max_pool_backward(const Call& call, const Submission& submission) {
  clear<T>(call.out(), submission);
  scatter<T>(Scatter(planes_of(call.out()), planes_of(call.in(1)), planes_of(call.in(0)), 1), submission);
}

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> gathers(Types<T...>) {
  return {kernel<submit<gather<Bits<T>>>>(PLUGRAD_OP_GATHER, element_dtype<T>, kMemoryOnly)...};
}
template <class... T> constexpr auto scatters(Types<T...>) {
  return join(std::array{kernel<submit<scatter_add<T>>>(PLUGRAD_OP_SCATTER_ADD, element_dtype<T>)...},
              std::array{kernel<submit<scatter_sum<T>>>(PLUGRAD_OP_SCATTER_SUM, element_dtype<T>)...});
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> pools(Types<T...>) {
  constexpr uint16_t kDense = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;
  return {kernel<submit<max_pool_backward<T>>>(PLUGRAD_OP_MAX_POOL_BACKWARD, element_dtype<T>, kDense)...};
}
constexpr auto kRows =
    join(gathers(kStored), scatters(kComputable), scatters(kIntegers), pools(kComputable));  // no 16-bit atomic addition

}  // namespace

Rows indexing_rows() { return kRows; }

}  // namespace plugrad::cuda
