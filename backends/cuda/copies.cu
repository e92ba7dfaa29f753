// Fill, copy, cast and iota.
#include <backends/cuda/copies.hpp>

#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/functions.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/walk.hpp>

namespace plugrad::cuda {
namespace {

// --- Copies between operands with different contiguous axes. They go through shared memory, a tile at a time, so memory is
// both read and written in whole lines.

constexpr uint32_t kTile = 32, kRows = kBlock / kTile;

struct Transposition {
  uint32_t down, across;              // extents of the contiguous axes of in (down) and out (across)
  uint32_t tiles_across, tiles, all;  // tiles along `across`, of one matrix, of all matrices
  int64_t in_stride, out_stride;      // in's stride along `across`, out's along `down`
  Walk<2> matrices;                   // operands: out, in
};

template <class T>
__global__ void __launch_bounds__(kBlock) transpose_kernel(const __grid_constant__ Transposition t, const T* in, T* out) {
  __shared__ T tile[kTile][kTile + 1];
  const uint32_t x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  for (uint32_t i = blockIdx.x; i < t.all; i += gridDim.x) {
    const uint32_t matrix = i / t.tiles, inside = i - matrix * t.tiles;
    const uint32_t first_across = inside % t.tiles_across * kTile, first_down = inside / t.tiles_across * kTile;
    const Reach<2> reach = t.matrices.reach(matrix);
    for (uint32_t r = y; r < kTile; r += kRows)
      if (first_down + x < t.down && first_across + r < t.across)
        tile[r][x] = in[reach.at[1] + (first_down + x) + static_cast<int64_t>(first_across + r) * t.in_stride];
    __syncthreads();
    for (uint32_t r = y; r < kTile; r += kRows)
      if (first_across + x < t.across && first_down + r < t.down)
        out[reach.at[0] + (first_across + x) + static_cast<int64_t>(first_down + r) * t.out_stride] = tile[x][r];
    __syncthreads();
  }
}

// Returns the input's contiguous axis if the output's contiguous axis differs and both are long enough; otherwise 0.
int turned_axis(const Box& box) {
  if (box.stride[0][0] != 1 || box.stride[1][0] == 1 || box.stride[1][0] == 0 || box.extent[0] < kTile / 2) return 0;
  for (int d = 1; d < box.rank; ++d)
    if (box.stride[1][d] == 1 && box.extent[d] >= kTile / 2) return d;
  return 0;
}

template <class T> void transpose(const Submission& submission, const Box& box, int axis) {
  static Occupancy occupancy;
  Transposition t;
  t.down = static_cast<uint32_t>(box.extent[axis]);
  t.across = static_cast<uint32_t>(box.extent[0]);
  t.in_stride = box.stride[1][0];
  t.out_stride = box.stride[0][axis];
  for (int d = 1; d < box.rank; ++d)
    if (d != axis) t.matrices.add(box.extent[d], {box.stride[0][d], box.stride[1][d]});
  t.matrices.close();
  t.tiles_across = (t.across + kTile - 1) / kTile;
  t.tiles = t.tiles_across * ((t.down + kTile - 1) / kTile);
  t.all = t.tiles * static_cast<uint32_t>(t.matrices.count);
  const auto kernel = transpose_kernel<T>;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, t.all, occupancy), kBlock, 0, submission.handle(), t,
                 reinterpret_cast<const T*>(box.operand[1].base), reinterpret_cast<T*>(box.operand[0].base));
  submission.launched();
}

template <class T> void copy_views(const plugrad_view* const* views, const Submission& submission) {
  Box(views, 2).cut(kSpan, [&](const Box& part) {
    if (const int axis = turned_axis(part)) transpose<T>(submission, part, axis);
    else map_box<Pure<Identity>, T, T>(submission, part, {});
  });
}

template <class T> void copy(const Call& call, const Submission& submission) { copy_views<T>(call.op().views, submission); }

// --- Iota.

template <class T> using Exact = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

// Start and step keep the host's precision: a step of 0.1, not of 0.1f.
template <class T>
__global__ void __launch_bounds__(kBlock)
    iota_kernel(const __grid_constant__ Walk<1> walk, T* out, Exact<T> start, Exact<T> step) {
  const uint64_t threads = static_cast<uint64_t>(gridDim.x) * kBlock;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * kBlock + threadIdx.x; i < walk.count; i += threads)
    out[walk.reach(i).at[0]] = static_cast<T>(Add()(start, Multiply()(static_cast<Exact<T>>(i), step)));
}

template <class T> void iota(const Call& call, const Submission& submission) {
  static Occupancy occupancy;
  const plugrad_view& out = call.out();
  Walk<1> walk;
  for (int d = out.rank - 1; d >= 0; --d) walk.add(out.shape[d], {stride_of(out, d)});
  walk.close();
  const auto kernel = iota_kernel<T>;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, (walk.count + kBlock - 1) / kBlock, occupancy), kBlock, 0,
                 submission.handle(), walk, data<T>(out), immediate<Exact<T>>(call.in(0)), immediate<Exact<T>>(call.in(1)));
  submission.launched();
}

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> fills(Types<T...>) {
  return {kernel<submit<map<Pure<Identity>, Bits<T>, Bits<T>>>>(PLUGRAD_OP_FILL, element_dtype<T>)...};
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> copies(Types<T...>) {
  return {kernel<submit<copy<Bits<T>>>>(PLUGRAD_OP_COPY, element_dtype<T>)...};
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> iotas(Types<T...>) {
  return {kernel<submit<iota<T>>>(PLUGRAD_OP_IOTA, element_dtype<T>)...};
}

struct CastMaker {
  template <class To, class From> static constexpr KernelRow row() {
    return kernel<submit<map<Pure<Conversion<To>>, To, From>>>(PLUGRAD_OP_CAST, {element_dtype<To>, element_dtype<From>});
  }
};

constexpr auto kRowsOfCopies = join(fills(kStored), copies(kStored), conversion_rows<CastMaker>(), iotas(kNumbers));

}  // namespace

void copy_floating(const plugrad_view& out, const plugrad_view& in, const Submission& submission) {
  const plugrad_view* views[] = {&out, &in};
  switch (element_size(out.dtype)) {
    case 2: return copy_views<uint16_t>(views, submission);
    case 4: return copy_views<uint32_t>(views, submission);
    default: return copy_views<uint64_t>(views, submission);
  }
}

Rows copy_rows() { return kRowsOfCopies; }

}  // namespace plugrad::cuda
