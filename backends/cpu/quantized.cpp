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

constexpr int kRows = 2;  // of the weight at a time: processors fetch more of two streams than of one

// Products of kRows rows of the weight and `vectors` vectors.
template <int bits, int vectors> class Dots {
 public:
  static HWY_INLINE void run(const uint8_t* const (&codes)[kRows], const float* const (&scales)[kRows],
                             const float* const (&minima)[kRows], const WordGroups& groups, const float* blocks,
                             int64_t stride, double (&sums)[kRows][vectors]) {
    Spread spread(groups);
    const int64_t wide = lanes(), whole = groups.words / wide;
    hn::Vec<DU> words[kRows];
    V totals[kRows][vectors];
    zero(totals);
    for (int64_t begin = 0; begin < whole; begin += kFold) {
      if (begin) fold(totals, sums);
      for (int64_t b = begin; b < std::min(begin + kFold, whole); ++b) {
#pragma GCC unroll 2
        for (int r = 0; r < kRows; ++r) {
          hwy::Prefetch(codes[r] + b * wide * 4 + kAheadBytes);
          words[r] = hn::LoadU(DU(), reinterpret_cast<const uint32_t*>(codes[r]) + b * wide);
        }
        add_block(words, spread, scales, minima, b, blocks, stride, totals);
      }
    }
    if (whole < groups.blocks) {
      spread.turn_to_last();
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r)
        words[r] = first_words(reinterpret_cast<const uint32_t*>(codes[r]) + whole * wide, groups.words - whole * wide);
      add_block(words, spread, scales, minima, whole, blocks, stride, totals);
    }
    fold(totals, sums);
  }

 private:
  static constexpr int kPer = 32 / bits, kBlockVectors = kPer + 1;

  static HWY_INLINE void zero(V (&totals)[kRows][vectors]) {
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) totals[r][j] = hn::Zero(D());
  }
  static HWY_INLINE void fold(V (&totals)[kRows][vectors], double (&sums)[kRows][vectors]) {
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) sums[r][j] += static_cast<double>(Folding<Sum<float>>::fold_lanes(totals[r][j]));
    zero(totals);
  }

  static HWY_INLINE void add_block(const hn::Vec<DU> (&words)[kRows], const Spread& spread,
                                   const float* const (&scales)[kRows], const float* const (&minima)[kRows], int64_t b,
                                   const float* blocks, int64_t stride, V (&totals)[kRows][vectors]) {
    const float* x = blocks + b * kBlockVectors * lanes();
    V parts[kRows][vectors];
    add_codes(words, x, stride, parts, std::make_integer_sequence<int, kPer>());
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) {
      const V scale = spread.of(scales[r], b), minimum = spread.of(minima[r], b);
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) {
        const V sum = hn::LoadU(D(), x + j * stride + kPer * lanes());
        totals[r][j] = hn::MulAdd(parts[r][j], scale, hn::MulAdd(sum, minimum, totals[r][j]));
      }
    }
  }

  // Sums the products of each code of the words. Even and odd codes have separate sums if registers suffice, since a product
  // waits for the product before it in the same sum.
  template <int... i>
  static HWY_INLINE void add_codes(const hn::Vec<DU> (&words)[kRows], const float* x, int64_t stride,
                                   V (&parts)[kRows][vectors], std::integer_sequence<int, i...>) {
    constexpr int kChains = vectors <= 2 ? 2 : 1;
    V chains[kChains][kRows][vectors];
    const auto add = [&]<int at>() {
      V codes[kRows];
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) codes[r] = codes_of<bits, at>(words[r]);
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) {
        const V factor = hn::LoadU(D(), x + j * stride + at * lanes());
#pragma GCC unroll 2
        for (int r = 0; r < kRows; ++r) {
          V& chain = chains[at % kChains][r][j];
          chain = at < kChains ? hn::Mul(codes[r], factor) : hn::MulAdd(codes[r], factor, chain);
        }
      }
    };
    (add.template operator()<i>(), ...);
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j)
        parts[r][j] = kChains == 2 ? hn::Add(chains[0][r][j], chains[kChains - 1][r][j]) : chains[0][r][j];
  }
};

