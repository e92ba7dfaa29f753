// Layer and RMS normalisation of rows, and their gradients. A team of threads computes a row, and reads it several times if
// the row does not fit into the team's registers.
#include <backends/cuda/channels.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/softmax.hpp>

namespace plugrad::cuda {
namespace {

// Sums over some elements of a row of x - centre, and of its square.
template <class A> struct Deviations {
  A sum, squares;
};
struct AddDeviations {
  template <class A> __device__ Deviations<A> operator()(const Deviations<A>& a, const Deviations<A>& b) const {
    return {a.sum + b.sum, a.squares + b.squares};
  }
};

// One operand of a team's row.
template <class T, int V> struct Row {
  const Team& team;
  const Input<T>& x;
  int64_t at, stride, n;
  Held<T, V> held;  // of the last turn

  // Calls f(turn) for each turn of the row, with its elements in `held`. A row of one turn is only loaded by the first call.
  template <class F> __device__ __forceinline__ void each_turn(bool is_first, F f) {
    const int64_t step = Turn<T, V>::length(team);
    for (int64_t from = 0; from < n; from += step) {
      const Turn<T, V> turn(team, from, n);
      if (is_first || n > step) held.load(turn, x, at, stride);
      f(turn);
    }
  }
};

template <class T, int V> __device__ __forceinline__ AccumulatorOf<T> sum_of(Row<T, V>& row) {
  using A = AccumulatorOf<T>;
  A all = 0;
  row.each_turn(true, [&](const Turn<T, V>& turn) {
    A some = 0;
    turn.each([&](int k, uint32_t) { some += static_cast<A>(row.held[k]); });
    all += some;
  });
  return all;
}

template <class T, int V, class A = AccumulatorOf<T>>
__device__ __forceinline__ Deviations<A> deviations_of(Row<T, V>& row, bool is_first, A centre) {
  Deviations<A> all{0, 0};
  row.each_turn(is_first, [&](const Turn<T, V>& turn) {
    Deviations<A> some{0, 0};
    turn.each([&](int k, uint32_t) {
      const A apart = static_cast<A>(row.held[k]) - centre;
      some = AddDeviations()(some, {apart, apart * apart});
    });
    all = AddDeviations()(all, some);
  });
  return all;
}

// Shared memory for the team's reductions.
template <class A> struct Shared {
  Deviations<A> deviations[kBlock];
  A sums[kBlock];
};

// The sum of the deviations corrects the centre. All threads of the block must call this.
template <bool centred, class T, int V, class A = AccumulatorOf<T>>
__device__ __forceinline__ Normal<A> normal_of(Row<T, V>& row, A size, A epsilon, Shared<A>& shared) {
  const Team& team = row.team;
  const A centre = centred ? team.reduce<Add>(sum_of(row), shared.sums) / size : A(0);
  const Deviations<A> all = team.reduce<AddDeviations>(deviations_of(row, !centred, centre), shared.deviations);
  const A rest = centred ? all.sum / size : A(0);
  return {centre, rest, 1 / std::sqrt(all.squares / size - rest * rest + epsilon)};
}

// Operands: out, x, weight, bias.
template <bool centred, class T, int V, class A = AccumulatorOf<T>>
__global__ void __launch_bounds__(kBlock)
    row_norm_kernel(const __grid_constant__ Lines<4> lines, T* out, const Input<T> x, const Input<T> weight,
                    const Input<T> bias, const A epsilon, A* means, A* rstds) {
  __shared__ Shared<A> shared;
  for (uint64_t group = blockIdx.x; group < lines.groups(); group += gridDim.x) {
    const uint64_t line = group * lines.team.teams() + lines.team.team();
    const int64_t n = line < lines.walk.count ? lines.length : 0;
    const Reach<4> reach = n ? lines.walk.reach(line) : Reach<4>{};
    Row<T, V> row{lines.team, x, reach.at[1], lines.stride[1], n, {}};
    const Normal<A> normal = normal_of<centred>(row, static_cast<A>(lines.length), epsilon, shared);
    if (n && lines.team.member() == 0) {
      if (centred) means[line] = normal.centre + normal.rest;
      rstds[line] = normal.scale;
    }
    row.each_turn(false, [&](const Turn<T, V>& turn) {
      Held<T, V> weights, biases;
      weights.load(turn, weight, reach.at[2], lines.stride[2]);
      if (centred) biases.load(turn, bias, reach.at[3], lines.stride[3]);
      turn.each([&](int k, uint32_t) {
        const A scaled = normal.of(static_cast<A>(row.held[k])) * static_cast<A>(weights[k]);
        row.held[k] = static_cast<T>(centred ? scaled + static_cast<A>(biases[k]) : scaled);
      });
      row.held.store(turn, out + reach.at[0], lines.stride[0]);
    });
  }
}

// Operands: out, x, grad, weight. With g = grad weight and v = normal x: the sums of g and of g v over a row, then the
// gradient.
template <bool centred, class T, int V, class A = AccumulatorOf<T>>
__global__ void __launch_bounds__(kBlock)
    row_norm_backward_kernel(const __grid_constant__ Lines<4> lines, T* out, const Input<T> x, const Input<T> grad,
                             const Input<T> weight, const A* means, const A* rstds) {
  __shared__ Shared<A> shared;
  for (uint64_t group = blockIdx.x; group < lines.groups(); group += gridDim.x) {
    const uint64_t line = group * lines.team.teams() + lines.team.team();
    const int64_t n = line < lines.walk.count ? lines.length : 0;
    const Reach<4> reach = n ? lines.walk.reach(line) : Reach<4>{};
    const A size = static_cast<A>(lines.length);
    Row<T, V> row{lines.team, x, reach.at[1], lines.stride[1], n, {}};
    const Normal<A> normal = n ? Normal<A>{centred ? means[line] : A(0), 0, rstds[line]} : Normal<A>{0, 0, 0};
    Held<T, V> grads, weights;
    const auto load = [&](const Turn<T, V>& turn) {
      grads.load(turn, grad, reach.at[2], lines.stride[2]);
      weights.load(turn, weight, reach.at[3], lines.stride[3]);
    };
    Deviations<A> sums{0, 0};  // of g and g v
    row.each_turn(true, [&](const Turn<T, V>& turn) {
      load(turn);
      Deviations<A> some{0, 0};
      turn.each([&](int k, uint32_t) {
        const A g = static_cast<A>(grads[k]) * static_cast<A>(weights[k]);
        some = AddDeviations()(some, {g, g * normal.of(static_cast<A>(row.held[k]))});
      });
      sums = AddDeviations()(sums, some);
    });
    sums = lines.team.reduce<AddDeviations>(sums, shared.deviations);
    const A mean = centred ? sums.sum / size : A(0), along = sums.squares / size;
    row.each_turn(false, [&](const Turn<T, V>& turn) {
      if (n > Turn<T, V>::length(lines.team)) load(turn);
      turn.each([&](int k, uint32_t) {
        const A g = static_cast<A>(grads[k]) * static_cast<A>(weights[k]);
        grads[k] = static_cast<T>(normal.scale * (g - mean - normal.of(static_cast<A>(row.held[k])) * along));
      });
      grads.store(turn, out + reach.at[0], lines.stride[0]);
    });
  }
}

// Returns a matrix with the vector as each of its rows.
plugrad_view repeated(plugrad_view view, const plugrad_view& like) {
  view.rank = 2;
  view.count = like.count;
  for (int d = 0; d < 2; ++d) view.shape[d] = like.shape[d];
  view.strides[0] = 0;
  view.strides[1] = 1;
  return view;
}
template <class T> AccumulatorOf<T> epsilon_of(const Call& call) {
  return static_cast<AccumulatorOf<T>>(call.attributes<plugrad_norm>().epsilon);
}

template <bool centred, class T> void row_norm(const Call& call, const Submission& submission) {
  using A = AccumulatorOf<T>;
  const plugrad_view& x = call.in(0);
  const plugrad_view weight = repeated(call.in(1), x), bias = repeated(call.in(centred ? 2 : 1), x);
  const Lines<4> lines({&call.out(), &x, &weight, &bias}, 1);
  launch_lines<T>(
      submission, lines, [](auto packs) { return row_norm_kernel<centred, T, packs()>; }, data<T>(call.out()), Input<T>(x),
      Input<T>(weight), Input<T>(bias), epsilon_of<T>(call), data<A>(call.out(1)), data<A>(call.out(centred ? 2 : 1)));
}

// Each row of a matrix has its own statistics.
template <class A> struct OfRows {
  const A *means, *rstds;  // means: null for RMS_NORM
  __device__ int channel(uint64_t) const { return 0; }
  __device__ __forceinline__ Normal<A> normal(int, uint64_t row) const { return {means ? means[row] : A(0), 0, rstds[row]}; }
};

Channels columns_of(const Call& call) {
  const plugrad_view& x = call.in(1);
  return Channels(x.shape[0], x.shape[1], 1, call.backend<CudaBackend>().multiprocessors());
}

template <bool centred, class T> void row_norm_backward(const Call& call, const Submission& submission) {
  using A = AccumulatorOf<T>;
  const plugrad_view &grad = call.in(0), &x = call.in(1), weight = repeated(call.in(2), x);
  const A *const means = centred ? data<const A>(call.in(3)) : nullptr, *const rstds =
                                                                            data<const A>(call.in(centred ? 4 : 3));
  const Lines<4> lines({&call.out(), &x, &grad, &weight}, 1);
  launch_lines<T>(
      submission, lines, [](auto packs) { return row_norm_backward_kernel<centred, T, packs()>; }, data<T>(call.out()),
      Input<T>(x), Input<T>(grad), Input<T>(weight), means, rstds);
  const GradientReducer<T, OfRows<A>> reducer{
      data<const T>(grad), data<const T>(x), {means, rstds}, data<T>(call.out(1)), centred ? data<T>(call.out(2)) : nullptr};
  reduce_channels(submission, columns_of(call), reducer, call.workspace());
}

template <class T> uint64_t backward_workspace(const Call& call) {
  return columns_of(call).segments.partials() * sizeof(GradientSums<AccumulatorOf<T>>);
}

template <bool centred, class... T> constexpr auto rows(uint32_t opcode, uint32_t gradient, Types<T...>) {
  constexpr uint16_t kDense = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;
  return join(std::array{kernel<submit<row_norm<centred, T>>>(opcode, element_dtype<T>, kDense)...},
              std::array{with_workspace<backward_workspace<T>>(
                  kernel<submit<row_norm_backward<centred, T>>>(gradient, element_dtype<T>, kDense))...});
}
constexpr auto kRows = join(rows<true>(PLUGRAD_OP_LAYER_NORM, PLUGRAD_OP_LAYER_NORM_BACKWARD, kWithHalves),
                            rows<false>(PLUGRAD_OP_RMS_NORM, PLUGRAD_OP_RMS_NORM_BACKWARD, kWithHalves));

}  // namespace

Rows row_norm_rows() { return kRows; }

}  // namespace plugrad::cuda
