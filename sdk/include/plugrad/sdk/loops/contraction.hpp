// Plain loops in host memory: MATMUL, MATMUL_ADD, QUANTIZED_MATMUL and INTEGER_MATMUL.
#pragma once
#include <plugrad/sdk/loops/accumulator.hpp>
#include <plugrad/sdk/loops/elements.hpp>
#include <plugrad/sdk/rows.hpp>

#pragma GCC visibility push(hidden)
namespace plugrad::loops {
namespace of_contraction {

// Walks the output's elements (.., i, j). The cursor of the left operand stays at the start of row i, the cursor of the
// right operand at the top of column j. The cursor of the addend walks with the cursor of the output; without an addend, the
// output is its own addend.
template <class T> void matmul(const Call& call) {
  const bool has_addend = call.op().inputs == 3;
  const Elements<T> out(call.out()), addend(has_addend ? call.in(2) : call.out());
  Elements<T> a(call.in(0)), b(call.in(1));
  const int column = call.out().rank - 1, row = column - 1;
  const int64_t length = call.in(0).shape[column];
  const int64_t a_step = std::exchange(a.strides[column], 0), b_step = std::exchange(b.strides[row], 0);
  for_each(
      call.out(),
      [&](T& element, const T& a_row, const T& b_column, const T& added) {
        using Term = typename Accumulator<T>::Term;
        Accumulator<T> sum;
        if (has_addend || call.accumulates()) sum.add(added);
        for (int64_t k = 0; k < length; ++k)
          sum.add(static_cast<Term>((&a_row)[k * a_step]) * static_cast<Term>((&b_column)[k * b_step]));
        element = static_cast<T>(sum.total());
      },
      out, a, b, addend);
}

// The codes and scales of QUANTIZED_MATMUL's weight (n, k).
class QuantizedWeight {
 public:
  QuantizedWeight(const plugrad_view& codes, const plugrad_view& scales, int64_t k)
      : codes_(codes), scales_(scales.dtype == PLUGRAD_F16 ? nullptr : data<float>(scales)),
        halves_(scales_ ? nullptr : data<Float16>(scales)), steps_(strides_of(scales)),
        bits_(static_cast<int>(codes.shape[1] * 8 / k)), group_(k / scales.shape[1]), has_minima_(scales.shape[2] == 2) {}

  double operator()(int64_t row, int64_t j) const {
    const int64_t byte = j * bits_ / 8;
    const int code = codes_.first[row * codes_.strides[0] + byte * codes_.strides[1]] >> j * bits_ % 8 & ((1 << bits_) - 1);
    const int64_t at = row * steps_[0] + j / group_ * steps_[1];
    if (!has_minima_) return scale(at) * (code - (1 << (bits_ - 1)));
    return scale(at) * code + scale(at + steps_[2]);
  }

 private:
  double scale(int64_t at) const { return scales_ ? double{scales_[at]} : static_cast<double>(widened(halves_[at])); }

  Elements<uint8_t> codes_;
  const float* scales_;
  const Float16* halves_;
  Strides steps_;
  int bits_;
  int64_t group_;
  bool has_minima_;
};

template <class T> void quantized_matmul(const Call& call) {
  const int64_t m = call.out().shape[0], n = call.out().shape[1], k = call.in(0).shape[1];
  const Elements<T> out(call.out()), x(call.in(0));
  const QuantizedWeight weight(call.in(1), call.in(2), k);
  for (int64_t column = 0; column < n; ++column) {
    for (int64_t row = 0; row < m; ++row) {
      Accumulator<T> sum;
      for (int64_t j = 0; j < k; ++j)
        sum.add(static_cast<double>(widened(x.first[row * x.strides[0] + j * x.strides[1]])) * weight(column, j));
      out.first[row * out.strides[0] + column * out.strides[1]] = static_cast<T>(sum.total());
    }
  }
}

template <class T> void integer_matmul(const Call& call) {
  const int64_t m = call.out().shape[0], n = call.out().shape[1], k = call.in(0).shape[1];
  const Elements<int32_t> out(call.out());
  const Elements<T> a(call.in(0));
  const Elements<int8_t> b(call.in(1));
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      int64_t sum = 0;  // wraps only where the result does: each product has 15 bits
      for (int64_t i = 0; i < k; ++i)
        sum += int64_t{a.first[row * a.strides[0] + i * a.strides[1]]} * b.first[i * b.strides[0] + column * b.strides[1]];
      out.first[row * out.strides[0] + column * out.strides[1]] = static_cast<int32_t>(sum);
    }
  }
}

template <class... T> constexpr auto rows(Types<T...>) {
  constexpr uint16_t kMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;
  constexpr uint32_t kFlags = kPlainFlags | PLUGRAD_ACCUMULATE;
  return join(std::array{kernel<matmul<T>>(PLUGRAD_OP_MATMUL, element_dtype<T>, kMemory, kFlags)...},
              std::array{kernel<matmul<T>>(PLUGRAD_OP_MATMUL_ADD, element_dtype<T>, kMemory)...},
              std::array{kernel<quantized_matmul<T>>(PLUGRAD_OP_QUANTIZED_MATMUL, element_dtype<T>, kMemory)...});
}
inline constexpr std::array kIntegerRows{
    kernel<integer_matmul<uint8_t>>(PLUGRAD_OP_INTEGER_MATMUL, PLUGRAD_U8, PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE),
    kernel<integer_matmul<int8_t>>(PLUGRAD_OP_INTEGER_MATMUL, PLUGRAD_I8, PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE)};
inline constexpr auto kRows = join(rows(kFloating), kIntegerRows);

}  // namespace of_contraction

inline constexpr const auto& kContractionRows = of_contraction::kRows;

}  // namespace plugrad::loops
#pragma GCC visibility pop
