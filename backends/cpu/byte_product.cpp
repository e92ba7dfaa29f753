// INTEGER_MATMUL by VNNI: an instruction adds the products of four bytes of each operand to each of 16 sums of i32, exactly.
// Processors without it decline the op, and the host computes it by products of f32, which are exact for parts of the sums.
#include <backends/cpu/contraction.hpp>
#include <backends/cpu/rows.hpp>
#include <plugrad/sdk/rows.hpp>

#if defined(__x86_64__)
#include <backends/cpu/intrinsics.hpp>

#include <utility>

HWY_PUSH_ATTRIBUTES("avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,fma,bmi,bmi2")
namespace plugrad::cpu {
namespace {

constexpr int64_t kLanes = 16, kVectors = 4, kPanel = kLanes * kVectors;  // columns of a panel
constexpr int64_t kFour = 4;                                              // bytes along k in a lane
constexpr int kRows = 6;                                                  // with a panel they fill the registers
constexpr int64_t kRowsOfTask = 16 * kRows;

// The left operand as bytes from 0 to 255, in rows of `depth` fours; the right operand in panels. 128 times the sums of
// columns is subtracted where the left operand's bytes are i8 plus 128.
struct Packed {
  int64_t m, n, k, fours;
  uint8_t* left;
  int8_t* panels;
  int32_t* sums;

