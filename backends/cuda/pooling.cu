// The largest elements of windows, and their positions. A thread computes one window.
#include <backends/cuda/rows.hpp>
#include <backends/cuda/submission.hpp>

#include <plugrad/sdk/divider.hpp>

namespace plugrad::cuda {
namespace {

struct PoolAxis {
  int64_t extent = 1, count = 1, size = 1, stride = 1, padding = 0, dilation = 1;  // extent: of x; count: of windows
};

// The elements of a window within x, along an axis.
struct Span {
  int64_t first, end, step;

  __device__ __forceinline__ Span(const PoolAxis& axis, int64_t window) : step(axis.dilation) {
    const int64_t start = window * axis.stride - axis.padding;
    first = start < 0 ? start + (-start + step - 1) / step * step : start;
    const int64_t past = start + axis.size * step;
    end = past < axis.extent ? past : axis.extent;
  }
};

struct Pool {
  PoolAxis axes[3];
  WideDivider columns, lines, slices;  // by the windows along the axes
  int64_t count, plane;                // windows in all, and elements of a plane of x

  explicit Pool(const Call& call) : count(call.out().count) {
    const plugrad_view &x = call.in(0), &out = call.out();
    const auto& a = call.attributes<plugrad_pool>();
    for (int i = 0; i < x.rank - 2; ++i)
      axes[5 - x.rank + i] = {x.shape[i + 2], out.shape[i + 2], a.size[i], a.stride[i], a.padding[i], a.dilation[i]};
    plane = axes[0].extent * axes[1].extent * axes[2].extent;
    slices = WideDivider(static_cast<uint64_t>(axes[0].count));
    lines = WideDivider(static_cast<uint64_t>(axes[1].count));
    columns = WideDivider(static_cast<uint64_t>(axes[2].count));
  }
};

template <class T>
__global__ void __launch_bounds__(kBlock)
    max_pool_kernel(const __grid_constant__ Pool pool, const T* x, T* values, int64_t* indices) {
  const int64_t all = static_cast<int64_t>(gridDim.x) * kBlock;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x; i < pool.count; i += all) {
    const auto line = static_cast<int64_t>(pool.columns.quotient(static_cast<uint64_t>(i)));
    const auto slice = static_cast<int64_t>(pool.lines.quotient(static_cast<uint64_t>(line)));
    const auto image = static_cast<int64_t>(pool.slices.quotient(static_cast<uint64_t>(slice)));
    const Span d(pool.axes[0], slice - image * pool.axes[0].count), h(pool.axes[1], line - slice * pool.axes[1].count);
    const Span w(pool.axes[2], i - line * pool.axes[2].count);
    const T* const plane = x + image * pool.plane;
    int64_t best = (d.first * pool.axes[1].extent + h.first) * pool.axes[2].extent + w.first;
    T largest = plane[best];
    for (int64_t a = d.first; a < d.end; a += d.step)
      for (int64_t b = h.first; b < h.end; b += h.step)
        for (int64_t c = w.first; c < w.end; c += w.step) {
          const int64_t at = (a * pool.axes[1].extent + b) * pool.axes[2].extent + c;
          const T value = plane[at];
          if (value <= largest || largest != largest) continue;
          largest = value;
          best = at;
        }
    values[i] = largest;
    indices[i] = best;
  }
}

template <class T> void max_pool(const Call& call, const Submission& submission) {
  static Occupancy occupancy;
  const Pool pool(call);
  const auto kernel = max_pool_kernel<T>;
  const uint64_t tiles = (static_cast<uint64_t>(pool.count) + kBlock - 1) / kBlock;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, tiles, occupancy), kBlock, 0, submission.handle(), pool,
                 data<T>(call.in(0)), data<T>(call.out(0)), data<int64_t>(call.out(1)));
  submission.launched();
}

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> rows(Types<T...>) {
  constexpr uint16_t kDense = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;
  return {kernel<submit<max_pool<T>>>(PLUGRAD_OP_MAX_POOL, element_dtype<T>, kDense)...};
}
constexpr auto kRows = rows(kWithHalves);

}  // namespace

Rows pooling_rows() { return kRows; }

}  // namespace plugrad::cuda
