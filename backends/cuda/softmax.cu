// Log-softmax along an axis, and its gradient. A team of threads computes a line, and reads it twice if it does not fit into
// the team's registers.
#include <backends/cuda/softmax.hpp>

#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

// Operands: out, x.
template <class T, int V, class A = AccumulatorOf<T>>
__global__ void __launch_bounds__(kBlock)
    log_softmax_kernel(const __grid_constant__ Lines<2> lines, T* out, const Input<T> x) {
  __shared__ Exponentials<A> shared[kBlock];
  const int64_t step = Turn<T, V>::length(lines.team);
  for (uint64_t group = blockIdx.x; group < lines.groups(); group += gridDim.x) {
    const uint64_t line = group * lines.team.teams() + lines.team.team();
    const int64_t n = line < lines.walk.count ? lines.length : 0;
    const Reach<2> reach = n ? lines.walk.reach(line) : Reach<2>{};
    Held<T, V> held;
    const Exponentials<A> e = exponentials(lines.team, x, reach.at[1], lines.stride[1], n, held, shared);
    const A rest = std::log(e.sum);
    for (int64_t from = 0; from < n; from += step) {
      const Turn<T, V> turn(lines.team, from, n);
      if (n > step) held.load(turn, x, reach.at[1], lines.stride[1]);
      turn.each([&](int k, uint32_t) { held[k] = static_cast<T>(static_cast<A>(held[k]) - e.largest - rest); });
      held.store(turn, out + reach.at[0], lines.stride[0]);
    }
  }
}

// Operands: out, grad, y.
template <class T, int V, class A = AccumulatorOf<T>>
__global__ void __launch_bounds__(kBlock)
    log_softmax_backward_kernel(const __grid_constant__ Lines<3> lines, T* out, const Input<T> grad, const Input<T> y) {
  __shared__ A shared[kBlock];
  const int64_t step = Turn<T, V>::length(lines.team);
  for (uint64_t group = blockIdx.x; group < lines.groups(); group += gridDim.x) {
    const uint64_t line = group * lines.team.teams() + lines.team.team();
    const int64_t n = line < lines.walk.count ? lines.length : 0;
    const Reach<3> reach = n ? lines.walk.reach(line) : Reach<3>{};
    Held<T, V> grads, ys;
    A sum = 0;
    for (int64_t from = 0; from < n; from += step) {
      const Turn<T, V> turn(lines.team, from, n);
      grads.load(turn, grad, reach.at[1], lines.stride[1]);
      if (n <= step) ys.load(turn, y, reach.at[2], lines.stride[2]);
      turn.each([&](int k, uint32_t) { sum += static_cast<A>(grads[k]); });
    }
    sum = lines.team.reduce<Add>(sum, shared);
    for (int64_t from = 0; from < n; from += step) {
      const Turn<T, V> turn(lines.team, from, n);
      if (n > step) {
        grads.load(turn, grad, reach.at[1], lines.stride[1]);
        ys.load(turn, y, reach.at[2], lines.stride[2]);
      }
      turn.each([&](int k, uint32_t) {
        grads[k] = static_cast<T>(static_cast<A>(grads[k]) - std::exp(static_cast<A>(ys[k])) * sum);
      });
      grads.store(turn, out + reach.at[0], lines.stride[0]);
    }
  }
}

template <class T> void log_softmax(const Call& call, const Submission& submission) {
  const Lines<2> lines({&call.out(), &call.in(0)}, call.attributes<plugrad_axis>().axis);
  launch_lines<T>(
      submission, lines, [](auto packs) { return log_softmax_kernel<T, packs()>; }, data<T>(call.out()),
      Input<T>(call.in(0)));
}

template <class T> void log_softmax_backward(const Call& call, const Submission& submission) {
  const Lines<3> lines({&call.out(), &call.in(0), &call.in(1)}, call.attributes<plugrad_axis>().axis);
  launch_lines<T>(
      submission, lines, [](auto packs) { return log_softmax_backward_kernel<T, packs()>; }, data<T>(call.out()),
      Input<T>(call.in(0)), Input<T>(call.in(1)));
}

template <class... T> constexpr auto rows(Types<T...>) {
  return join(std::array{kernel<submit<log_softmax<T>>>(PLUGRAD_OP_LOG_SOFTMAX, element_dtype<T>, kMemoryOnly)...},
              std::array{kernel<submit<log_softmax_backward<T>>>(PLUGRAD_OP_LOG_SOFTMAX_BACKWARD, element_dtype<T>)...});
}
constexpr auto kRows = rows(kComputable);

}  // namespace

Rows softmax_rows() { return kRows; }

}  // namespace plugrad::cuda
