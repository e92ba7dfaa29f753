// Reductions of channels: of x (n, c, s) over n and s, or of a matrix's columns (s is 1). Several blocks may share a
// channel.
#pragma once
#include <backends/cuda/accumulator.hpp>
#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/segments.hpp>

namespace plugrad::cuda {

// Each channel is a line.
struct Channels {
  uint64_t count, plane;  // channels; elements of a channel in one image
  WideDivider by_plane;
  Segments segments;

  Channels(int64_t images, int64_t channels, int64_t elements, int multiprocessors)
      : count(static_cast<uint64_t>(channels)), plane(static_cast<uint64_t>(elements)), by_plane(plane) {
    const uint64_t length = static_cast<uint64_t>(images) * plane;
    segments = Segments(count, length, choose_team(count, length, plane > 1, kTogether), kTogether, multiprocessors);
  }

  static constexpr int kTogether = 8;  // elements read by a thread at once

  // The place of element i of a channel.
  __device__ __forceinline__ uint64_t at(uint64_t channel, uint64_t i) const {
    if (plane == 1) return i * count + channel;
    const uint64_t image = by_plane.quotient(i);
    return (image * count + channel) * plane + (i - image * plane);
  }
};

// A reducer R has: Sums, 0 for no elements; Term, the values read of an element; channel(c), its state for a channel;
// read(state, i, at), of element i of a channel, at a place; sum(terms, n), of the first n terms; Combine, a function of two
// Sums; finish(c, sums).
template <class R> struct ChannelLines {  // the kernel's reducer, in the sense of segments.hpp
  static constexpr int kTogether = Channels::kTogether;
  using Sums = typename R::Sums;
  using Combine = typename R::Combine;
  using Line = uint64_t;  // the channel
  const Channels& channels;
  const R& r;

  __device__ static Sums identity() { return Sums{}; }
  __device__ static Line line(uint64_t number) { return number; }
  __device__ __forceinline__ Sums run(Line channel, uint64_t begin, uint64_t end) const {
    Sums sums{};
    const uint64_t step = channels.segments.team.size();
    const auto state = r.channel(channel);
    for (uint64_t i = begin + channels.segments.team.member(); i < end; i += step * kTogether) {
      typename R::Term terms[kTogether];
      int n = 0;
#pragma unroll
      for (int u = 0; u < kTogether; ++u) {
        const uint64_t element = i + static_cast<uint64_t>(u) * step;
        if (element >= end) continue;
        terms[u] = r.read(state, element, channels.at(channel, element));
        n = u + 1;
      }
      sums = Combine()(sums, R::sum(terms, n));
    }
    return sums;
  }
  __device__ void finish(Line channel, const Sums& sums) const { r.finish(channel, sums); }
};

template <class R>
__global__ void __launch_bounds__(kBlock)
    channel_kernel(const __grid_constant__ Channels channels, const R r, typename R::Sums* partials, uint32_t* counters) {
  reduce_lines(ChannelLines<R>{channels, r}, channels.segments, partials, counters);
}

// workspace: room for the partials.
template <class R>
void reduce_channels(const Submission& submission, const Channels& channels, const R& r, char* workspace) {
  static Occupancy occupancy;
  const auto kernel = channel_kernel<R>;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, channels.segments.tasks, occupancy), kBlock, 0, submission.handle(),
                 channels, r, reinterpret_cast<typename R::Sums*>(workspace), submission.stream().counters());
  submission.launched();
}

// Normalises x: ((x - centre) - rest) scale. The rest is the part of the centre lost to rounding.
template <class A> struct Normal {
  A centre, rest, scale;
  __device__ __forceinline__ A of(A x) const { return ((x - centre) - rest) * scale; }
};

// Sums of grad, and of grad times normal x.
template <class A> struct GradientSums {
  A grad, product;
};
struct AddGradients {
  template <class A> __device__ GradientSums<A> operator()(const GradientSums<A>& a, const GradientSums<A>& b) const {
    return {a.grad + b.grad, a.product + b.product};
  }
};

// The reducer of these sums. S has channel(c), and normal(state, i) of element i of a channel, a Normal.
template <class T, class S> struct GradientReducer {
  using A = AccumulatorOf<T>;
  using Sums = GradientSums<A>;
  using Term = GradientSums<A>;
  using Combine = AddGradients;
  const T *grad, *x;
  S statistics;
  T *products, *grads;  // grads: null if not wanted

  __device__ auto channel(uint64_t c) const { return statistics.channel(c); }
  template <class State> __device__ __forceinline__ Term read(const State& state, uint64_t i, uint64_t at) const {
    const A g = static_cast<A>(grad[at]);
    return {g, g * statistics.normal(state, i).of(static_cast<A>(x[at]))};
  }
  __device__ __forceinline__ static Sums sum(const Term (&terms)[Channels::kTogether], int n) {
    Sums all{};
#pragma unroll
    for (int u = 0; u < Channels::kTogether; ++u)
      if (u < n) all = AddGradients()(all, terms[u]);
    return all;
  }
  __device__ void finish(uint64_t c, const Sums& sums) const {
    products[c] = static_cast<T>(sums.product);
    if (grads) grads[c] = static_cast<T>(sums.grad);
  }
};

}  // namespace plugrad::cuda
