// Softmax, log-softmax and cross-entropy.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/softmax.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/lines.hpp>
#include <backends/cpu/rows.hpp>
#include <backends/cpu/softmax-inl.hpp>
#include <backends/cpu/streaming.hpp>

#include <atomic>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

template <class T> T* line(char* p) { return reinterpret_cast<T*>(p); }

template <const auto& plan> uint64_t workspace_of(const Call& call) { return plan(call).workspace(); }

template <class T> struct LogSoftmax {
  static Lines plan(const Call& call) {
    const plugrad_view* const views[] = {&call.out(), &call.in(0)};
    return Lines(views, 1, call.attributes<plugrad_axis>().axis);
  }
  static void run(const Call& call) {
    const int64_t n = call.out().rank ? call.out().shape[call.attributes<plugrad_axis>().axis] : 1;
    const auto each = [](const void* context, char* const* p, int64_t) {
      Softmax<T>::log_softmax(line<T>(p[0]), line<T>(p[1]), *static_cast<const int64_t*>(context));
    };
    plan(call).run(threads_of(call), call.workspace(), each, &n);
  }
};

template <class T> struct LogSoftmaxBackward {
  static Lines plan(const Call& call) {
    const plugrad_view* const views[] = {&call.out(), &call.in(0), &call.in(1)};
    return Lines(views, 1, call.attributes<plugrad_axis>().axis);
  }
  static void run(const Call& call) {
    const int64_t n = call.out().rank ? call.out().shape[call.attributes<plugrad_axis>().axis] : 1;
    const auto each = [](const void* context, char* const* p, int64_t) {
      const int64_t length = *static_cast<const int64_t*>(context);
      const T sum = Softmax<T>::total(line<T>(p[1]), length);
      Softmax<T>::backward(line<T>(p[0]), line<T>(p[1]), line<T>(p[2]), length, sum);
    };
    plan(call).run(threads_of(call), call.workspace(), each, &n);
  }
};

// A line of a narrow type, piece by piece in its type of computation.
template <class E> struct NarrowSoftmax {
  using T = ComputeType<E>;
  static constexpr int64_t kPiece = 512;
  using Piece = T[kPiece];

  static const T* wide(Piece& piece, const E* line, int64_t n) {
    for (int64_t i = 0; i < n; ++i) piece[i] = widened(line[i]);
    return piece;
  }
  static void store(E* out, const Piece& piece, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<E>(piece[i]);
  }
  template <class F> static void each_piece(int64_t n, F f) {
    for (int64_t i = 0; i < n; i += kPiece) f(i, std::min(kPiece, n - i));
  }

  static void softmax(E* out, const E* x, int64_t n, bool) {
    Piece in, result;
    T m = Extreme<T, true>::kIdentity;
    double sum = 0;
    each_piece(n, [&](int64_t i, int64_t some) {
      m = Extreme<T, true>::combine_lanes(m, Softmax<T>::largest(wide(in, x + i, some), some));
    });
    each_piece(n, [&](int64_t i, int64_t some) {
      sum += static_cast<double>(Softmax<T>::sum_of_powers(wide(in, x + i, some), some, m));
    });
    each_piece(n, [&](int64_t i, int64_t some) {
      Softmax<T>::scaled_powers(result, wide(in, x + i, some), some, m, static_cast<T>(1 / sum));
      store(out + i, result, some);
    });
  }
  static double product(const E* grad, const E* y, int64_t n) {
    Piece g, v;
    double sum = 0;
    each_piece(n, [&](int64_t i, int64_t some) {
      sum += Softmax<T>::product(wide(g, grad + i, some), wide(v, y + i, some), some);
    });
    return sum;
  }
  static void softmax_backward(E* out, const E* grad, const E* y, int64_t n, T sum, bool) {
    Piece g, v, result;
    each_piece(n, [&](int64_t i, int64_t some) {
      Softmax<T>::softmax_backward(result, wide(g, grad + i, some), wide(v, y + i, some), some, sum, false);
      store(out + i, result, some);
    });
  }
};
template <class E>
using SoftmaxOf = std::conditional_t<std::is_same_v<E, ComputeType<E>>, Softmax<ComputeType<E>>, NarrowSoftmax<E>>;

struct SoftmaxLine {
  int64_t length;
  bool streamed;  // only lines written in place, not lines in a buffer
  explicit SoftmaxLine(const Call& call) : length(1), streamed(false) {
    if (!call.out().rank) return;
    const int64_t axis = call.attributes<plugrad_axis>().axis;
    length = call.out().shape[axis];
    streamed = call.out().strides[axis] == 1 && is_streamed(call.out());
  }
};
template <class E> struct SoftmaxForward {
  static Lines plan(const Call& call) { return LogSoftmax<E>::plan(call); }
  static void run(const Call& call) {
    const SoftmaxLine of(call);
    const auto each = [](const void* context, char* const* p, int64_t) {
      const SoftmaxLine& all = *static_cast<const SoftmaxLine*>(context);
      SoftmaxOf<E>::softmax(line<E>(p[0]), line<E>(p[1]), all.length, all.streamed);
    };
    plan(call).run(threads_of(call), call.workspace(), each, &of);
  }
};
template <class E> struct SoftmaxBackward {
  static Lines plan(const Call& call) { return LogSoftmaxBackward<E>::plan(call); }
  static void run(const Call& call) {
    const SoftmaxLine of(call);
    const auto each = [](const void* context, char* const* p, int64_t) {
      const SoftmaxLine& all = *static_cast<const SoftmaxLine*>(context);
      const double sum = SoftmaxOf<E>::product(line<E>(p[1]), line<E>(p[2]), all.length);
      SoftmaxOf<E>::softmax_backward(line<E>(p[0]), line<E>(p[1]), line<E>(p[2]), all.length,
                                     static_cast<ComputeType<E>>(sum), all.streamed);
    };
    plan(call).run(threads_of(call), call.workspace(), each, &of);
  }
};

