// Loops over contiguous rows, and the functions for calls by the host. Included once for each instruction set.
#if defined(PLUGRAD_CPU_ELEMENTWISE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_ELEMENTWISE_INL
#undef PLUGRAD_CPU_ELEMENTWISE_INL
#else
#define PLUGRAD_CPU_ELEMENTWISE_INL
#endif

#include <backends/cpu/elementwise.hpp>
#include <backends/cpu/rows.hpp>
#include <plugrad/sdk/rows.hpp>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {

// to = x, rounded. Compilers do not vectorise loops that assign whole objects, such as halves.
template <class R, class X> HWY_INLINE void store(R& to, X x) {
  if constexpr (requires { to.bits; }) to.bits = static_cast<R>(x).bits;
  else to = static_cast<R>(x);
}

// The pragma states a guarantee of ops.def: an output equals an input element by element, or they do not overlap. The case
// of one element is a separate function, since vector code needs an aligned stack frame.

template <class F, class R, class A> struct Unary {
  static void dense(char* const* p, int64_t n, const void*) {
    R* out = reinterpret_cast<R*>(p[0]);
    const A* a = reinterpret_cast<const A*>(p[1]);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) store(out[i], F()(widened(a[i])));
  }
  static constexpr Elementwise kKind{1, 1, 0, 1, {sizeof(R), sizeof(A)}, {dense}};

  static plugrad_status run(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
    const plugrad_view &out = *op->views[0], &a = *op->views[1];
    if (out.count != 1) return several(self, stream, op);
    *data<R>(out) = static_cast<R>(F()(widened(element<A>(a))));
    return PLUGRAD_OK;
  }
  [[gnu::noinline]] static plugrad_status several(const plugrad_kernel* self, plugrad_stream* stream,
                                                  const plugrad_op* op) noexcept {
    const plugrad_view &out = *op->views[0], &a = *op->views[1];
    if (out.count <= kGrain && is_dense(out) && is_dense(a)) {
      char* const p[] = {data<char>(out), data<char>(a)};
      dense(p, out.count, nullptr);
      return PLUGRAD_OK;
    }
    return run_kernel<general>(self, stream, op);
  }
  static void general(const Call& call) { run_elementwise(kKind, call); }
};

template <class F, class R, class A> struct Binary {
  static void dense(char* const* p, int64_t n, const void*) {
    R* out = reinterpret_cast<R*>(p[0]);
    const A *a = reinterpret_cast<const A*>(p[1]), *b = reinterpret_cast<const A*>(p[2]);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) store(out[i], F()(widened(a[i]), widened(b[i])));
  }
  static void left(char* const* p, int64_t n, const void*) {  // the left operand is one element
    R* out = reinterpret_cast<R*>(p[0]);
    const A a = *reinterpret_cast<const A*>(p[1]), *b = reinterpret_cast<const A*>(p[2]);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) store(out[i], F()(widened(a), widened(b[i])));
  }
  static void right(char* const* p, int64_t n, const void*) {
    R* out = reinterpret_cast<R*>(p[0]);
    const A *a = reinterpret_cast<const A*>(p[1]), b = *reinterpret_cast<const A*>(p[2]);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) store(out[i], F()(widened(a[i]), widened(b)));
  }
  static constexpr Elementwise kKind{1, 2, 0, 1, {sizeof(R), sizeof(A), sizeof(A)}, {dense, left, right}};

  static plugrad_status run(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
    const plugrad_view &out = *op->views[0], &a = *op->views[1], &b = *op->views[2];
    if (out.count != 1) return several(self, stream, op);
    *data<R>(out) = static_cast<R>(F()(widened(element<A>(a)), widened(element<A>(b))));
    return PLUGRAD_OK;
  }
  [[gnu::noinline]] static plugrad_status several(const plugrad_kernel* self, plugrad_stream* stream,
                                                  const plugrad_op* op) noexcept {
    const plugrad_view &out = *op->views[0], &a = *op->views[1], &b = *op->views[2];
    if (out.count <= kGrain && is_dense(out) && is_dense(a)) {
      alignas(8) char slot[8];
      char* const p[] = {data<char>(out), data<char>(a), address(b, slot)};
      if (is_dense(b)) return dense(p, out.count, nullptr), PLUGRAD_OK;
      if (is_immediate(b)) return right(p, out.count, nullptr), PLUGRAD_OK;
    }
    return run_kernel<general>(self, stream, op);
  }
  static void general(const Call& call) { run_elementwise(kKind, call); }
};

// Rows of ops with one or two inputs, for functions vectorised by compilers.
struct PlainMaker {
  template <class F, class Out, class A> static constexpr KernelRow row(const OpInfo& op, uint8_t dtype) {
    using Row = Unary<F, Stored<Out>, Stored<A>>;
    return of_kind(kernel_row(op.opcode, dtype, Row::run), Row::kKind);
  }
  template <class F, class Out, class A, class B> static constexpr KernelRow row(const OpInfo& op, uint8_t dtype) {
    using Row = Binary<F, Stored<Out>, Stored<A>>;
    return of_kind(kernel_row(op.opcode, dtype, Row::run), Row::kKind);
  }
};

}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
