// Conversions between all pairs of dtypes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/casts.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/elementwise-inl.hpp>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

struct Maker {
  template <class To, class From> static constexpr KernelRow row() {
    using Row = Unary<Conversion<To>, Stored<To>, Stored<From>>;
    KernelRow made = of_kind(kernel_row(PLUGRAD_OP_CAST, element_dtype<To>, Row::run), Row::kKind);
    made.dtypes[1] = element_dtype<From>;
    return made;
  }
};
constexpr auto kRows = conversion_rows<Maker>();

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_casts<HWY_TARGET>(RowList& rows) { append(rows, HWY_NAMESPACE::kRows); }
}  // namespace plugrad::cpu
