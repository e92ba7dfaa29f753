// Products of a matrix of halves and a few vectors, as in the decoding of text: each element of the matrix is read once and
// widened in a register. Included once for each instruction set.
#if defined(PLUGRAD_CPU_NARROW_DOTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_NARROW_DOTS_INL
#undef PLUGRAD_CPU_NARROW_DOTS_INL
#else
#define PLUGRAD_CPU_NARROW_DOTS_INL
#endif

#include <backends/cpu/contraction.hpp>
#include <backends/cpu/fold-inl.hpp>

#include <hwy/cache_control.h>

#include <array>
#include <type_traits>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {

template <class E> class NarrowDots : Contraction<E> {
 public:
  explicit NarrowDots(const Call& call) : Contraction<E>(call), accumulates_(call.accumulates()) {
    this->fold_batch();
    if (!serves() && b_.row == 1) this->transpose();
  }

  // Whether the left operand is the matrix, and its rows are contiguous.
  bool serves() const { return rank_ == 0 && n_ <= kFewVectors && a_.column == 1 && k_ > 1; }
  uint64_t workspace() const { return static_cast<uint64_t>(n_ * k_) * sizeof(float); }

  void run(int threads, float* vectors) const {
    static constexpr auto kTable = table(std::make_integer_sequence<int, kFewVectors>());
    for (int64_t j = 0; j < n_; ++j)
      for (int64_t i = 0; i < k_; ++i) vectors[j * k_ + i] = widened(b_.data[i * b_.row + j * b_.column]);
    const int64_t each = std::max<int64_t>(1, kTaskElements / k_);
    const auto dots = kTable[static_cast<size_t>(n_ - 1)];
    parallel(threads, ceil_div(m_, each), [&](int64_t task) {
      // Two rows at a time, from the halves of the task: processors fetch more of two streams than of a single stream.
      const int64_t begin = task * each, end = std::min(m_, begin + each), half = (end - begin + 1) / 2;
      for (int64_t row = begin; row < begin + half; ++row) {
        const int64_t second = std::min(row + half, end - 1);
        double sums[2][kFewVectors] = {};
        dots(k_, a_.data + row * a_.row, a_.data + second * a_.row, vectors, sums);
        for (int64_t j = 0; j < n_; ++j) put(row, j, sums[0][j]);
        if (row + half < end)
          for (int64_t j = 0; j < n_; ++j) put(second, j, sums[1][j]);
      }
    });
  }

 private:
  using Base = Contraction<E>;
  using Base::a_, Base::b_, Base::c_, Base::addend_, Base::has_addend_, Base::m_, Base::n_, Base::k_, Base::rank_;
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using Half = std::conditional_t<std::is_same_v<E, BFloat16>, hwy::bfloat16_t, hwy::float16_t>;
  static constexpr int64_t kTaskElements = 1 << 17;  // of the matrix
  static constexpr int64_t kFold = 1024;             // summed in f32 before it is rounded off
  static constexpr int64_t kAhead = 1024;            // elements to prefetch
  static constexpr int64_t kLine = 64 / sizeof(E);   // elements of a cache line

  static HWY_INLINE V load(const E* p) {
    const D d;
    const hn::Rebind<Half, D> narrow;
    return hn::PromoteTo(d, hn::LoadU(narrow, reinterpret_cast<const Half*>(p)));
  }

  // Adds the dots of two rows and the vectors to sums.
  template <int vectors>
  static HWY_NOINLINE void dot(int64_t k, const E* x, const E* y, const float* v, double (&sums)[2][kFewVectors]) {
    constexpr int kChains = vectors <= 2 ? 4 : 1;  // independent sums
    const D d;
    const E* const rows[2] = {x, y};
    const int64_t wide = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t first = 0; first < k; first += kFold) {
      const int64_t end = std::min(k, first + kFold);
      V parts[kChains][2][vectors];
#pragma GCC unroll 4
      for (int c = 0; c < kChains; ++c)
#pragma GCC unroll 2
        for (int r = 0; r < 2; ++r)
#pragma GCC unroll 8
          for (int j = 0; j < vectors; ++j) parts[c][r][j] = hn::Zero(d);
      int64_t i = first;
      for (; i + kChains * wide <= end; i += kChains * wide) {
        for (int64_t line = i; line < i + kChains * wide; line += kLine) {
          hwy::Prefetch(x + kAhead + line);
          hwy::Prefetch(y + kAhead + line);
        }
#pragma GCC unroll 4
        for (int c = 0; c < kChains; ++c) add_products<vectors>(k, rows, v, i + c * wide, parts[c]);
      }
      for (; i + wide <= end; i += wide) add_products<vectors>(k, rows, v, i, parts[0]);
      // Unrolled like the loops above, since the compiler would otherwise keep the parts in memory.
#pragma GCC unroll 2
      for (int r = 0; r < 2; ++r)
#pragma GCC unroll 8
        for (int j = 0; j < vectors; ++j) {
          V sum = parts[0][r][j];
          if constexpr (kChains == 4) sum = hn::Add(hn::Add(sum, parts[1][r][j]), hn::Add(parts[2][r][j], parts[3][r][j]));
          sums[r][j] += static_cast<double>(Folding<Sum<float>>::fold_lanes(sum));
        }
      for (; i < end; ++i)
        for (int r = 0; r < 2; ++r)
          for (int j = 0; j < vectors; ++j)
            sums[r][j] += static_cast<double>(widened(rows[r][i])) * static_cast<double>(v[j * k + i]);
    }
  }

  // Adds the products of a vector's width of elements, at i, to the parts.
  template <int vectors>
  static HWY_INLINE void add_products(int64_t k, const E* const (&rows)[2], const float* v, int64_t i,
                                      V (&parts)[2][vectors]) {
    const D d;
    const V left[2] = {load(rows[0] + i), load(rows[1] + i)};
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) {
      const V right = hn::LoadU(d, v + j * k + i);
#pragma GCC unroll 2
      for (int r = 0; r < 2; ++r) parts[r][j] = hn::MulAdd(left[r], right, parts[r][j]);
    }
  }

  using Dots = void (*)(int64_t, const E*, const E*, const float*, double (&)[2][kFewVectors]);
  template <int... i> static constexpr std::array<Dots, sizeof...(i)> table(std::integer_sequence<int, i...>) {
    return {dot<i + 1>...};
  }

  void put(int64_t row, int64_t column, double sum) const {
    E& to = c_.data[row * c_.row + column * c_.column];
    if (accumulates_) sum += static_cast<double>(widened(to));
    if (has_addend_) sum += static_cast<double>(widened(addend_.data[row * addend_.row + column * addend_.column]));
    to = static_cast<E>(sum);
  }

  bool accumulates_;
};

}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
