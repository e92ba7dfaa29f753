// The inner loops of products with weights of 2, 4 or 8 bits. Codes are read in words of 32 bits: code i of each word of a
// vector meets vector i of a block of x, which is arranged once for all rows of the weight. Codes stay at their places in
// the words, which saves shifts: their place values, powers of two, are divided out of x.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/quantized.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/fold-inl.hpp>
#include <backends/cpu/quantized.hpp>
#include <backends/cpu/rows.hpp>

#include <hwy/cache_control.h>

#include <array>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using DU = hn::RebindToUnsigned<D>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

// Code i of each word, times its place value 2^(i bits): arranged vectors are divided by it. The last code is shifted
// instead, since it has the sign bit.
template <int bits, int i> HWY_INLINE V codes_of(hn::Vec<DU> words) {
  constexpr int kShift = i * bits;
  constexpr uint32_t kMask = ((1u << bits) - 1) << kShift;
  const auto code = kShift + bits == 32 ? hn::ShiftRight<kShift>(words) : hn::And(words, hn::Set(DU(), kMask));
  return hn::ConvertTo(D(), hn::BitCast(DI(), code));
}

// The scale, or the minimum, of each lane of a block.
class Spread {
 public:
  explicit HWY_INLINE Spread(const WordGroups& groups)
      : groups_(groups), index_(hn::SetTableIndices(D(), groups.spread ? groups.spread : kNone.data())) {}
  HWY_INLINE void turn_to_last() {
    if (groups_.spread) index_ = hn::SetTableIndices(D(), groups_.spread + lanes());
  }
  HWY_INLINE V of(const float* scales, int64_t block) const {
    if (groups_.spread) return hn::TableLookupLanes(hn::LoadU(D(), scales + groups_.first[block]), index_);
    return hn::GatherIndex(D(), scales, hn::LoadU(DI(), groups_.of_each_word + block * lanes()));
  }

 private:
  static constexpr std::array<int32_t, 16> kNone{};
  const WordGroups& groups_;
  decltype(hn::SetTableIndices(D(), static_cast<const int32_t*>(nullptr))) index_;
};

// The first words of a vector, and zeros. Masked loads touch no other memory, but some targets load all of it.
HWY_INLINE hn::Vec<DU> first_words(const uint32_t* words, int64_t count) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(DU(), static_cast<size_t>(count)), DU(), words);
#else
  uint32_t copy[HWY_MAX_BYTES / 4] = {};
  std::memcpy(copy, words, static_cast<size_t>(count) * sizeof(uint32_t));
  return hn::LoadU(DU(), copy);
#endif
}

constexpr int64_t kFold = 48;          // blocks summed in f32 before they are added in f64
constexpr int64_t kAheadBytes = 1024;  // to prefetch

