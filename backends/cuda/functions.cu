// Elementwise functions with inexact results.
#include <backends/cuda/functions.hpp>

#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

// ptxas for sm_90 spills registers where a thread computes two elements.
template <class F, class Out>
inline constexpr bool kOneByOne = std::is_same_v<Out, double> && (std::is_same_v<F, OpFunction<PLUGRAD_OP_ATAN>> ||
                                                                  std::is_same_v<F, OpFunction<PLUGRAD_OP_GELU_BACKWARD>>);

struct Maker {
  static constexpr bool makes(const OpInfo& op) { return is_approximated(op); }

  template <class F, class Out, class... In> static constexpr KernelRow row(const OpInfo& op, uint8_t dtype) {
    return kernel<submit<map<Pure<F, true, kOneByOne<F, Out>>, Out, In...>>>(op.opcode, dtype);
  }
};
constexpr auto kRows = elementwise_rows<Maker>(kAny);

}  // namespace

Rows function_rows() { return kRows; }

}  // namespace plugrad::cuda
