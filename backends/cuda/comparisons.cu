// Comparisons and WHERE.
#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/functions.hpp>
#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

struct Maker {
  static constexpr bool makes(const OpInfo& op) { return op.operands[0] == 'B' || op.opcode == PLUGRAD_OP_WHERE; }

  template <class F, class Out, class A, class B> static constexpr KernelRow row(const OpInfo& op, uint8_t dtype) {
    return kernel<submit<map<Pure<F>, Out, A, B>>>(op.opcode, dtype);
  }
  // WHERE moves the chosen value bit by bit.
  template <class F, class Out, class Condition, class A, class B>
  static constexpr KernelRow row(const OpInfo& op, uint8_t dtype) {
    return kernel<submit<map<Pure<F>, Bits<Out>, Condition, Bits<A>, Bits<B>>>>(op.opcode, dtype);
  }
};
constexpr auto kRows = elementwise_rows<Maker>(kAny);

}  // namespace

Rows comparison_rows() { return kRows; }

}  // namespace plugrad::cuda
