// Comparisons and the choice between two values.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/comparisons.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/elementwise-inl.hpp>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

// T is an unsigned integer of the element's size, to preserve NaN payloads.
template <class T> struct Where {
  template <bool a_single, bool b_single> static void row(char* const* p, int64_t n, const void*) {
    T* out = reinterpret_cast<T*>(p[0]);
    const Bool* condition = reinterpret_cast<const Bool*>(p[1]);
    const T *a = reinterpret_cast<const T*>(p[2]), *b = reinterpret_cast<const T*>(p[3]);
    const T a0 = *a, b0 = *b;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const T chosen = a_single ? a0 : a[i], other = b_single ? b0 : b[i];
      out[i] = condition[i] ? chosen : other;
    }
  }
  static constexpr Elementwise kKind{
      1,
      3,
      0,
      1,
      {sizeof(T), 1, sizeof(T), sizeof(T)},
      {row<false, false>, nullptr, row<true, false>, nullptr, row<false, true>, nullptr, row<true, true>}};
  static void general(const Call& call) { run_elementwise(kKind, call); }

  static plugrad_status run(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
    const plugrad_view &out = *op->views[0], &condition = *op->views[1], &a = *op->views[2], &b = *op->views[3];
    alignas(8) char slots[3][8];
    char* const p[] = {data<char>(out), address(condition, slots[0]), address(a, slots[1]), address(b, slots[2])};
    if (out.count == 1) return row<true, true>(p, 1, nullptr), PLUGRAD_OK;
    const bool a_serves = is_dense(a) || is_immediate(a), b_serves = is_dense(b) || is_immediate(b);
    if (out.count <= kGrain && is_dense(out) && is_dense(condition) && a_serves && b_serves) {
      const RowFunction f = kKind.rows[2 * is_immediate(a) + 4 * is_immediate(b)];
      return f(p, out.count, nullptr), PLUGRAD_OK;
    }
    return run_kernel<general>(self, stream, op);
  }
};

struct Maker : PlainMaker {
  static constexpr bool makes(const OpInfo& op) { return op.operands[0] == 'B' || op.opcode == PLUGRAD_OP_WHERE; }

  using PlainMaker::row;
  template <class F, class Out, class Condition, class A, class B>
  static constexpr KernelRow row(const OpInfo& op, uint8_t dtype) {
    using Row = Where<BitsOf<sizeof(A)>>;
    return of_kind(kernel_row(op.opcode, dtype, Row::run), Row::kKind);
  }
};
constexpr auto kRows = elementwise_rows<Maker>(kAny);

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_comparisons<HWY_TARGET>(RowList& rows) { append(rows, HWY_NAMESPACE::kRows); }
}  // namespace plugrad::cpu