// The pairs of rows come from the halves of the rows. Of an odd number, the last row is computed twice.
template <int bits, int vectors>
HWY_NOINLINE void multiply_vectors(const QuantizedRows& rows, const WordGroups& groups, const float* blocks, int64_t stride,
                                   float* out, int64_t out_step) {
  const auto codes = [&](int64_t r) { return rows.codes + r * rows.bytes; };
  const auto scales = [&](int64_t r) { return rows.scales + r * rows.groups; };
  const auto minima = [&](int64_t r) { return rows.minima + r * rows.groups; };
  const int64_t half = (rows.count + 1) / 2;
  for (int64_t r = 0; r < half; ++r) {
    const int64_t other = std::min(half + r, rows.count - 1);
    double sums[kRows][vectors] = {};
    Dots<bits, vectors>::run({codes(r), codes(other)}, {scales(r), scales(other)}, {minima(r), minima(other)}, groups,
                             blocks, stride, sums);
    for (int j = 0; j < vectors; ++j) {
      out[j * out_step + r] = static_cast<float>(sums[0][j]);
      out[j * out_step + other] = static_cast<float>(sums[1][j]);
    }
  }
}

using Multiply = void (*)(const QuantizedRows&, const WordGroups&, const float*, int64_t, float*, int64_t);
using Table = std::array<Multiply, kMostVectors>;
template <int bits, int... i> constexpr Table table(std::integer_sequence<int, i...>) {
  return {multiply_vectors<bits, i + 1>...};
}
template <int bits> constexpr Table kTable = table<bits>(std::make_integer_sequence<int, kMostVectors>());

void multiply(const QuantizedRows& rows, const WordGroups& groups, int64_t bits, const float* blocks, int64_t stride,
              int64_t vectors, float* out, int64_t out_step) {
  const Table& of_bits = bits == 2 ? kTable<2> : bits == 4 ? kTable<4> : kTable<8>;
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
  for (int64_t r = 0; r < rows.count; ++r) {
    const uint8_t* const codes = rows.codes + r * rows.bytes;
    const float* const scales = rows.scales + r * rows.groups;
    const float* const minima = rows.minima + r * rows.groups;
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
      const auto number = hn::ConvertTo(d, hn::BitCast(di, code));
      hn::StoreU(hn::MulAdd(number, hn::Set(d, scales[j / group]), hn::Set(d, minima[j / group])), d, out);
    }
  }
}

template <class T> hn::Vec<D> loaded(const T* from) {
  if constexpr (std::is_same_v<T, float>) return hn::LoadU(D(), from);
  else return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<hwy::float16_t, D>(), reinterpret_cast<const hwy::float16_t*>(from)));
}
float number(float x) { return x; }
float number(Float16 x) { return static_cast<float>(widened(x)); }

template <class T> void convert_pairs(const T* from, int64_t count, float* to, float* minima) {
  int64_t g = 0;
#if HWY_TARGET != HWY_SCALAR
  const int64_t wide = lanes();
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

// Symmetric codes have the minimum -2^(bits - 1) s.
template <class T> void convert_scales(const T* from, int64_t count, float middle, float* to, float* minima) {
  const int64_t wide = lanes();
  int64_t g = 0;
  for (; g + wide <= count; g += wide) {
    const V scale = loaded(from + g);
    hn::StoreU(scale, D(), to + g);
    hn::StoreU(hn::Mul(scale, hn::Set(D(), -middle)), D(), minima + g);
  }
  for (; g < count; ++g) {
    to[g] = number(from[g]);
    minima[g] = -middle * to[g];
  }
}

template <class T>
void convert_from(const plugrad_view& scales, int64_t bits, int64_t row, int64_t rows, float* to, float* minima) {
  const int64_t groups = scales.shape[1], parts = scales.shape[2];
  const T* const from = data<T>(scales) + row * groups * parts;
  if (parts == 2) convert_pairs(from, rows * groups, to, minima);
  else convert_scales(from, rows * groups, static_cast<float>(1 << (bits - 1)), to, minima);
}
void convert(const plugrad_view& scales, int64_t bits, int64_t row, int64_t rows, float* to, float* minima) {
  if (scales.dtype == PLUGRAD_F32) convert_from<float>(scales, bits, row, rows, to, minima);
  else convert_from<Float16>(scales, bits, row, rows, to, minima);
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
