// Fill, copy, iota, and elementwise ops of a few exact operations, including gradients.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/arithmetic.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/elementwise-inl.hpp>
#include <backends/cpu/pool.hpp>

#include <cmath>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

// T is an unsigned integer of the element's size, to preserve all bits.
template <class T> struct Copy {
  static void row(char* const* p, int64_t n, const void*) { std::memcpy(p[0], p[1], static_cast<size_t>(n) * sizeof(T)); }
  static void fill(char* const* p, int64_t n, const void*) {
    T* out = reinterpret_cast<T*>(p[0]);
    const T value = *reinterpret_cast<const T*>(p[1]);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  }
  static constexpr Elementwise kKind{1, 1, 0, 1, {sizeof(T), sizeof(T)}, {row, fill}};
  static void general(const Call& call) { run_elementwise(kKind, call); }

  static plugrad_status run(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
    const plugrad_view &out = *op->views[0], &in = *op->views[1];
    alignas(8) char slot[8];
    char* const p[] = {data<char>(out), address(in, slot)};
    if (out.count == 1) [[likely]]
      return row(p, 1, nullptr), PLUGRAD_OK;
    if (out.count <= kGrain && is_dense(out)) {
      if (is_dense(in)) return row(p, out.count, nullptr), PLUGRAD_OK;
      if (is_immediate(in)) return fill(p, out.count, nullptr), PLUGRAD_OK;
    }
    return run_kernel<general>(self, stream, op);
  }
};

template <class T> T at_index(int64_t i, const plugrad_view& start, const plugrad_view& step) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(element<T>(start)) +
                          static_cast<uint64_t>(i) * static_cast<uint64_t>(element<T>(step)));
  } else {
    const auto wide = [](const plugrad_view& v) {
      return is_immediate(v) ? immediate_of<double>(v) : static_cast<double>(*data<T>(v));
    };
    return static_cast<T>(wide(start) + static_cast<double>(i) * wide(step));
  }
}

// Generates rows along the last axis; the remaining extents only determine the start of a row.
template <class T> void iota(const Call& call) {
  const plugrad_view& out = call.out();
  const int64_t columns = out.rank ? out.shape[out.rank - 1] : 1, rows = out.count / columns;
  const int64_t stride = out.rank ? step(out, out.rank - 1) : 0, piece = std::min(columns, kGrain);
  const int64_t pieces = (columns + piece - 1) / piece, each = std::max<int64_t>(1, kGrain / piece);
  parallel(threads_of(call), (rows * pieces + each - 1) / each, [&](int64_t task) {
    for (int64_t t = task * each; t < std::min(rows * pieces, (task + 1) * each); ++t) {
      int64_t row = t / pieces;
      const int64_t first = t % pieces * piece, last = std::min(columns, first + piece), base = row * columns;
      char* p = data<char>(out) + first * stride;
      for (int d = out.rank - 2; d >= 0; row /= out.shape[d--]) p += row % out.shape[d] * step(out, d);
      for (int64_t i = first; i < last; ++i, p += stride)
        *reinterpret_cast<T*>(p) = at_index<T>(base + i, call.in(0), call.in(1));
    }
  });
}

struct Maker : PlainMaker {
  static constexpr bool makes(const OpInfo& op) {
    return !is_approximated(op) && op.operands[0] != 'B' && op.opcode != PLUGRAD_OP_WHERE;
  }
};

template <class T> constexpr KernelRow copy_row(uint32_t opcode, uint8_t dtype) {
  return of_kind(kernel_row(opcode, dtype, Copy<T>::run), Copy<T>::kKind);
}
template <class... T> constexpr auto fills_and_copies(Types<T...>) {
  return join(std::array{copy_row<BitsOf<sizeof(T)>>(PLUGRAD_OP_FILL, element_dtype<T>)...},
              std::array{copy_row<BitsOf<sizeof(T)>>(PLUGRAD_OP_COPY, element_dtype<T>)...});
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> iotas(Types<T...>) {
  return {kernel<iota<T>>(PLUGRAD_OP_IOTA, element_dtype<T>)...};
}

constexpr auto kRows = join(fills_and_copies(kStored), iotas(kNumbers), elementwise_rows<Maker>(kAny));

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_arithmetic<HWY_TARGET>(RowList& rows) { append(rows, HWY_NAMESPACE::kRows); }
}  // namespace plugrad::cpu