// Products of `rows` rows of the weight and `vectors` vectors.
template <int bits, bool symmetric, int rows, int vectors> class Dots {
 public:
  static HWY_INLINE void run(const uint8_t* const (&codes)[rows], const float* const (&scales)[rows],
                             const float* const (&minima)[rows], const WordGroups& groups, const float* blocks,
                             int64_t stride, double (&sums)[rows][vectors]) {
    Spread spread(groups);
    const int64_t wide = lanes(), whole = groups.words / wide;
    V totals[rows][vectors];
    zero(totals);
    for (int64_t begin = 0; begin < whole; begin += kFold) {
      if (begin) fold(totals, sums);
      for (int64_t b = begin; b < std::min(begin + kFold, whole); ++b) {
        hn::Vec<DU> words[rows];
#pragma GCC unroll 2
        for (int r = 0; r < rows; ++r) {
          hwy::Prefetch(codes[r] + b * wide * 4 + kAheadBytes);
          words[r] = hn::LoadU(DU(), reinterpret_cast<const uint32_t*>(codes[r]) + b * wide);
        }
        add_block(words, spread, scales, minima, b, blocks, stride, totals);
      }
    }
    if (whole < groups.blocks) {
      spread.turn_to_last();
      hn::Vec<DU> words[rows];
#pragma GCC unroll 2
      for (int r = 0; r < rows; ++r)
        words[r] = first_words(reinterpret_cast<const uint32_t*>(codes[r]) + whole * wide, groups.words - whole * wide);
      add_block(words, spread, scales, minima, whole, blocks, stride, totals);
    }
    fold(totals, sums);
  }

 private:
  static constexpr int kPer = 32 / bits, kBlockVectors = kPer + 1;

  static HWY_INLINE void zero(V (&totals)[rows][vectors]) {
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) totals[r][j] = hn::Zero(D());
  }
  static HWY_INLINE void fold(V (&totals)[rows][vectors], double (&sums)[rows][vectors]) {
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) sums[r][j] += static_cast<double>(Folding<Sum<float>>::fold_lanes(totals[r][j]));
    zero(totals);
  }

  static HWY_INLINE void add_block(const hn::Vec<DU> (&words)[rows], const Spread& spread,
                                   const float* const (&scales)[rows], const float* const (&minima)[rows], int64_t b,
                                   const float* blocks, int64_t stride, V (&totals)[rows][vectors]) {
    const D d;
    const float* x = blocks + b * kBlockVectors * lanes();
    V parts[rows][vectors];
    add_codes(words, x, stride, parts, std::make_integer_sequence<int, kPer>());
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r) {
      const V scale = spread.of(scales[r], b);
      const V minimum =
          symmetric ? hn::Mul(scale, hn::Set(d, -static_cast<float>(1 << (bits - 1)))) : spread.of(minima[r], b);
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) {
        const V sum = hn::LoadU(d, x + j * stride + kPer * lanes());
        totals[r][j] = hn::MulAdd(parts[r][j], scale, hn::MulAdd(sum, minimum, totals[r][j]));
      }
    }
  }

  // Sums the products of each code of the words. Even and odd codes have separate sums if registers suffice, since a product
  // waits for the product before it in the same sum.
  template <int... i>
  static HWY_INLINE void add_codes(const hn::Vec<DU> (&words)[rows], const float* x, int64_t stride,
                                   V (&parts)[rows][vectors], std::integer_sequence<int, i...>) {
    constexpr int kChains = rows * vectors <= 4 ? 2 : 1;
    const D d;
    V chains[kChains][rows][vectors];
    const auto add = [&]<int at>() {
      V codes[rows];
#pragma GCC unroll 2
      for (int r = 0; r < rows; ++r) codes[r] = codes_of<bits, at>(words[r]);
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) {
        const V factor = hn::LoadU(d, x + j * stride + at * lanes());
#pragma GCC unroll 2
        for (int r = 0; r < rows; ++r) {
          V& chain = chains[at % kChains][r][j];
          chain = at < kChains ? hn::Mul(codes[r], factor) : hn::MulAdd(codes[r], factor, chain);
        }
      }
    };
    (add.template operator()<i>(), ...);
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j)
        parts[r][j] = kChains == 2 ? hn::Add(chains[0][r][j], chains[kChains - 1][r][j]) : chains[0][r][j];
  }
};

// Two rows at a time, from the halves of the rows: processors fetch more of two streams than of one.
template <int bits, bool symmetric, int vectors>
HWY_NOINLINE void multiply_vectors(const QuantizedRows& rows, const WordGroups& groups, const float* blocks, int64_t stride,
                                   float* out, int64_t out_step) {
  const auto codes = [&](int64_t r) { return rows.codes + r * rows.bytes; };
  const auto scales = [&](int64_t r) { return rows.scales + r * rows.groups; };
  const auto minima = [&](int64_t r) { return symmetric ? nullptr : rows.minima + r * rows.groups; };
  const auto put = [&](int64_t r, const double(&sums)[vectors]) {
    for (int j = 0; j < vectors; ++j) out[j * out_step + r] = static_cast<float>(sums[j]);
  };
  const int64_t half = rows.count / 2;
  for (int64_t r = 0; r < half; ++r) {
    double sums[2][vectors] = {};
    Dots<bits, symmetric, 2, vectors>::run({codes(r), codes(half + r)}, {scales(r), scales(half + r)},
                                           {minima(r), minima(half + r)}, groups, blocks, stride, sums);
    put(r, sums[0]);
    put(half + r, sums[1]);
  }
  if (rows.count % 2 == 0) return;
  const int64_t last = rows.count - 1;
  double sums[1][vectors] = {};
  Dots<bits, symmetric, 1, vectors>::run({codes(last)}, {scales(last)}, {minima(last)}, groups, blocks, stride, sums);
  put(last, sums[0]);
}

using Multiply = void (*)(const QuantizedRows&, const WordGroups&, const float*, int64_t, float*, int64_t);
using Table = std::array<Multiply, kFewVectors>;
template <int bits, bool symmetric, int... i> constexpr Table table(std::integer_sequence<int, i...>) {
  return {multiply_vectors<bits, symmetric, i + 1>...};
}
template <int bits, bool symmetric>
constexpr Table kTable = table<bits, symmetric>(std::make_integer_sequence<int, kFewVectors>());

void multiply(const QuantizedRows& rows, const WordGroups& groups, int64_t bits, const float* blocks, int64_t stride,
              int64_t vectors, float* out, int64_t out_step) {
  const bool symmetric = !rows.minima;
  const Table& of_bits = bits == 2   ? symmetric ? kTable<2, true> : kTable<2, false>
                           : bits == 4 ? symmetric ? kTable<4, true> : kTable<4, false>
                                       : (symmetric ? kTable<8, true> : kTable<8, false>);
  of_bits[static_cast<size_t>(vectors - 1)](rows, groups, blocks, stride, out, out_step);
}

