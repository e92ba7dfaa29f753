// Batch normalisation: each channel of (n, c, s) over n and s.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/channels.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/elementwise.hpp>
#include <backends/cpu/features-inl.hpp>
#include <backends/cpu/norm-inl.hpp>
#include <backends/cpu/rows.hpp>
#include <backends/cpu/streaming.hpp>

#include <hwy/cache_control.h>

#ifndef PLUGRAD_CPU_CHANNELS
#define PLUGRAD_CPU_CHANNELS
namespace plugrad::cpu {
namespace {

// Lines shorter than this are gathered in a buffer, for a group of channels with shared cache lines at a time.
constexpr int64_t kShortLine = 256, kGroup = 16;

struct Batch {
  int64_t n, channels, length;  // length: the contiguous elements of a channel
  explicit Batch(const plugrad_view& x) : n(x.shape[0]), channels(x.shape[1]), length(x.shape[2]) {}
  bool is_short() const { return length < kShortLine; }
  int64_t line(int64_t i, int64_t channel) const { return (i * channels + channel) * length; }
  double elements() const { return static_cast<double>(n * length); }
  // Channels of a task: enough for a task's work, and all channels with shared cache lines.
  int64_t each() const { return std::max(length < kGroup ? kGroup : 1, kGrain / 8 / (n * length)); }
};

}  // namespace
}  // namespace plugrad::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

template <class T> void gather_lines(T* to, const T* from, const Batch& batch, int64_t channel, int64_t first, int64_t end) {
  for (int64_t i = first; i < end; ++i, to += batch.length)
    std::memcpy(to, from + batch.line(i, channel), static_cast<size_t>(batch.length) * sizeof(T));
}
template <class T>
void scatter_lines(T* to, const T* from, const Batch& batch, int64_t channel, int64_t first, int64_t end) {
  for (int64_t i = first; i < end; ++i, from += batch.length)
    std::memcpy(to + batch.line(i, channel), from, static_cast<size_t>(batch.length) * sizeof(T));
}

// Calls f(channel, inputs, out, n) for pieces of n contiguous elements of the channels first .. end, in the order of each
// channel; short lines go through buffers. out may be null.
template <class T, size_t kInputs, class F>
void for_each_piece(const Batch& batch, int64_t first, int64_t end, const T* const (&inputs)[kInputs], T* out, F f) {
  const T* at[kInputs];
  if (!batch.is_short()) {
    for (int64_t c = first; c < end; ++c)
      for (int64_t i = 0; i < batch.n; ++i) {
        for (size_t k = 0; k < kInputs; ++k) at[k] = inputs[k] + batch.line(i, c);
        f(c, at, out ? out + batch.line(i, c) : nullptr, batch.length);
      }
    return;
  }
  alignas(64) T buffers[kInputs + 1][kSegment];
  const int64_t lines = kSegment / batch.length;
  for (int64_t i = 0; i < batch.n; i += lines)
    for (int64_t c = first; c < end; ++c) {
      const int64_t last = std::min(batch.n, i + lines);
      for (size_t k = 0; k < kInputs; ++k) {
        gather_lines(buffers[k], inputs[k], batch, c, i, last);
        at[k] = buffers[k];
      }
      f(c, at, buffers[kInputs], (last - i) * batch.length);
      if (out) scatter_lines(out, buffers[kInputs], batch, c, i, last);
    }
}

