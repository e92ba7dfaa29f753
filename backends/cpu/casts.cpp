// Conversions between all pairs of dtypes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/casts.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/elementwise-inl.hpp>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

template <class To> struct Cast {
  template <class From> static To of(From x) {
    if constexpr (std::is_same_v<To, Bool>) {
      return x != From(0);
    } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
      constexpr From kEnd = From(9223372036854775808.0);  // 2^63, exact in either
      if (x >= kEnd) return std::numeric_limits<To>::max();
      if (x < -kEnd) return std::numeric_limits<To>::min();
      return x == x ? static_cast<To>(x) : To(0);
    } else {
      return static_cast<To>(x);
    }
  }
};

template <class To, class From> void append_pair(RowList& rows) {
  if constexpr (!std::is_same_v<To, From>) {
    KernelRow made{PLUGRAD_OP_CAST, kPlainFlags, PLUGRAD_ALL_LAYOUTS, 2, {kDtype<To>, kDtype<From>},
                   Unary<Cast<To>, To, From>::run, nullptr};
    rows.push_back(made);
  }
}

template <class To> void append_to(RowList& rows) {
  append_pair<To, float>(rows);
  append_pair<To, double>(rows);
  append_pair<To, int64_t>(rows);
  append_pair<To, Bool>(rows);
}

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_casts<HWY_TARGET>(RowList& rows) {
  HWY_NAMESPACE::append_to<float>(rows);
  HWY_NAMESPACE::append_to<double>(rows);
  HWY_NAMESPACE::append_to<int64_t>(rows);
  HWY_NAMESPACE::append_to<Bool>(rows);
}
}  // namespace plugrad::cpu
