// Runs every op on every device: resolves its kernel once, then calls it; without a kernel, tries the fallbacks.
#pragma once
#include <plugrad/sdk/abi.h>
#include <core/runtime/device_state.hpp>
#include <core/runtime/dispatch/op_table.hpp>
#include <core/runtime/dispatch/operand.hpp>
#include <core/runtime/memory/small_blocks.hpp>
#include <core/runtime/plugins/foreign.hpp>

#include <array>
#include <cstdint>

namespace plugrad {

// An op to run: the views and storages of its operands, outputs first. The storage of an immediate is null.
struct OpCall {
  uint32_t opcode;
  uint16_t outputs, inputs;
  const plugrad_view* const* views;
  Storage* const* storages;
  const void* attributes;

  int operands() const { return outputs + inputs; }
  // The dtype in the cache key of kernels.
  uint8_t key() const { return views[key_operand(opcode)]->dtype; }
  plugrad_op op() const {
    return {sizeof(plugrad_op), opcode, 0, views, attributes, outputs, inputs, kernel_modes(), nullptr, 0, 0};
  }
};

// Runs a kernel, and once more after a trim if memory is short. Returns false if the kernel declined. Throws Error if it
// failed.
bool run_or_decline(DeviceState& device, const plugrad_kernel* kernel, const OpCall& call);
// Tries the ways on the device itself: its kernel for these layouts, a kernel on dense copies, ops on the parts of complex
// numbers, or a kernel for a wider dtype. Returns false if the device has no such kernel.
bool run_general(DeviceState& device, const OpCall& call, uint16_t layout);
// Tries the ways after the kernel for these layouts. status: the kernel's status; OK without a kernel. Returns false if the
// device has no other way. Throws Error if the op fails.
bool run_without_kernel(DeviceState& device, const OpCall& call, uint16_t layout, plugrad_status status);
// The same, with the last fallback: runs the op in host memory if the policy allows, else throws Error (unsupported) or
// (out_of_memory). Returns true.
bool run_without_kernel_or_throw(DeviceState& device, const OpCall& call, uint16_t layout, plugrad_status status);
// Counts a decomposition: the core composes the op last declined on this thread of other ops.
void count_decomposition(DeviceState& device);

// Runs an op by the device's kernel for these layouts, or else by kOtherwise, either of the run_without_kernel functions.
template <auto kOtherwise, size_t kOutputs, size_t kInputs>
[[gnu::always_inline]] inline bool dispatch(Local& l, Op op, const Operand (&outputs)[kOutputs],
                                            const Operand (&inputs)[kInputs], Attributes attributes) {
  const auto views = views_of(outputs, inputs);
  const uint32_t opcode = static_cast<uint32_t>(op), flags = modes.load(std::memory_order_relaxed);
  const uint8_t key = views[key_operand(opcode)]->dtype;
  uint16_t layout = 0;
  for (const plugrad_view* view : views) layout |= view->layout;
  DeviceState& device = *outputs[0].storage()->device;
  const plugrad_kernel* kernel = device.direct(KernelTable::slot(opcode, views.back()->dtype), key, layout, flags);
  plugrad_status status = PLUGRAD_OK;
  if (kernel) [[likely]] {
    const plugrad_op call{sizeof call, opcode, 0, views.data(), attributes.block, kOutputs, kInputs, flags, nullptr, 0, 0};
    status = contained(kernel->run, kernel, nullptr, &call);
    if (status == PLUGRAD_OK) [[likely]] {
      l.count_kernel(device.ordinal);
      return true;
    }
  }
  const auto storages = storages_of(outputs, inputs);
  return kOtherwise(device, {opcode, kOutputs, kInputs, views.data(), storages.data(), attributes.block}, layout, status);
}

// Runs an op on the device of the first output's storage. Returns false if the device cannot run it. Throws Error if the op
// fails.
template <size_t kOutputs, size_t kInputs>
[[gnu::always_inline]] inline bool try_run(Op op, const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs],
                                           Attributes attributes = {}) {
  return dispatch<run_without_kernel>(local(), op, outputs, inputs, attributes);
}

// The same, with the last fallback. Throws Error (unsupported) if nothing can run the op.
template <size_t kOutputs, size_t kInputs>
[[gnu::always_inline]] inline void run(Local& l, Op op, const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs],
                                       Attributes attributes = {}) {
  dispatch<run_without_kernel_or_throw>(l, op, outputs, inputs, attributes);
}
template <size_t kOutputs, size_t kInputs>
[[gnu::always_inline]] inline void run(Op op, const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs],
                                       Attributes attributes = {}) {
  run(local(), op, outputs, inputs, attributes);
}

}  // namespace plugrad
