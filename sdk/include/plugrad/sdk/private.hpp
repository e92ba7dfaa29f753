// The extension of private.h for authors of backends in C++:
//
//   constexpr uint32_t kScaleAdd = PLUGRAD_PRIVATE_OPS;
//   constexpr plugrad_private_op kOps[] = {private_op(kScaleAdd, "scale_add", 1, 2, sizeof(ScaleAdd))};
//   constexpr plugrad_private_ops kPrivate = private_ops(kOps);
//
//   static const void* extension(std::string_view name) noexcept { return name == PLUGRAD_PRIVATE ? &kPrivate : nullptr; }
//
// and a row of kernels(): private_kernel<scale_add>(kScaleAdd, {PLUGRAD_F32, PLUGRAD_F32, PLUGRAD_F32}).
#pragma once
#include <plugrad/sdk/private.h>
#include <plugrad/sdk/backend.hpp>

#include <algorithm>
#include <initializer_list>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

constexpr plugrad_private_op private_op(uint32_t opcode, const char* name, uint16_t outputs, uint16_t inputs,
                                        uint32_t attributes = 0) {
  return {sizeof(plugrad_private_op), opcode, name, outputs, inputs, attributes};
}

template <size_t n> constexpr plugrad_private_ops private_ops(const plugrad_private_op (&items)[n]) {
  return {sizeof(plugrad_private_ops), n, sizeof(plugrad_private_op), items};
}

// The kernel of a private op. dtypes: of the outputs, then of the inputs. layouts: the supported layout bits.
template <auto Function>
constexpr KernelRow private_kernel(uint32_t opcode, std::initializer_list<uint8_t> dtypes, uint16_t layouts = 0) {
  const auto operands = static_cast<uint8_t>(dtypes.size());
  KernelRow row{opcode, kPlainFlags, layouts, operands, {}, run_kernel<Function>, nullptr, nullptr};
  std::copy(dtypes.begin(), dtypes.end(), row.dtypes.begin());
  return row;
}

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
