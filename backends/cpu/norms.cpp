// Layer and RMS normalisation of the rows of a matrix.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/norms.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/elementwise.hpp>
#include <backends/cpu/norm-inl.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/rows.hpp>
#include <backends/cpu/streaming.hpp>

#include <hwy/cache_control.h>

#ifndef PLUGRAD_CPU_NORM_CHUNKS
#define PLUGRAD_CPU_NORM_CHUNKS
namespace plugrad::cpu {
namespace {

// The rows of a matrix, cut into chunks, independent of the number of threads.
struct Chunks {
  int64_t rows, length, each, count;

  explicit Chunks(const plugrad_view& x) : rows(x.shape[0]), length(x.shape[1]) {
    const int64_t most = std::min(std::clamp<int64_t>((1 << 21) / length, 1, 64), rows);
    each = (rows + most - 1) / most;
    each = std::max(each, kGrain / 4 / length);
    count = (rows + each - 1) / each;
  }
  int64_t elements() const { return rows * length; }
  int64_t begin(int64_t chunk) const { return chunk * each; }
  int64_t end(int64_t chunk) const { return std::min(rows, (chunk + 1) * each); }
};

// Hands out arrays in the workspace, each at the beginning of a cache line.
struct Arrays {
  uintptr_t at = 0;
  template <class T> T* take(int64_t n) {
    const uintptr_t begin = at;
    at += (static_cast<uintptr_t>(n) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(begin);
  }
};

}  // namespace
}  // namespace plugrad::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

constexpr uint16_t kDense = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;
constexpr int64_t kBlock = 32;  // rows summed in T before the sums are rounded off

// Returns elements of E in their type of computation T: the elements themselves, or a copy in `buffer`.
template <class E, class T> const T* wide_line(const E* line, T* buffer, int64_t n) {
  if constexpr (std::is_same_v<E, T>) return line;
  else {
    for (int64_t i = 0; i < n; ++i) buffer[i] = widened(line[i]);
    return buffer;
  }
}

template <class E, bool centred> struct Forward {
  using T = ComputeType<E>;
  static constexpr bool kNarrow = !std::is_same_v<E, T>;

  struct Scratch : Arrays {  // of a chunk
    T *x, *y, *weight, *bias;
    Scratch(char* begin, int64_t n) : Arrays{reinterpret_cast<uintptr_t>(begin)} {
      const int64_t some = kNarrow ? n : 0;
      for (T** each : {&x, &y, &weight, &bias}) *each = take<T>(some);
    }
  };
  static uint64_t workspace(const Call& call) {
    const Chunks chunks(call.in(0));
    return static_cast<uint64_t>(chunks.count) * Scratch(nullptr, chunks.length).at;
  }

  static Scaling<T> scaling(const T* x, int64_t n, double epsilon) {
    if constexpr (!centred) return Scaling<T>(0, Norm<T>::mean_of_squares(x, n), epsilon);
    typename Norm<T>::Moments moments;
    moments.take(x, n);
    return Scaling<T>(moments.mean, moments.variance(), epsilon);
  }

  template <bool streamed> static void run_rows(const Call& call, const Chunks& chunks, int64_t chunk) {
    const int64_t n = chunks.length;
    Scratch s(call.workspace() + static_cast<uint64_t>(chunk) * Scratch(nullptr, n).at, n);
    const T* weight = wide_line(data<E>(call.in(1)), s.weight, n);
    const T* bias = nullptr;
    if constexpr (centred) bias = wide_line(data<E>(call.in(2)), s.bias, n);
    const double epsilon = call.attributes<plugrad_norm>().epsilon;
    for (int64_t row = chunks.begin(chunk); row < chunks.end(chunk); ++row) {
      const T* x = wide_line(data<E>(call.in(0)) + row * n, s.x, n);
      E* out = data<E>(call.out()) + row * n;
      const Scaling<T> by = scaling(x, n, epsilon);
      if constexpr (centred) data<T>(call.out(1))[row] = by.mean;
      data<T>(call.out(centred ? 2 : 1))[row] = by.scale;
      if constexpr (kNarrow) {
        Norm<T>::template scale_line<false>(s.y, x, weight, bias, n, by);
        for (int64_t i = 0; i < n; ++i) out[i] = static_cast<E>(s.y[i]);
      } else {
        Norm<T>::template scale_line<streamed>(out, x, weight, bias, n, by);
      }
    }
    if (streamed) hwy::FlushStream();
  }
  static void run(const Call& call) {
    const Chunks chunks(call.in(0));
    const bool streamed = is_streamed(call.out());
    parallel_pass(threads_of(call), chunks.count, chunks.elements() * int64_t{sizeof(E)}, [&](int64_t chunk) {
      if (streamed) run_rows<true>(call, chunks, chunk);
      else run_rows<false>(call, chunks, chunk);
    });
  }
};

template <class E, bool centred> struct Backward {
  using T = ComputeType<E>;
  static constexpr bool kNarrow = !std::is_same_v<E, T>;
  using Partial = typename Sum<T>::Partial;

  struct Scratch : Arrays {  // of a chunk
    Partial *weight_total, *bias_total;
    T *weight_sums, *bias_sums, *grad, *x, *out, *weight;
    Scratch(char* begin, int64_t n) : Arrays{reinterpret_cast<uintptr_t>(begin)} {
      const int64_t some = kNarrow ? n : 0;
      weight_total = take<Partial>(n);
      bias_total = take<Partial>(centred ? n : 0);
      weight_sums = take<T>(n);
      bias_sums = take<T>(centred ? n : 0);
      for (T** each : {&grad, &x, &out, &weight}) *each = take<T>(some);
    }
  };
  static char* begin(const Call& call, int64_t n, int64_t chunk) {
    return call.workspace() + static_cast<uint64_t>(chunk) * Scratch(nullptr, n).at;
  }
  static uint64_t workspace(const Call& call) {
    const Chunks chunks(call.in(1));
    return static_cast<uint64_t>(chunks.count) * Scratch(nullptr, chunks.length).at;
  }

  static void round_off(Partial* totals, T* sums, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      Sum<T>::take(totals[i], sums[i]);
      sums[i] = 0;
    }
  }
  template <bool streamed>
  static void run_row(E* out, const T* grad, const T* x, const T* weight, int64_t n, const Scaling<T>& scaling,
                      const Scratch& s) {
    GradientSums sums;
    Norm<T>::line_sums(grad, x, weight, n, scaling, s.weight_sums, centred ? s.bias_sums : nullptr, sums);
    const double size = static_cast<double>(n);
    const GradientSums means{centred ? sums.grads / size : 0, sums.products / size};
    if constexpr (kNarrow) {
      Norm<T>::template line_gradient<false>(s.out, grad, x, weight, n, scaling, means);
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<E>(s.out[i]);
    } else {
      Norm<T>::template line_gradient<streamed>(out, grad, x, weight, n, scaling, means);
    }
  }
  template <bool streamed> static void run_rows(const Call& call, const Chunks& chunks, int64_t chunk) {
    const int64_t n = chunks.length, sums = centred ? n : 0;
    Scratch s(begin(call, n, chunk), n);
    Folding<Sum<T>>::init(reinterpret_cast<char*>(s.weight_total), n);
    Folding<Sum<T>>::init(reinterpret_cast<char*>(s.bias_total), sums);
    std::fill_n(s.weight_sums, n, T(0));
    std::fill_n(s.bias_sums, sums, T(0));
    const T* weight = wide_line(data<E>(call.in(2)), s.weight, n);
    const T *means = centred ? data<T>(call.in(3)) : nullptr, *rstds = data<T>(call.in(centred ? 4 : 3));
    for (int64_t row = chunks.begin(chunk); row < chunks.end(chunk); ++row) {
      const T* grad = wide_line(data<E>(call.in(0)) + row * n, s.grad, n);
      const T* x = wide_line(data<E>(call.in(1)) + row * n, s.x, n);
      run_row<streamed>(data<E>(call.out()) + row * n, grad, x, weight, n, Scaling<T>(means ? means[row] : T(0), rstds[row]),
                        s);
      if ((row - chunks.begin(chunk)) % kBlock != kBlock - 1 && row + 1 < chunks.end(chunk)) continue;
      round_off(s.weight_total, s.weight_sums, n);
      round_off(s.bias_total, s.bias_sums, sums);
    }
    if (streamed) hwy::FlushStream();
  }

