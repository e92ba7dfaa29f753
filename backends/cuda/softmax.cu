// Log-softmax along an axis, and its gradient. A team of threads has a line.
#include <backends/cuda/softmax.hpp>

#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

struct Lines {
  Walk<3> walk;  // the first elements of the lines: of out, and of the inputs
  Team team;
  int64_t length;
  int64_t stride[3];  // along the line

  Lines(const Call& call, int inputs) {
    const plugrad_view& out = call.out();
    const int axis = call.attributes<plugrad_axis>().axis;
    const plugrad_view* const views[] = {&out, &call.in(0), &call.in(inputs - 1)};
    const auto strides_along = [&](int d, int64_t(&strides)[3]) {
      for (int k = 0; k < 3; ++k) strides[k] = is_immediate(*views[k]) ? 0 : stride_of(*views[k], d);
    };
    for (int d = out.rank - 1; d >= 0; --d) {
      int64_t strides[3];
      strides_along(d, strides);
      if (d != axis) walk.add(out.shape[d], strides);
    }
    walk.close();
    strides_along(axis, stride);
    length = out.shape[axis];
    team = choose_team(walk.count, static_cast<uint64_t>(length), std::abs(stride[0]) < walk.innermost_stride(0));
  }
  uint64_t groups() const { return (walk.count + team.teams() - 1) / team.teams(); }
};

template <class T>
__global__ void __launch_bounds__(kBlock) log_softmax_kernel(const __grid_constant__ Lines lines, T* out, const T* x) {
  __shared__ Exponentials<T> shared[kBlock];
  for (uint64_t first = uint64_t(blockIdx.x) * lines.team.teams(); first < lines.walk.count;
       first += uint64_t(gridDim.x) * lines.team.teams()) {
    const uint64_t i = first + lines.team.team();
    const Reach<3> reach = i < lines.walk.count ? lines.walk.reach(i) : Reach<3>{};
    const T* line = i < lines.walk.count ? x + reach.at[1] : nullptr;
    const Exponentials<T> e = exponentials(lines.team, line, lines.length, lines.stride[1], shared);
    const T rest = std::log(e.sum);
    for (int64_t j = lines.team.member(); line && j < lines.length; j += lines.team.size())
      out[reach.at[0] + j * lines.stride[0]] = line[j * lines.stride[1]] - e.largest - rest;
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    log_softmax_backward_kernel(const __grid_constant__ Lines lines, T* out, const Input<T> grad, const Input<T> y) {
  __shared__ T shared[kBlock];
  for (uint64_t first = uint64_t(blockIdx.x) * lines.team.teams(); first < lines.walk.count;
       first += uint64_t(gridDim.x) * lines.team.teams()) {
    const uint64_t i = first + lines.team.team();
    const bool is_there = i < lines.walk.count;
    const Reach<3> reach = is_there ? lines.walk.reach(i) : Reach<3>{};
    T sum = 0;
    for (int64_t j = lines.team.member(); is_there && j < lines.length; j += lines.team.size())
      sum += grad.at(reach.at[1] + j * lines.stride[1]);
    sum = lines.team.reduce<Add>(sum, shared);
    for (int64_t j = lines.team.member(); is_there && j < lines.length; j += lines.team.size())
      out[reach.at[0] + j * lines.stride[0]] =
          grad.at(reach.at[1] + j * lines.stride[1]) - std::exp(y.at(reach.at[2] + j * lines.stride[2])) * sum;
  }
}

template <class T> void log_softmax(const Call& call, const Submission& submission) {
  static Occupancy occupancy;
  const Lines lines(call, 1);
  const auto kernel = log_softmax_kernel<T>;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, lines.groups(), occupancy), kBlock, 0, submission.handle(), lines,
                 data<T>(call.out()), data<const T>(call.in(0)));
  submission.launched();
}

template <class T> void log_softmax_backward(const Call& call, const Submission& submission) {
  static Occupancy occupancy;
  const Lines lines(call, 2);
  const auto kernel = log_softmax_backward_kernel<T>;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, lines.groups(), occupancy), kBlock, 0, submission.handle(), lines,
                 data<T>(call.out()), Input<T>(call.in(0)), Input<T>(call.in(1)));
  submission.launched();
}

template <class... T> constexpr auto rows(Types<T...>) {
  return join(std::array{kernel<submit<log_softmax<T>>>(PLUGRAD_OP_LOG_SOFTMAX, dtype_of<T>, kMemoryOnly)...},
              std::array{kernel<submit<log_softmax_backward<T>>>(PLUGRAD_OP_LOG_SOFTMAX_BACKWARD, dtype_of<T>)...});
}
constexpr auto kRows = rows(kFloating);

}  // namespace

Rows softmax_rows() { return kRows; }

}  // namespace plugrad::cuda
