// Batch normalisation: the statistics of channels, or the sums of their gradients, and then a pass over the elements.
#include <backends/cuda/channels.hpp>
#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

// Of n elements: their mean, and the sum of squares of their deviations from it.
template <class A> struct Moments {
  A n, mean, squares;
};
struct Merge {
  template <class A> __device__ Moments<A> operator()(const Moments<A>& a, const Moments<A>& b) const {
    if (b.n == 0) return a;
    if (a.n == 0) return b;
    const A n = a.n + b.n, apart = b.mean - a.mean, share = b.n / n;
    return {n, a.mean + apart * share, a.squares + b.squares + apart * apart * a.n * share};
  }
};

template <class T> struct MomentsReducer {
  using A = AccumulatorOf<T>;
  using Sums = Moments<A>;
  using Term = A;
  using Combine = Merge;
  const T* x;
  A *means, *variances;

  __device__ int channel(uint64_t) const { return 0; }
  __device__ __forceinline__ A read(int, uint64_t, uint64_t at) const { return static_cast<A>(x[at]); }
  __device__ __forceinline__ static Sums sum(const A (&terms)[Channels::kTogether], int n) {
    Sums all{static_cast<A>(n), 0, 0};
#pragma unroll
    for (int u = 0; u < Channels::kTogether; ++u)
      if (u < n) all.mean += terms[u];
    all.mean /= all.n;
#pragma unroll
    for (int u = 0; u < Channels::kTogether; ++u)
      if (u < n) all.squares += (terms[u] - all.mean) * (terms[u] - all.mean);
    return all;
  }
  __device__ void finish(uint64_t c, const Sums& sums) const {
    means[c] = sums.mean;
    variances[c] = sums.squares / sums.n;
  }
};

// The statistics of channels.
template <class T> struct Statistics {
  using A = AccumulatorOf<T>;
  const A *means, *variances;
  A epsilon;

  __device__ __forceinline__ Normal<A> channel(uint64_t c) const {
    return {means[c], 0, 1 / std::sqrt(variances[c] + epsilon)};
  }
  __device__ __forceinline__ const Normal<A>& normal(const Normal<A>& state, uint64_t) const { return state; }
};

// The sums of the gradients of channels. The workspace keeps them as they are computed: the outputs may be halves.
template <class T> struct KeptSums : GradientReducer<T, Statistics<T>> {
  using Sums = typename GradientReducer<T, Statistics<T>>::Sums;
  Sums* kept;

  __device__ void finish(uint64_t c, const Sums& sums) const {
    GradientReducer<T, Statistics<T>>::finish(c, sums);
    kept[c] = sums;
  }
};

template <class T> struct Forward {
  using A = AccumulatorOf<T>;
  Statistics<T> statistics;
  const T *x, *weight, *bias;
  T* out;

  template <int V> __device__ __forceinline__ void apply(uint64_t c, uint64_t at) const {
    const Normal<A> normal = statistics.channel(c);
    const A factor = static_cast<A>(weight[c]), shift = static_cast<A>(bias[c]);
    Pack<T, V> pack = *reinterpret_cast<const Pack<T, V>*>(x + at);
#pragma unroll
    for (T& element : pack.at) element = static_cast<T>(normal.of(static_cast<A>(element)) * factor + shift);
    *reinterpret_cast<Pack<T, V>*>(out + at) = pack;
  }
};

template <class T> struct Backward {
  using A = AccumulatorOf<T>;
  Statistics<T> statistics;
  const T *grad, *x, *weight;
  const GradientSums<A>* sums;  // of the channels
  A elements;                   // of a channel
  T* out;

  template <int V> __device__ __forceinline__ void apply(uint64_t c, uint64_t at) const {
    const Normal<A> normal = statistics.channel(c);
    const A factor = normal.scale * static_cast<A>(weight[c]), mean = sums[c].grad / elements,
            along = sums[c].product / elements;
    const Pack<T, V> pack = *reinterpret_cast<const Pack<T, V>*>(x + at);
    Pack<T, V> result = *reinterpret_cast<const Pack<T, V>*>(grad + at);
#pragma unroll
    for (int j = 0; j < V; ++j)
      result.at[j] =
          static_cast<T>(factor * (static_cast<A>(result.at[j]) - mean - normal.of(static_cast<A>(pack.at[j])) * along));
    *reinterpret_cast<Pack<T, V>*>(out + at) = result;
  }
};

// Packs of (n, c, s): a pack lies within one channel.
struct Packs {
  uint64_t count, plane, channels;  // packs in all and in a plane
  WideDivider by_plane, by_channels;

  Packs(const plugrad_view& x, int each)
      : count(static_cast<uint64_t>(x.count / each)), plane(static_cast<uint64_t>(x.shape[2] / each)),
        channels(static_cast<uint64_t>(x.shape[1])), by_plane(plane), by_channels(channels) {}
};

