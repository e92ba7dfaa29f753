// Fill, copy, iota, and the ops that are one exact operation.
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

// Integers wrap: their arithmetic is that of unsigned numbers.
template <class T> auto wrapping(T x) {
  if constexpr (std::is_floating_point_v<T>) return x;
  else return static_cast<std::make_unsigned_t<T>>(x);
}

struct Add {
  template <class T> static T of(T a, T b) { return T(wrapping(a) + wrapping(b)); }
};
struct Sub {
  template <class T> static T of(T a, T b) { return T(wrapping(a) - wrapping(b)); }
};
struct Mul {
  template <class T> static T of(T a, T b) { return T(wrapping(a) * wrapping(b)); }
};
struct Div {
  template <class T> static T of(T a, T b) { return a / b; }
};
struct Maximum {
  template <class T> static T of(T a, T b) {
    const T larger = a > b ? a : b;  // b where a is NaN
    return b != b ? b : (a != a ? a : larger);
  }
};
struct Minimum {
  template <class T> static T of(T a, T b) {
    const T smaller = a < b ? a : b;
    return b != b ? b : (a != a ? a : smaller);
  }
};
struct Neg {
  template <class T> static T of(T x) {
    if constexpr (std::is_floating_point_v<T>) return -x;  // 0 - x would lose the sign of 0
    else return T(0 - wrapping(x));
  }
};
struct Abs {
  template <class T> static T of(T x) {
    if constexpr (std::is_floating_point_v<T>) return std::abs(x);
    else return x < 0 ? T(0 - wrapping(x)) : x;
  }
};
struct Sign {
  template <class T> static T of(T x) {
    const T positive = x > 0 ? T(1) : x;
    return x < 0 ? T(-1) : positive;
  }
};
struct Sqrt {
  template <class T> static T of(T x) { return std::sqrt(x); }
};
struct Relu {
  template <class T> static T of(T x) { return x < 0 ? T(0) : x; }
};


// T is an unsigned integer of the element's size, so that bits are kept.
template <class T> struct Copy {
  static void row(char* const* p, int64_t n, const void*) { std::memcpy(p[0], p[1], size_t(n) * sizeof(T)); }
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
    if (out.count == 1) [[likely]] return row(p, 1, nullptr), PLUGRAD_OK;
    if (out.count <= kGrain && is_dense(out)) {
      if (is_dense(in)) return row(p, out.count, nullptr), PLUGRAD_OK;
      if (is_immediate(in)) return fill(p, out.count, nullptr), PLUGRAD_OK;
    }
    return run_kernel<general>(self, stream, op);
  }
};

template <class T> T at_index(int64_t i, const plugrad_view& start, const plugrad_view& step) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto wide = [](const plugrad_view& v) { return is_immediate(v) ? immediate_of<double>(v) : double(*data<T>(v)); };
    return T(wide(start) + double(i) * wide(step));
  } else {
    return T(uint64_t(element<T>(start)) + uint64_t(i) * uint64_t(element<T>(step)));
  }
}

// The rank and all but the last extent only say where a row begins.
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

template <class F, class T> void unary(RowList& rows, uint32_t opcode) {
  rows.push_back(row(opcode, kDtype<T>, Unary<F, T, T>::run));
}
template <class F, class T> void binary(RowList& rows, uint32_t opcode) {
  rows.push_back(row(opcode, kDtype<T>, Binary<F, T, T>::run));
}

template <class T> void append_numeric(RowList& rows) {
  rows.push_back(kernel<iota<T>>(PLUGRAD_OP_IOTA, kDtype<T>));
  unary<Neg, T>(rows, PLUGRAD_OP_NEG);
  unary<Abs, T>(rows, PLUGRAD_OP_ABS);
  unary<Sign, T>(rows, PLUGRAD_OP_SIGN);
  binary<Add, T>(rows, PLUGRAD_OP_ADD);
  binary<Sub, T>(rows, PLUGRAD_OP_SUB);
  binary<Mul, T>(rows, PLUGRAD_OP_MUL);
  binary<Maximum, T>(rows, PLUGRAD_OP_MAXIMUM);
  binary<Minimum, T>(rows, PLUGRAD_OP_MINIMUM);
}

template <class T> void append_floating(RowList& rows) {
  append_numeric<T>(rows);
  unary<Sqrt, T>(rows, PLUGRAD_OP_SQRT);
  unary<Relu, T>(rows, PLUGRAD_OP_RELU);
  binary<Div, T>(rows, PLUGRAD_OP_DIV);
}

template <class T> void append_copy(RowList& rows, std::initializer_list<uint8_t> dtypes) {
  for (const uint32_t opcode : {PLUGRAD_OP_FILL, PLUGRAD_OP_COPY})
    for (const uint8_t dtype : dtypes) rows.push_back(row(opcode, dtype, Copy<T>::run));
}

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_arithmetic<HWY_TARGET>(RowList& rows) {
  HWY_NAMESPACE::append_copy<uint32_t>(rows, {PLUGRAD_F32});
  HWY_NAMESPACE::append_copy<uint64_t>(rows, {PLUGRAD_F64, PLUGRAD_I64});
  HWY_NAMESPACE::append_copy<uint8_t>(rows, {PLUGRAD_BOOL});
  HWY_NAMESPACE::append_floating<float>(rows);
  HWY_NAMESPACE::append_floating<double>(rows);
  HWY_NAMESPACE::append_numeric<int64_t>(rows);
}
}  // namespace plugrad::cpu
