// Elementwise ops made of a few exact operations, gradients included.
#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/functions.hpp>
#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

struct Maker {
  static constexpr bool makes(const OpInfo& op) {
    return !is_approximated(op) && op.operands[0] != 'B' && op.opcode != PLUGRAD_OP_WHERE;
  }
  template <class F, class Out, class... In> static constexpr KernelRow row(const OpInfo& op, uint8_t dtype) {
    return kernel<submit<map<Pure<F>, Out, In...>>>(op.opcode, dtype);
  }
};
constexpr auto kRows = elementwise_rows<Maker>(kAny);

}  // namespace

Rows arithmetic_rows() { return kRows; }

}  // namespace plugrad::cuda