template <class T> struct BatchNorm {
  static constexpr int64_t kMost = 64;  // channels computed together

  template <bool streamed> static void run_channels(const Call& call, const Batch& batch, int64_t first, int64_t end) {
    const T* const inputs[] = {data<T>(call.in(0))};
    typename Norm<T>::Moments moments[kMost];
    for_each_piece(batch, first, end, inputs, static_cast<T*>(nullptr),
                   [&](int64_t c, const T* const* x, T*, int64_t n) { moments[c - first].take(x[0], n); });
    const double epsilon = call.attributes<plugrad_norm>().epsilon;
    for (int64_t c = first; c < end; ++c) {
      data<T>(call.out(1))[c] = static_cast<T>(moments[c - first].mean);
      data<T>(call.out(2))[c] = static_cast<T>(moments[c - first].variance());
    }
    const T *weight = data<T>(call.in(1)), *bias = data<T>(call.in(2));
    for_each_piece(batch, first, end, inputs, data<T>(call.out()), [&](int64_t c, const T* const* x, T* out, int64_t n) {
      const auto& m = moments[c - first];
      const Scaling<T> scaling(m.mean, m.variance(), epsilon);
      Norm<T>::template scale_channel<streamed>(out, x[0], weight[c], bias[c], n, scaling);
    });
    if (streamed) hwy::FlushStream();
  }
  static void run(const Call& call) {
    if (call.in(0).shape[2] == 1) return Features<T>(call.in(0)).forward(call, call.attributes<plugrad_norm>().epsilon);
    run_tasks_of<BatchNorm>(call, Batch(call.in(0)));
  }

  template <class K> static void run_tasks_of(const Call& call, const Batch& batch) {
    const int64_t each = std::min(batch.each(), kMost);
    const bool streamed = is_streamed(call.out()) && !batch.is_short();
    const int64_t tasks = (batch.channels + each - 1) / each, bytes = call.out().count * int64_t{sizeof(T)};
    parallel_pass(threads_of(call), tasks, bytes, [&](int64_t task) {
      const int64_t end = std::min(batch.channels, (task + 1) * each);
      if (streamed) K::template run_channels<true>(call, batch, task * each, end);
      else K::template run_channels<false>(call, batch, task * each, end);
    });
  }
};

template <class T> struct BatchNormBackward {
  template <bool streamed> static void run_channels(const Call& call, const Batch& batch, int64_t first, int64_t end) {
    const T* const inputs[] = {data<T>(call.in(0)), data<T>(call.in(1))};
    const T *weight = data<T>(call.in(2)), *average = data<T>(call.in(3)), *variance = data<T>(call.in(4));
    const double epsilon = call.attributes<plugrad_norm>().epsilon;
    const auto scaling = [&](int64_t c) {
      return Scaling<T>(static_cast<double>(average[c]), static_cast<double>(variance[c]), epsilon);
    };
    GradientSums sums[BatchNorm<T>::kMost];
    for_each_piece(batch, first, end, inputs, static_cast<T*>(nullptr), [&](int64_t c, const T* const* in, T*, int64_t n) {
      Norm<T>::channel_sums(in[0], in[1], n, scaling(c), sums[c - first]);
    });
    for (int64_t c = first; c < end; ++c) {
      data<T>(call.out(1))[c] = static_cast<T>(sums[c - first].products);
      data<T>(call.out(2))[c] = static_cast<T>(sums[c - first].grads);
    }
    for_each_piece(batch, first, end, inputs, data<T>(call.out()), [&](int64_t c, const T* const* in, T* out, int64_t n) {
      const GradientSums& s = sums[c - first];
      const GradientSums means{s.grads / batch.elements(), s.products / batch.elements()};
      const Scaling<T> from = scaling(c);
      Norm<T>::template channel_gradient<streamed>(out, in[0], in[1], from.scale * weight[c], n, from, means);
    });
    if (streamed) hwy::FlushStream();
  }
  static void run(const Call& call) {
    if (call.in(1).shape[2] == 1) return Features<T>(call.in(1)).backward(call, call.attributes<plugrad_norm>().epsilon);
    BatchNorm<T>::template run_tasks_of<BatchNormBackward>(call, Batch(call.in(1)));
  }
};

template <class T> uint64_t features_workspace(const Call& call) {
  return call.out().shape[2] == 1 ? Features<T>(call.out()).workspace() : 0;
}

template <class T> void append(RowList& rows) {
  constexpr uint16_t kDense = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;
  const auto add = [&](KernelRow row) { rows.push_back(with_workspace<features_workspace<T>>(row)); };
  add(kernel<BatchNorm<T>::run>(PLUGRAD_OP_BATCH_NORM, kDtype<T>, kDense));
  add(kernel<BatchNormBackward<T>::run>(PLUGRAD_OP_BATCH_NORM_BACKWARD, kDtype<T>, kDense));
}

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_channels<HWY_TARGET>(RowList& rows) {
  HWY_NAMESPACE::append<float>(rows);
  HWY_NAMESPACE::append<double>(rows);
}
}  // namespace plugrad::cpu
