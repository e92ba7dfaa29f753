// One way for every op on every device: resolve once, then call; where that does not serve, the next rung.
#pragma once
#include <core/runtime/device_state.hpp>
#include <core/runtime/op_table.hpp>
#include <plugrad/sdk/abi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace plugrad {

// An op to be run. storages stand beside the views; null for immediates.
struct OpCall {
  uint32_t opcode;
  uint16_t outputs, inputs;
  uint8_t key;  // the dtype that stands for the op's: of the last operand that is neither index nor condition
  const plugrad_view* const* views;
  Storage* const* storages;
  const void* attributes;

  int operands() const { return outputs + inputs; }
  plugrad_op op() const {
    return {sizeof(plugrad_op),
            opcode,
            0,
            views,
            attributes,
            outputs,
            inputs,
            modes.load(std::memory_order_relaxed),
            nullptr,
            0,
            0};
  }
};

// Runs one kernel, once more after trimming where memory is short. Returns false where the kernel declined. Throws Error where
// it failed.
bool run_or_decline(DeviceState& device, const plugrad_kernel* kernel, const OpCall& call);
// The rungs that a device offers natively: its kernel for these layouts, or one for dense copies. Returns false where it
// offers none.
bool run_general(DeviceState& device, const OpCall& call, uint16_t layout);
// Takes the next rung after the kernel for these layouts returned a status. Returns false where there is none. Throws Error.
bool run_refused(DeviceState& device, const OpCall& call, uint16_t layout, plugrad_status status);
// The last rung: through host memory, if the policy allows, else Error (unsupported) naming op, dtypes and device.
void run_elsewhere(DeviceState& device, const OpCall& call);

// storages: a function that makes the array of them, asked only where it is needed.
template <int kOutputs, int kInputs, class Storages>
[[gnu::always_inline]] inline bool try_run(Local& l, DeviceState& device, Op opcode, uint8_t key,
                                           const plugrad_view* const (&views)[kOutputs + kInputs], const Storages& storages,
                                           const void* attributes) {
  uint16_t layout = 0;
  for (const plugrad_view* view : views) layout |= view->layout;
  const uint32_t slot = KernelTable::slot(uint32_t(opcode), views[kOutputs + kInputs - 1]->dtype);
  const uint32_t flags = modes.load(std::memory_order_relaxed);
  const plugrad_kernel* kernel = device.direct(slot, key, layout, flags);
  if (!kernel) [[unlikely]] {
    const std::array<Storage*, kOutputs + kInputs> all = storages();
    return run_general(device, {uint32_t(opcode), kOutputs, kInputs, key, views, all.data(), attributes}, layout);
  }
  const plugrad_op op{sizeof op, uint32_t(opcode), 0, views, attributes, kOutputs, kInputs, flags, nullptr, 0, 0};
  if (const plugrad_status status = kernel->run(kernel, nullptr, &op)) [[unlikely]] {
    const std::array<Storage*, kOutputs + kInputs> all = storages();
    return run_refused(device, {uint32_t(opcode), kOutputs, kInputs, key, views, all.data(), attributes}, layout, status);
  }
  l.count_kernel(device.ordinal);
  return true;
}

template <int kOutputs, int kInputs>
[[gnu::always_inline]] inline bool try_run(DeviceState& device, Op opcode, uint8_t key,
                                           const plugrad_view* const (&views)[kOutputs + kInputs],
                                           Storage* const (&storages)[kOutputs + kInputs],
                                           const void* attributes = nullptr) {
  return try_run<kOutputs, kInputs>(
      local(), device, opcode, key, views, [&] { return std::to_array(storages); }, attributes);
}

// The same, down to the last rung.
template <int kOutputs, int kInputs>
[[gnu::always_inline]] inline void run(DeviceState& device, Op opcode, uint8_t key,
                                       const plugrad_view* const (&views)[kOutputs + kInputs],
                                       Storage* const (&storages)[kOutputs + kInputs], const void* attributes = nullptr) {
  if (!try_run<kOutputs, kInputs>(device, opcode, key, views, storages, attributes)) [[unlikely]]
    run_elsewhere(device, OpCall{uint32_t(opcode), kOutputs, kInputs, key, views, storages, attributes});
}

// --- Views that dispatch and tensors share.

// Fills count, strides and layout of a dense view from its rank and shape; offset is set already.
inline void set_dense(plugrad_view& v, uint64_t alignment) {
  v.count = 1;
  for (int i = v.rank; i-- > 0; v.count *= v.shape[i]) v.strides[i] = v.count;
  v.layout = uint16_t((v.offset & (alignment - 1) ? PLUGRAD_UNALIGNED : 0) | (v.count > INT32_MAX ? PLUGRAD_WIDE_INDEX : 0));
}

// An immediate operand of this dtype.
inline plugrad_view immediate_view(uint8_t dtype, double real, int64_t integer) {
  plugrad_view v;
  v.buffer = nullptr;
  v.offset = is_floating(dtype) ? std::bit_cast<uint64_t>(real) : static_cast<uint64_t>(integer);
  v.count = 1;
  v.dtype = dtype;
  v.rank = 0;
  v.layout = PLUGRAD_IMMEDIATE;
  std::fill_n(v.reserved, sizeof v.reserved, uint8_t{0});
  return v;
}

}  // namespace plugrad