void arrange(const float* x, int64_t k, int64_t bits, float* blocks) {
  const int64_t wide = lanes(), per = 32 / bits, block = wide * per;
  for (int64_t first = 0; first < k; first += block, blocks += (per + 1) * wide) {
    std::fill_n(blocks, (per + 1) * wide, 0.0f);
    const int64_t count = std::min(block, k - first);
    float place = 1;
    for (int64_t i = 0; i < per; ++i, place /= static_cast<float>(1 << bits)) {
      const float factor = i + 1 < per ? place : 1.0f;
      for (int64_t l = 0; l * per + i < count; ++l) {
        const float value = x[first + l * per + i];
        blocks[i * wide + l] = value * factor;
        blocks[per * wide + l] += value;
      }
    }
  }
}

// Up to eight elements at a time: a group has a multiple of them.
void unpack(const QuantizedRows& rows, int64_t bits, int64_t group, int64_t first, int64_t count, float* out) {
  const hn::CappedTag<float, 8> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const int64_t wide = static_cast<int64_t>(hn::Lanes(d));
  const auto shifts = hn::Mul(hn::Iota(du, 0), hn::Set(du, static_cast<uint32_t>(bits))),
             mask = hn::Set(du, (1u << bits) - 1);
  const auto middle = hn::Set(d, rows.minima ? 0.0f : static_cast<float>(1 << (bits - 1)));
  for (int64_t r = 0; r < rows.count; ++r) {
    const uint8_t* const codes = rows.codes + r * rows.bytes;
    const float* const scales = rows.scales + r * rows.groups;
    const float* const minima = rows.minima ? rows.minima + r * rows.groups : nullptr;
    for (int64_t j = first; j < first + count; j += wide, out += wide) {
      const uint8_t* const from = codes + j * bits / 8;
      auto code = hn::Zero(du);
      if (bits == 8) {
        code = hn::PromoteTo(du, hn::LoadU(bytes, from));
      } else {
        uint32_t word = 0;
        std::memcpy(&word, from, static_cast<size_t>(std::max<int64_t>(1, wide * bits / 8)));
        code = hn::And(hn::Shr(hn::Set(du, word >> j * bits % 8), shifts), mask);
      }
      const auto number = hn::Sub(hn::ConvertTo(d, hn::BitCast(di, code)), middle), scale = hn::Set(d, scales[j / group]);
      hn::StoreU(minima ? hn::MulAdd(number, scale, hn::Set(d, minima[j / group])) : hn::Mul(number, scale), d, out);
    }
  }
}

template <class T> hn::Vec<D> loaded(const T* from) {
  if constexpr (std::is_same_v<T, float>) return hn::LoadU(D(), from);
  else return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<hwy::float16_t, D>(), reinterpret_cast<const hwy::float16_t*>(from)));
}
float number(float x) { return x; }
float number(Float16 x) { return static_cast<float>(widened(x)); }

template <class T> void convert_from(const T* from, int64_t count, float* to, float* minima) {
  const int64_t wide = lanes();
  int64_t g = 0;
  if (!minima) {
    for (; g + wide <= count; g += wide) hn::StoreU(loaded(from + g), D(), to + g);
    for (; g < count; ++g) to[g] = number(from[g]);
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  for (; g + wide <= count; g += wide) {
    const V low = loaded(from + 2 * g), high = loaded(from + 2 * g + wide);
    hn::StoreU(hn::ConcatEven(D(), high, low), D(), to + g);
    hn::StoreU(hn::ConcatOdd(D(), high, low), D(), minima + g);
  }
#endif
  for (; g < count; ++g) {
    to[g] = number(from[2 * g]);
    minima[g] = number(from[2 * g + 1]);
  }
}

void convert(const plugrad_view& scales, int64_t row, int64_t rows, float* to, float* minima) {
  const int64_t groups = scales.shape[1], parts = scales.shape[2], at = row * groups * parts;
  float* const second = parts == 2 ? minima : nullptr;
  if (scales.dtype == PLUGRAD_F32) convert_from(data<float>(scales) + at, rows * groups, to, second);
  else convert_from(data<Float16>(scales) + at, rows * groups, to, second);
}

template <class T> void quantized(const Call& call) {
  static const QuantizedKernels kernels{lanes(), arrange, multiply, unpack, convert};
  run_quantized<T>(call, kernels, product_kernels<HWY_TARGET, float>());
}
template <class T> uint64_t workspace(const Call& call) { return quantized_workspace<T>(call, lanes()); }

constexpr uint16_t kDense = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;
template <class T> KernelRow row() {
  return with_workspace<workspace<T>>(kernel<quantized<T>>(PLUGRAD_OP_QUANTIZED_MATMUL, element_dtype<T>, kDense));
}

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_quantized<HWY_TARGET>(RowList& rows) {
  rows.push_back(HWY_NAMESPACE::row<float>());
  rows.push_back(HWY_NAMESPACE::row<BFloat16>());
}
}  // namespace plugrad::cpu