template <class F, int V>
__global__ void __launch_bounds__(kBlock) channel_map_kernel(const __grid_constant__ Packs packs, const F f) {
  const uint64_t threads = static_cast<uint64_t>(gridDim.x) * kBlock;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * kBlock + threadIdx.x; i < packs.count; i += threads) {
    const uint64_t plane = packs.by_plane.quotient(i), image = packs.by_channels.quotient(plane);
    f.template apply<V>(plane - image * packs.channels, i * V);
  }
}

template <int V, class F> void launch_map(const Submission& submission, const plugrad_view& x, const F& f) {
  static Occupancy occupancy;
  const Packs packs(x, V);
  const auto kernel = channel_map_kernel<F, V>;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, (packs.count + kBlock - 1) / kBlock, occupancy), kBlock, 0,
                 submission.handle(), packs, f);
  submission.launched();
}

// Applies f to all elements of x; f accesses the addresses in `aligned` in packs.
template <class T, class F>
void map_channels(const Submission& submission, const plugrad_view& x, std::initializer_list<const T*> aligned, const F& f) {
  const bool is_packed = x.shape[2] % kPack<T> == 0 && std::all_of(aligned.begin(), aligned.end(), [](const T* address) {
                           return reinterpret_cast<uintptr_t>(address) % 16 == 0;
                         });
  if (is_packed) launch_map<kPack<T>>(submission, x, f);
  else launch_map<1>(submission, x, f);
}

Channels channels_of(const Call& call, const plugrad_view& x) {
  return Channels(x.shape[0], x.shape[1], x.shape[2], call.backend<CudaBackend>().multiprocessors());
}
template <class T> AccumulatorOf<T> epsilon_of(const Call& call) {
  return static_cast<AccumulatorOf<T>>(call.attributes<plugrad_norm>().epsilon);
}

template <class T> void batch_norm(const Call& call, const Submission& submission) {
  const plugrad_view& x = call.in(0);
  using A = AccumulatorOf<T>;
  T* const out = data<T>(call.out(0));
  A *const means = data<A>(call.out(1)), *const variances = data<A>(call.out(2));
  reduce_channels(submission, channels_of(call, x), MomentsReducer<T>{data<const T>(x), means, variances}, call.workspace());
  const Statistics<T> statistics{means, variances, epsilon_of<T>(call)};
  const Forward<T> forward{statistics, data<const T>(x), data<const T>(call.in(1)), data<const T>(call.in(2)), out};
  map_channels<T>(submission, x, {forward.x, out}, forward);
}

template <class T> void batch_norm_backward(const Call& call, const Submission& submission) {
  const plugrad_view& view = call.in(1);
  const T *const grad = data<const T>(call.in(0)), *const x = data<const T>(view);
  T *const out = data<T>(call.out(0)), *const products = data<T>(call.out(1)), *const grads = data<T>(call.out(2));
  using A = AccumulatorOf<T>;
  const Statistics<T> statistics{data<const A>(call.in(3)), data<const A>(call.in(4)), epsilon_of<T>(call)};
  const Channels channels = channels_of(call, view);
  auto* const kept = reinterpret_cast<GradientSums<A>*>(call.workspace());
  const KeptSums<T> reducer{{grad, x, statistics, products, grads}, kept};
  reduce_channels(submission, channels, reducer, reinterpret_cast<char*>(kept + channels.count));
  const Backward<T> backward{
      statistics, grad, x, data<const T>(call.in(2)), kept, static_cast<AccumulatorOf<T>>(channels.segments.length), out};
  map_channels<T>(submission, view, {grad, x, out}, backward);
}

template <class T> uint64_t forward_workspace(const Call& call) {
  return channels_of(call, call.in(0)).segments.partials() * sizeof(typename MomentsReducer<T>::Sums);
}
template <class T> uint64_t backward_workspace(const Call& call) {
  const Channels channels = channels_of(call, call.in(1));
  return (channels.count + channels.segments.partials()) * sizeof(GradientSums<AccumulatorOf<T>>);
}

template <class... T> constexpr auto rows(Types<T...>) {
  constexpr uint16_t kDense = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;
  return join(std::array{with_workspace<forward_workspace<T>>(
                  kernel<submit<batch_norm<T>>>(PLUGRAD_OP_BATCH_NORM, element_dtype<T>, kDense))...},
              std::array{with_workspace<backward_workspace<T>>(
                  kernel<submit<batch_norm_backward<T>>>(PLUGRAD_OP_BATCH_NORM_BACKWARD, element_dtype<T>, kDense))...});
}
constexpr auto kRows = rows(kWithHalves);

}  // namespace

Rows batch_norm_rows() { return kRows; }

}  // namespace plugrad::cuda
