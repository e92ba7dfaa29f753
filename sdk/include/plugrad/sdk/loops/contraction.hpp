// Plain loops in host memory: MATMUL and MATMUL_ADD.
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

template <class... T> constexpr auto rows(Types<T...>) {
  constexpr uint16_t kMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;
  constexpr uint32_t kFlags = kPlainFlags | PLUGRAD_ACCUMULATE;
  return join(std::array{kernel<matmul<T>>(PLUGRAD_OP_MATMUL, element_dtype<T>, kMemory, kFlags)...},
              std::array{kernel<matmul<T>>(PLUGRAD_OP_MATMUL_ADD, element_dtype<T>, kMemory)...});
}
inline constexpr auto kRows = rows(kFloating);

}  // namespace of_contraction

inline constexpr const auto& kContractionRows = of_contraction::kRows;

}  // namespace plugrad::loops
#pragma GCC visibility pop
