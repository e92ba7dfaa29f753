#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/functions.hpp>
#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

template <class To, class... From> constexpr std::array<KernelRow, sizeof...(From)> casts(Types<From...>) {
  return {kernel<submit<map<Pure<Cast<To>>, To, From>>>(PLUGRAD_OP_CAST, {dtype_of<To>, dtype_of<From>})...};
}

constexpr auto kRows = join(casts<float>(Types<double, int64_t, bool>()), casts<double>(Types<float, int64_t, bool>()),
                            casts<int64_t>(Types<float, double, bool>()), casts<bool>(Types<float, double, int64_t>()));

}  // namespace

Rows cast_rows() { return kRows; }

}  // namespace plugrad::cuda
