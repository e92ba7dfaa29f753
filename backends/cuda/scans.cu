// Cumulative sums along an axis. A team of threads sums a line in turns: each member takes a few adjacent elements, and the
// members' sums are scanned in shared memory. If there are too few lines to fill the device, they are cut into segments: one
// kernel sums the segments, and the next kernel starts each segment with the sum of the segments before it.
#include <backends/cuda/accumulator.hpp>
#include <backends/cuda/functions.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/submission.hpp>
#include <backends/cuda/team.hpp>
#include <backends/cuda/walk.hpp>

namespace plugrad::cuda {
namespace {

constexpr int kEach = 8;  // a thread's adjacent elements in a turn

struct Scan {
  Walk<2> walk;  // the first elements of the lines, in the order of summation: of out, x
  int64_t length, out_stride, x_stride;
  Team team;
  int64_t segment;
  uint64_t segments, tasks;

  explicit Scan(const Call& call);
  __host__ __device__ uint64_t groups() const { return (walk.count + team.teams() - 1) / team.teams(); }
  uint64_t sums() const { return segments > 1 ? tasks * team.teams() : 0; }  // of all segments
};

int64_t stride_along(const plugrad_view& view, int axis) { return is_immediate(view) ? 0 : stride_of(view, axis); }

Scan::Scan(const Call& call) {
  const plugrad_view &out = call.out(), &x = call.in(0);
  const int axis = call.attributes<plugrad_scan>().axis;
  length = out.shape[axis];
  out_stride = stride_along(out, axis);
  x_stride = stride_along(x, axis);
  for (int d = out.rank - 1; d >= 0; --d)
    if (d != axis) walk.add(out.shape[d], {stride_along(out, d), stride_along(x, d)});
  walk.close();
  const bool is_contiguous = walk.rank == 0 || distance(x_stride) < distance(walk.innermost_stride(1));
  team = choose_team(walk.count, static_cast<uint64_t>(length), is_contiguous, kEach);
  constexpr uint64_t kBlocksEach = 4, kLeastTurns = 2;
  const int64_t turn = static_cast<int64_t>(team.size()) * kEach;
  const uint64_t wanted = kBlocksEach * static_cast<uint64_t>(call.backend<CudaBackend>().multiprocessors()) / groups();
  const uint64_t most = static_cast<uint64_t>(length / turn) / kLeastTurns;
  const auto cuts = static_cast<int64_t>(std::max<uint64_t>(1, std::min(wanted, most)));
  segment = ((length + cuts - 1) / cuts + turn - 1) / turn * turn;
  segments = static_cast<uint64_t>((length + segment - 1) / segment);
  tasks = groups() * segments;
}

// A team's part of a line.
template <class T> struct Part {
  const Scan& scan;
  uint64_t line, number;  // number: of the segment
  bool is_there;
  Reach<2> reach;
  int64_t begin, end;

  __device__ Part(const Scan& s, uint64_t task)
      : scan(s), line(task / s.segments * s.team.teams() + s.team.team()), number(task % s.segments),
        is_there(line < s.walk.count), reach(is_there ? s.walk.reach(line) : Reach<2>{}),
        begin(static_cast<int64_t>(number) * s.segment), end(begin + s.segment < s.length ? begin + s.segment : s.length) {}

  // The place of a segment's sum among the sums of all segments.
  __device__ uint64_t place(uint64_t segment) const { return line * scan.segments + segment; }
};

template <class T> struct Some {
  T at[kEach];
};

// Reads kEach elements from `first` on, 0 beyond the end of the part, and sums them up one by one.
template <class T, class X> __device__ __forceinline__ Some<T> summed(const Part<T>& part, const X& x, int64_t first) {
  Some<T> some;
#pragma unroll
  for (int k = 0; k < kEach; ++k)
    some.at[k] = part.is_there && first + k < part.end ? x.at(part.reach.at[1] + (first + k) * part.scan.x_stride) : T(0);
#pragma unroll
  for (int k = 1; k < kEach; ++k) some.at[k] = Add()(some.at[k - 1], some.at[k]);
  return some;
}

template <class T>
__global__ void __launch_bounds__(kBlock) scan_sums_kernel(const __grid_constant__ Scan scan, const Input<T> x, T* sums) {
  __shared__ T shared[kBlock];
  const int64_t turn = static_cast<int64_t>(scan.team.size()) * kEach;
  for (uint64_t task = blockIdx.x; task < scan.tasks; task += gridDim.x) {
    const Part<T> part(scan, task);
    T sum = 0;
    for (int64_t first = part.begin; first < part.end; first += turn)
      sum = Add()(sum, summed(part, x, first + static_cast<int64_t>(scan.team.member()) * kEach).at[kEach - 1]);
    sum = scan.team.reduce<Add>(sum, shared);
    if (part.is_there && scan.team.member() == 0) sums[part.place(part.number)] = sum;
  }
}

// Returns the sum of the segments before this one to all members.
template <class T> __device__ __forceinline__ T sum_before(const Part<T>& part, const T* sums, T* shared) {
  T sum = 0;
  for (uint64_t s = part.scan.team.member(); part.is_there && s < part.number; s += part.scan.team.size())
    sum = Add()(sum, sums[part.place(s)]);
  return part.scan.team.template reduce<Add>(sum, shared);
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    scan_kernel(const __grid_constant__ Scan scan, T* out, const Input<T> x, const T* sums) {
  __shared__ T shared[kBlock];
  const int64_t turn = static_cast<int64_t>(scan.team.size()) * kEach;
  for (uint64_t task = blockIdx.x; task < scan.tasks; task += gridDim.x) {
    const Part<T> part(scan, task);
    T carry = scan.segments > 1 ? sum_before(part, sums, shared) : T(0);
    for (int64_t from = part.begin; from < part.end; from += turn) {
      const int64_t first = from + static_cast<int64_t>(scan.team.member()) * kEach;
      const Some<T> some = summed(part, x, first);
      const Prefix<T> prefix = scan.team.scan<Add>(some.at[kEach - 1], shared);
      const T before = Add()(carry, prefix.before);
#pragma unroll
      for (int k = 0; k < kEach; ++k)
        if (part.is_there && first + k < part.end)
          out[part.reach.at[0] + (first + k) * scan.out_stride] = Add()(before, some.at[k]);
      carry = Add()(carry, prefix.all);
    }
  }
}

// An input from its line's last element on, for sums in reverse.
template <class T> T* turned(T* base, int64_t length, int64_t& stride) {
  if (!base) return base;
  T* const last = base + (length - 1) * stride;
  stride = -stride;
  return last;
}

template <class T> void cumsum(const Call& call, const Submission& submission) {
  static Occupancy of_sums, of_scan;
  Scan scan(call);
  Input<T> x(call.in(0));
  T* out = data<T>(call.out());
  if (call.attributes<plugrad_scan>().reverse) {
    x.base = turned(x.base, scan.length, scan.x_stride);
    out = turned(out, scan.length, scan.out_stride);
  }
  T* const sums = scan.segments > 1 ? reinterpret_cast<T*>(call.workspace()) : nullptr;
  if (sums) {
    const auto kernel = scan_sums_kernel<T>;
    PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, scan.tasks, of_sums), kBlock, 0, submission.handle(), scan, x, sums);
    submission.launched();
  }
  const auto kernel = scan_kernel<T>;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, scan.tasks, of_scan), kBlock, 0, submission.handle(), scan, out, x, sums);
  submission.launched();
}

template <class T> uint64_t workspace(const Call& call) { return Scan(call).sums() * sizeof(T); }

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> rows(Types<T...>) {
  return {with_workspace<workspace<T>>(kernel<submit<cumsum<T>>>(PLUGRAD_OP_CUMSUM, element_dtype<T>))...};
}
constexpr auto kRows = rows(Types<float, double, int64_t>{});

}  // namespace

Rows cumsum_rows() { return kRows; }

}  // namespace plugrad::cuda