  // Adds up the chunks' totals from `first` to `end`.
  static void add_totals(const Call& call, const Chunks& chunks, int64_t first, int64_t end) {
    const int64_t n = chunks.length, size = end - first;
    const auto store = [&](const plugrad_view& out, const Partial* totals) {
      for (int64_t i = first; i < end; ++i) data<E>(out)[i] = static_cast<E>(static_cast<T>(total(totals[i])));
    };
    Scratch all(begin(call, n, 0), n);
    for (int64_t chunk = 1; chunk < chunks.count; ++chunk) {
      Scratch s(begin(call, n, chunk), n);
      const auto merge = [&](Partial* to, const Partial* from) {
        Folding<Sum<T>>::merge(reinterpret_cast<char*>(to + first), reinterpret_cast<const char*>(from + first), size);
      };
      merge(all.weight_total, s.weight_total);
      if constexpr (centred) merge(all.bias_total, s.bias_total);
    }
    store(call.out(1), all.weight_total);
    if constexpr (centred) store(call.out(2), all.bias_total);
  }

  static void run(const Call& call) {
    const Chunks chunks(call.in(1));
    const bool streamed = is_streamed(call.out());
    parallel_pass(threads_of(call), chunks.count, chunks.elements() * int64_t{sizeof(E)}, [&](int64_t chunk) {
      if (streamed) run_rows<true>(call, chunks, chunk);
      else run_rows<false>(call, chunks, chunk);
    });
    constexpr int64_t kColumns = 1024;
    parallel(threads_of(call), (chunks.length + kColumns - 1) / kColumns, [&](int64_t task) {
      add_totals(call, chunks, task * kColumns, std::min(chunks.length, (task + 1) * kColumns));
    });
  }
};

template <class K> void append_norm(RowList& rows, uint32_t opcode, uint8_t dtype) {
  rows.push_back(with_workspace<K::workspace>(kernel<K::run>(opcode, dtype, kDense)));
}
template <class E> void append(RowList& rows) {
  append_norm<Forward<E, true>>(rows, PLUGRAD_OP_LAYER_NORM, kDtype<E>);
  append_norm<Forward<E, false>>(rows, PLUGRAD_OP_RMS_NORM, kDtype<E>);
  append_norm<Backward<E, true>>(rows, PLUGRAD_OP_LAYER_NORM_BACKWARD, kDtype<E>);
  append_norm<Backward<E, false>>(rows, PLUGRAD_OP_RMS_NORM_BACKWARD, kDtype<E>);
}

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_norms<HWY_TARGET>(RowList& rows) {
  HWY_NAMESPACE::append<float>(rows);
  HWY_NAMESPACE::append<double>(rows);
  HWY_NAMESPACE::append<BFloat16>(rows);
}
}  // namespace plugrad::cpu