  Packed(const Call& call, char* memory)
      : m(call.out().shape[0]), n(call.out().shape[1]), k(call.in(0).shape[1]), fours(ceil_div(k, kFour)),
        left(reinterpret_cast<uint8_t*>(memory)), panels(reinterpret_cast<int8_t*>(left + left_bytes())),
        sums(reinterpret_cast<int32_t*>(panels + panel_bytes())) {}
  int64_t left_bytes() const { return round_up(m * fours * kFour, 64); }
  int64_t columns() const { return round_up(n, kPanel); }
  int64_t panel_bytes() const { return columns() * fours * kFour; }
  uint64_t bytes() const {
    return static_cast<uint64_t>(left_bytes() + panel_bytes() + columns() * int64_t{sizeof(int32_t)});
  }
};

int64_t step(const plugrad_view& view, int axis) { return view.shape[axis] == 1 ? 0 : view.strides[axis]; }

template <class T> void pack_rows(const plugrad_view& a, const Packed& p, int64_t first, int64_t last) {
  constexpr int kShift = std::is_same_v<T, int8_t> ? 128 : 0;
  const int64_t row = step(a, 0), column = step(a, 1), depth = p.fours * kFour;
  for (int64_t r = first; r < last; ++r) {
    const T* const from = data<T>(a) + r * row;
    uint8_t* const to = p.left + r * depth;
    if (column == 1)
      for (int64_t i = 0; i < p.k; ++i) to[i] = static_cast<uint8_t>(from[i] + kShift);
    else
      for (int64_t i = 0; i < p.k; ++i) to[i] = static_cast<uint8_t>(from[i * column] + kShift);
    for (int64_t i = p.k; i < depth; ++i) to[i] = 0;
  }
}

// Fours of kPanel columns, from four rows of them.
void interleave(const __m512i (&rows)[4], int8_t* to) {
  const __m512i low01 = _mm512_unpacklo_epi8(rows[0], rows[1]), high01 = _mm512_unpackhi_epi8(rows[0], rows[1]);
  const __m512i low23 = _mm512_unpacklo_epi8(rows[2], rows[3]), high23 = _mm512_unpackhi_epi8(rows[2], rows[3]);
  // Quarter l of part q: the columns 16 l + 4 q .. 16 l + 4 q + 3.
  const __m512i part[] = {_mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
                          _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
  const __m512i first = _mm512_shuffle_i32x4(part[0], part[1], 0x44), second = _mm512_shuffle_i32x4(part[2], part[3], 0x44);
  const __m512i third = _mm512_shuffle_i32x4(part[0], part[1], 0xee), fourth = _mm512_shuffle_i32x4(part[2], part[3], 0xee);
  _mm512_storeu_si512(to, _mm512_shuffle_i32x4(first, second, 0x88));
  _mm512_storeu_si512(to + 64, _mm512_shuffle_i32x4(first, second, 0xdd));
  _mm512_storeu_si512(to + 128, _mm512_shuffle_i32x4(third, fourth, 0x88));
  _mm512_storeu_si512(to + 192, _mm512_shuffle_i32x4(third, fourth, 0xdd));
}

// Up to four rows of `count` columns, of b with the steps row and column, as fours.
void pack_fours(const int8_t* b, int64_t row, int64_t column, int64_t rows, int64_t count, int8_t* to) {
  if (column == 1) {
    const __mmask64 mask = count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
    __m512i lines[4];
#pragma GCC unroll 4
    for (int64_t q = 0; q < kFour; ++q)
      lines[q] = q < rows ? _mm512_maskz_loadu_epi8(mask, b + q * row) : _mm512_setzero_si512();
    return interleave(lines, to);
  }
  std::fill_n(to, kPanel * kFour, int8_t{0});
  if (row == 1 && rows == kFour) {
    for (int64_t j = 0; j < count; ++j) __builtin_memcpy(to + j * kFour, b + j * column, kFour);
    return;
  }
  for (int64_t j = 0; j < count; ++j)
    for (int64_t q = 0; q < rows; ++q) to[j * kFour + q] = b[q * row + j * column];
}

// A panel: for each four along k, the four bytes of each of kPanel columns; and `shift` times the sums of its columns.
void pack_panel(const plugrad_view& b, const Packed& p, int64_t panel, int shift) {
  const int64_t row = step(b, 0), column = step(b, 1), first = panel * kPanel, count = std::min(kPanel, p.n - first);
  int8_t* to = p.panels + panel * kPanel * p.fours * kFour;
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sums[kVectors] = {};
  for (int64_t i = 0; i < p.k; i += kFour, to += kPanel * kFour) {
    pack_fours(data<int8_t>(b) + i * row + first * column, row, column, std::min(kFour, p.k - i), count, to);
    if (shift)
      for (int v = 0; v < kVectors; ++v) sums[v] = _mm512_dpbusd_epi32(sums[v], ones, _mm512_loadu_si512(to + v * 64));
  }
  for (int v = 0; v < kVectors; ++v)
    _mm512_storeu_si512(p.sums + first + v * kLanes, _mm512_mullo_epi32(sums[v], _mm512_set1_epi32(shift)));
}

// Rows of the left operand times a panel; `columns` of them are stored.
template <int rows>
void multiply(const Packed& p, const uint8_t* left, const int8_t* panel, const int32_t* sums, int32_t* out, int64_t out_row,
              int64_t columns) {
  __m512i totals[rows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) totals[r][v] = _mm512_setzero_si512();
  const int64_t depth = p.fours * kFour;
  for (int64_t i = 0; i < p.fours; ++i, panel += kPanel * kFour) {
    __m512i right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = _mm512_loadu_si512(panel + v * kLanes * kFour);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      int32_t four;
      __builtin_memcpy(&four, left + r * depth + i * kFour, sizeof four);
      const __m512i factor = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        asm("vpdpbusd %2, %1, %0" : "+v"(totals[r][v]) : "v"(factor), "v"(right[v]));  // the intrinsic copies the sums
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int64_t some = std::clamp<int64_t>(columns - v * kLanes, 0, kLanes);
    const auto mask = static_cast<__mmask16>((1u << some) - 1);
    const __m512i less = _mm512_loadu_si512(sums + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
      _mm512_mask_storeu_epi32(out + r * out_row + v * kLanes, mask, _mm512_sub_epi32(totals[r][v], less));
  }
}

using Multiply = void (*)(const Packed&, const uint8_t*, const int8_t*, const int32_t*, int32_t*, int64_t, int64_t);
template <int... i> constexpr std::array<Multiply, sizeof...(i)> table(std::integer_sequence<int, i...>) {
  return {multiply<i + 1>...};
}
constexpr auto kMultiply = table(std::make_integer_sequence<int, kRows>());

template <class T> void run(const Call& call) {
  constexpr int kShift = std::is_same_v<T, int8_t> ? 128 : 0;
  if (call.out().layout & PLUGRAD_STRIDED)
    throw BackendError(PLUGRAD_UNSUPPORTED, "a product of bytes writes a dense output");
  const Packed p(call, call.workspace());
  const int threads = threads_of(call);
  const int64_t panels = p.columns() / kPanel, blocks = ceil_div(p.m, kRowsOfTask);
  parallel(threads, blocks + panels, [&](int64_t task) {
    if (task < panels) pack_panel(call.in(1), p, task, kShift);
    else pack_rows<T>(call.in(0), p, (task - panels) * kRowsOfTask, std::min(p.m, (task - panels + 1) * kRowsOfTask));
  });
  int32_t* const out = data<int32_t>(call.out());
  parallel(threads, blocks * panels, [&](int64_t task) {
    const int64_t panel = task / blocks, first = task % blocks * kRowsOfTask, last = std::min(p.m, first + kRowsOfTask);
    for (int64_t r = first; r < last; r += kRows) {
      const int64_t rows = std::min<int64_t>(kRows, last - r);
      kMultiply[static_cast<size_t>(rows - 1)](p, p.left + r * p.fours * kFour, p.panels + panel * kPanel * p.fours * kFour,
                                               p.sums + panel * kPanel, out + r * p.n + panel * kPanel, p.n,
                                               p.n - panel * kPanel);
    }
  });
}

uint64_t workspace(const Call& call) { return Packed(call, nullptr).bytes(); }

template <class T> KernelRow row(uint8_t dtype) {
  return with_workspace<workspace>(
      kernel<run<T>>(PLUGRAD_OP_INTEGER_MATMUL, dtype, PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE));
}

}  // namespace
}  // namespace plugrad::cpu
HWY_POP_ATTRIBUTES
#endif

namespace plugrad::cpu {
void append_byte_products(RowList& rows) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx512vnni")) return;
  rows.push_back(row<uint8_t>(PLUGRAD_U8));
  rows.push_back(row<int8_t>(PLUGRAD_I8));
#else
  static_cast<void>(rows);
#endif
}
}  // namespace plugrad::cpu
