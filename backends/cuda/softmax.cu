// Softmax and log-softmax along an axis, and their gradients. A team of threads computes a line, and reads it twice if it
// does not fit into the team's registers.
#include <backends/cuda/softmax.hpp>

#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

// The result for an element x of a line.
struct LogSoftmax {
  template <class A> __device__ static A rest(const Exponentials<A>& e) { return std::log(e.sum); }
  template <class A> __device__ static A of(A x, A largest, A rest) { return x - largest - rest; }
};
struct Softmax {
  template <class A> __device__ static A rest(const Exponentials<A>& e) { return 1 / e.sum; }
  template <class A> __device__ static A of(A x, A largest, A rest) { return std::exp(x - largest) * rest; }
};

// Operands: out, x.
template <class F, class T, int V, class A = AccumulatorOf<T>>
__global__ void __launch_bounds__(kBlock) softmax_kernel(const __grid_constant__ Lines<2> lines, T* out, const Input<T> x) {
  __shared__ Exponentials<A> shared[kBlock];
  const int64_t step = Turn<T, V>::length(lines.team);
  for (uint64_t group = blockIdx.x; group < lines.groups(); group += gridDim.x) {
    const uint64_t line = group * lines.team.teams() + lines.team.team();
    const int64_t n = line < lines.walk.count ? lines.length : 0;
    const Reach<2> reach = n ? lines.walk.reach(line) : Reach<2>{};
    Held<T, V> held;
    const Exponentials<A> e = exponentials(lines.team, x, reach.at[1], lines.stride[1], n, held, shared);
    const A rest = F::rest(e);
    for (int64_t from = 0; from < n; from += step) {
      const Turn<T, V> turn(lines.team, from, n);
      if (n > step) held.load(turn, x, reach.at[1], lines.stride[1]);
      turn.each([&](int k, uint32_t) { held[k] = static_cast<T>(F::of(static_cast<A>(held[k]), e.largest, rest)); });
      held.store(turn, out + reach.at[0], lines.stride[0]);
    }
  }
}

// The gradients: the terms of a line's sum, and the result for an element.
struct LogSoftmaxGradient {
  static constexpr bool kSumNeedsY = false;
  template <class A> __device__ static A term(A grad, A) { return grad; }
  template <class A> __device__ static A of(A grad, A y, A sum) { return grad - std::exp(y) * sum; }
};
struct SoftmaxGradient {
  static constexpr bool kSumNeedsY = true;
  template <class A> __device__ static A term(A grad, A y) { return grad * y; }
  template <class A> __device__ static A of(A grad, A y, A sum) { return y * (grad - sum); }
};

// Operands: out, grad, y.
template <class F, class T, int V, class A = AccumulatorOf<T>>
__global__ void __launch_bounds__(kBlock)
    softmax_backward_kernel(const __grid_constant__ Lines<3> lines, T* out, const Input<T> grad, const Input<T> y) {
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
      if (F::kSumNeedsY || n <= step) ys.load(turn, y, reach.at[2], lines.stride[2]);
      turn.each(
          [&](int k, uint32_t) { sum += F::term(static_cast<A>(grads[k]), F::kSumNeedsY ? static_cast<A>(ys[k]) : A(0)); });
    }
    sum = lines.team.reduce<Add>(sum, shared);
    for (int64_t from = 0; from < n; from += step) {
      const Turn<T, V> turn(lines.team, from, n);
      if (n > step) {
        grads.load(turn, grad, reach.at[1], lines.stride[1]);
        ys.load(turn, y, reach.at[2], lines.stride[2]);
      }
      turn.each(
          [&](int k, uint32_t) { grads[k] = static_cast<T>(F::of(static_cast<A>(grads[k]), static_cast<A>(ys[k]), sum)); });
      grads.store(turn, out + reach.at[0], lines.stride[0]);
    }
  }
}

template <class F, class T> void forward(const Call& call, const Submission& submission) {
  const Lines<2> lines({&call.out(), &call.in(0)}, call.attributes<plugrad_axis>().axis);
  launch_lines<T>(
      submission, lines, [](auto packs) { return softmax_kernel<F, T, packs()>; }, data<T>(call.out()),
      Input<T>(call.in(0)));
}

template <class F, class T> void backward(const Call& call, const Submission& submission) {
  const Lines<3> lines({&call.out(), &call.in(0), &call.in(1)}, call.attributes<plugrad_axis>().axis);
  launch_lines<T>(
      submission, lines, [](auto packs) { return softmax_backward_kernel<F, T, packs()>; }, data<T>(call.out()),
      Input<T>(call.in(0)), Input<T>(call.in(1)));
}

template <class F, class G, class... T> constexpr auto rows(uint32_t opcode, uint32_t gradient, Types<T...>) {
  return join(std::array{kernel<submit<forward<F, T>>>(opcode, element_dtype<T>, kMemoryOnly)...},
              std::array{kernel<submit<backward<G, T>>>(gradient, element_dtype<T>)...});
}
constexpr auto kRows =
    join(rows<LogSoftmax, LogSoftmaxGradient>(PLUGRAD_OP_LOG_SOFTMAX, PLUGRAD_OP_LOG_SOFTMAX_BACKWARD, kWithHalves),
         rows<Softmax, SoftmaxGradient>(PLUGRAD_OP_SOFTMAX, PLUGRAD_OP_SOFTMAX_BACKWARD, kWithHalves));

}  // namespace

Rows softmax_rows() { return kRows; }

}  // namespace plugrad::cuda
