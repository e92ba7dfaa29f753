// Plain loops in host memory: elementwise ops, FILL, COPY, IOTA and conversions.
#pragma once
#include <plugrad/sdk/loops/elements.hpp>
#include <plugrad/sdk/rows.hpp>

#pragma GCC visibility push(hidden)
namespace plugrad::loops {
namespace of_elementwise {

// COPY moves unsigned integers, since moving a float could change the payload of a NaN.
template <class T>
using Bits =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class T> void iota(const Call& call) {
  // Start and step are not rounded to T first: a step of 0.1 is not 0.1f.
  using Exact = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  const Wrapping<Exact> start = immediate<Exact>(call.in(0)), step = immediate<Exact>(call.in(1));
  Wrapping<Exact> i = 0;
  for_each(
      call.out(), [&](T& out) { out = static_cast<T>(static_cast<Exact>(start + i++ * step)); }, Elements<T>(call.out()));
}

struct Maker {
  static constexpr bool makes(const OpInfo&) { return true; }
  template <class F, class Out, class... In> static constexpr KernelRow row(const OpInfo& op, uint8_t dtype) {
    return kernel<map<F, Out, In...>>(op.opcode, dtype);
  }
};
struct CastMaker {
  template <class To, class From> static constexpr KernelRow row() {
    return kernel<map<Conversion<To>, To, From>>(PLUGRAD_OP_CAST, {element_dtype<To>, element_dtype<From>});
  }
};

template <class... T> constexpr auto fills_and_copies(Types<T...>) {
  return join(std::array{kernel<map<Identity, T, T>>(PLUGRAD_OP_FILL, element_dtype<T>)...},
              std::array{kernel<map<Identity, Bits<T>, Bits<T>>>(PLUGRAD_OP_COPY, element_dtype<T>)...});
}
template <class... T> constexpr std::array<KernelRow, sizeof...(T)> iotas(Types<T...>) {
  return {kernel<iota<T>>(PLUGRAD_OP_IOTA, element_dtype<T>)...};
}

inline constexpr auto kRows =
    join(fills_and_copies(kStored), iotas(kNumbers), conversion_rows<CastMaker>(), elementwise_rows<Maker>(kAny));

}  // namespace of_elementwise

inline constexpr const auto& kElementwiseRows = of_elementwise::kRows;

}  // namespace plugrad::loops
#pragma GCC visibility pop