// An operand with one element for each row of logits.
template <class T> struct Column {
  alignas(8) char slot[8];
  char* base;
  int64_t stride;
  explicit Column(const plugrad_view& view) : base(address(view, slot)), stride(is_immediate(view) ? 0 : step(view, 0)) {}
  T& operator[](int64_t i) const { return *reinterpret_cast<T*>(base + i * stride); }
};

struct Targets {
  Column<int64_t> values;
  int64_t classes;
  mutable std::atomic<int64_t> outside{-1};  // the first row with a target out of range

  Targets(const plugrad_view& view, int64_t count) : values(view), classes(count) {}
  // Returns the target of a row, or -1 if it is out of range.
  int64_t of(int64_t row) const {
    const int64_t t = values[row];
    if (t >= 0 && t < classes) return t;
    int64_t first = outside.load(std::memory_order_relaxed);
    while ((first < 0 || row < first) && !outside.compare_exchange_weak(first, row, std::memory_order_relaxed)) continue;
    return -1;
  }
  void check(const char* op) const {
    const int64_t row = outside.load(std::memory_order_relaxed);
    if (row < 0) return;
    throw BackendError(PLUGRAD_INDEX_ERROR, std::string("[") + op + "] target " + std::to_string(values[row]) + " of row " +
                                                std::to_string(row) + " is out of range for " + std::to_string(classes) +
                                                " classes");
  }
};

template <class T> struct CrossEntropy {
  Column<T> loss, lse;
  Targets targets;

  static Lines plan(const Call& call) {
    const plugrad_view* const views[] = {&call.in(0)};
    return Lines(views, 0, 1);
  }
  static void run(const Call& call) {
    const CrossEntropy rows{Column<T>(call.out(0)), Column<T>(call.out(1)), Targets(call.in(1), call.in(0).shape[1])};
    const auto each = [](const void* context, char* const* p, int64_t i) {
      const CrossEntropy& r = *static_cast<const CrossEntropy*>(context);
      const T* x = line<T>(p[0]);
      T m;
      const T rest = Softmax<T>::log_sum(x, r.targets.classes, m);
      r.lse[i] = m + rest;
      const int64_t target = r.targets.of(i);
      if (target >= 0) r.loss[i] = (m - x[target]) + rest;
    };
    plan(call).run(threads_of(call), call.workspace(), each, &rows);
    rows.targets.check("cross_entropy");
  }
};

template <class T> struct CrossEntropyBackward {
  Column<T> grad, lse;
  Targets targets;

  static Lines plan(const Call& call) {
    const plugrad_view* const views[] = {&call.out(), &call.in(1)};
    return Lines(views, 1, 1);
  }
  static void run(const Call& call) {
    const CrossEntropyBackward rows{Column<T>(call.in(0)), Column<T>(call.in(3)), Targets(call.in(2), call.out().shape[1])};
    const auto each = [](const void* context, char* const* p, int64_t i) {
      const CrossEntropyBackward& r = *static_cast<const CrossEntropyBackward*>(context);
      const T scale = r.grad[i];
      Softmax<T>::scaled_powers(line<T>(p[0]), line<T>(p[1]), r.targets.classes, r.lse[i], scale);
      if (const int64_t target = r.targets.of(i); target >= 0) line<T>(p[0])[target] -= scale;
    };
    plan(call).run(threads_of(call), call.workspace(), each, &rows);
    rows.targets.check("cross_entropy_backward");
  }
};

template <class K> void append_lines(RowList& rows, uint32_t opcode, uint8_t dtype) {
  rows.push_back(with_workspace<workspace_of<K::plan>>(kernel<K::run>(opcode, dtype)));
}

template <class T> void append(RowList& rows) {
  append_lines<LogSoftmax<T>>(rows, PLUGRAD_OP_LOG_SOFTMAX, kDtype<T>);
  append_lines<SoftmaxForward<T>>(rows, PLUGRAD_OP_SOFTMAX, kDtype<T>);
  append_lines<CrossEntropy<T>>(rows, PLUGRAD_OP_CROSS_ENTROPY, kDtype<T>);
}
template <class T> void append_gradients(RowList& rows) {
  append_lines<LogSoftmaxBackward<T>>(rows, PLUGRAD_OP_LOG_SOFTMAX_BACKWARD, kDtype<T>);
  append_lines<SoftmaxBackward<T>>(rows, PLUGRAD_OP_SOFTMAX_BACKWARD, kDtype<T>);
  append_lines<CrossEntropyBackward<T>>(rows, PLUGRAD_OP_CROSS_ENTROPY_BACKWARD, kDtype<T>);
}

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_softmax<HWY_TARGET>(RowList& rows) {
  HWY_NAMESPACE::append<float>(rows);
  HWY_NAMESPACE::append<double>(rows);
  HWY_NAMESPACE::append_lines<HWY_NAMESPACE::SoftmaxForward<BFloat16>>(rows, PLUGRAD_OP_SOFTMAX, PLUGRAD_BF16);
}
template <> void append_softmax_backward<HWY_TARGET>(RowList& rows) {
  HWY_NAMESPACE::append_gradients<float>(rows);
  HWY_NAMESPACE::append_gradients<double>(rows);
  HWY_NAMESPACE::append_lines<HWY_NAMESPACE::SoftmaxBackward<BFloat16>>(rows, PLUGRAD_OP_SOFTMAX_BACKWARD, PLUGRAD_BF16);
}
}  // namespace plugrad::cpu
