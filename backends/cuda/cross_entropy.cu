// Cross-entropy of rows of logits, and its gradient. A team of threads computes a row.
#include <backends/cuda/rows.hpp>
#include <backends/cuda/softmax.hpp>

namespace plugrad::cuda {
namespace {

// Operands: x, loss, lse, target.
template <class T, int V, class A = AccumulatorOf<T>>
__global__ void __launch_bounds__(kBlock)
    cross_entropy_kernel(const __grid_constant__ Lines<4> lines, const Input<T> x, A* loss, A* lse,
                         const Input<int64_t> targets, const IndexReport report) {
  __shared__ Exponentials<A> shared[kBlock];
  for (uint64_t group = blockIdx.x; group < lines.groups(); group += gridDim.x) {
    const uint64_t line = group * lines.team.teams() + lines.team.team();
    const int64_t n = line < lines.walk.count ? lines.length : 0;
    const Reach<4> reach = n ? lines.walk.reach(line) : Reach<4>{};
    const int64_t target = n ? targets.at(reach.at[3]) : 0;  // before the row, so that both loads overlap
    Held<T, V> held;
    const Exponentials<A> e = exponentials(lines.team, x, reach.at[0], lines.stride[0], n, held, shared);
    if (!n || lines.team.member() != 0) continue;
    const A rest = std::log(e.sum);
    lse[reach.at[2]] = e.largest + rest;
    if (target < 0 || target >= n) report();
    else loss[reach.at[1]] = e.largest - static_cast<A>(x.at(reach.at[0] + target * lines.stride[0])) + rest;
  }
}

// Operands: out, x, grad, lse, target. Two blocks must fit a multiprocessor: left alone, the compiler spills doubles to fit
// three.
template <class T, int V, class A = AccumulatorOf<T>>
__global__ void __launch_bounds__(kBlock, 2)
    cross_entropy_backward_kernel(const __grid_constant__ Lines<5> lines, T* out, const Input<T> x, const Input<A> grads,
                                  const Input<A> lses, const Input<int64_t> targets, const IndexReport report) {
  for (uint64_t group = blockIdx.x; group < lines.groups(); group += gridDim.x) {
    const uint64_t line = group * lines.team.teams() + lines.team.team();
    if (line >= lines.walk.count) continue;
    const int64_t n = lines.length;
    const Reach<5> reach = lines.walk.reach(line);
    const int64_t target = targets.at(reach.at[4]);
    const A grad = grads.at(reach.at[2]), lse = lses.at(reach.at[3]);
    if ((target < 0 || target >= n) && lines.team.member() == 0) report();
    for (int64_t from = 0; from < n; from += Turn<T, V>::length(lines.team)) {
      const Turn<T, V> turn(lines.team, from, n);
      Held<T, V> held;
      held.load(turn, x, reach.at[1], lines.stride[1]);
      const bool has_target = target >= from && target - from < turn.end;
      const uint32_t target_place = has_target ? static_cast<uint32_t>(target - from) : UINT32_MAX;
      turn.each([&](int k, uint32_t place) {
        const A probability = std::exp(static_cast<A>(held[k]) - lse);
        held[k] = static_cast<T>(grad * (probability - (place == target_place ? A(1) : A(0))));
      });
      held.store(turn, out + reach.at[0], lines.stride[0]);
    }
  }
}

template <class T> void forward(const Call& call, const Submission& submission) {
  using A = AccumulatorOf<T>;
  const plugrad_view &x = call.in(0), &target = call.in(1);
  const Lines<4> lines({&x, &call.out(0), &call.out(1), &target}, 1);
  launch_lines<T>(
      submission, lines, [](auto packs) { return cross_entropy_kernel<T, packs()>; }, Input<T>(x), data<A>(call.out(0)),
      data<A>(call.out(1)), Input<int64_t>(target), submission.index_report());
}

template <class T> void backward(const Call& call, const Submission& submission) {
  using A = AccumulatorOf<T>;
  const plugrad_view &grad = call.in(0), &x = call.in(1), &target = call.in(2), &lse = call.in(3);
  const Lines<5> lines({&call.out(), &x, &grad, &lse, &target}, 1);
  launch_lines<T>(
      submission, lines, [](auto packs) { return cross_entropy_backward_kernel<T, packs()>; }, data<T>(call.out()),
      Input<T>(x), Input<A>(grad), Input<A>(lse), Input<int64_t>(target), submission.index_report());
}

template <class... T> constexpr auto rows(Types<T...>) {
  return join(std::array{kernel<submit<forward<T>>>(PLUGRAD_OP_CROSS_ENTROPY, element_dtype<T>, kMemoryOnly)...},
              std::array{kernel<submit<backward<T>>>(PLUGRAD_OP_CROSS_ENTROPY_BACKWARD, element_dtype<T>)...});
}
constexpr auto kRows = rows(kWithHalves);

}  // namespace

Rows cross_entropy_rows() { return kRows; }

}  // namespace plugrad::cuda
