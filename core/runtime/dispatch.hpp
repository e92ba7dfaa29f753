// One way for every op on every device: resolve once, then call; where that does not serve, the next rung.
#pragma once
#include <core/runtime/device_state.hpp>
#include <core/runtime/op_table.hpp>
#include <core/runtime/operand.hpp>
#include <core/runtime/small_blocks.hpp>
#include <plugrad/sdk/abi.h>

#include <array>
#include <cstdint>

namespace plugrad {

// An op to be run: its operands, outputs first, as arrays of views and of their storages, null for immediates.
struct OpCall {
  uint32_t opcode;
  uint16_t outputs, inputs;
  const plugrad_view* const* views;
  Storage* const* storages;
  const void* attributes;

  int operands() const { return outputs + inputs; }
  // The dtype by which kernels are cached.
  uint8_t key() const { return views[key_operand(opcode)]->dtype; }
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

// The arrays of a call. The fast path needs only the views, so the rest is made where it ends.
template <size_t kOutputs, size_t kInputs> class OperandArrays {
 public:
  OperandArrays(const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs])
      : views_(joined(outputs, inputs, &Operand::view)), storages_(joined(outputs, inputs, &Operand::storage)) {}
  // Valid as long as this.
  OpCall call(Op op, Attributes attributes) const {
    return {static_cast<uint32_t>(op), kOutputs, kInputs, views_.data(), storages_.data(), attributes.block};
  }

 private:
  std::array<const plugrad_view*, kOutputs + kInputs> views_;
  std::array<Storage*, kOutputs + kInputs> storages_;
};

// Runs one kernel, once more after trimming where memory is short. Returns false where the kernel declined. Throws Error
// where it failed.
bool run_or_decline(DeviceState& device, const plugrad_kernel* kernel, const OpCall& call);
// The rungs that a device offers natively: its kernel for these layouts, or one for dense copies. Returns false where it
// offers none.
bool run_general(DeviceState& device, const OpCall& call, uint16_t layout);
// Takes the next rung after the kernel for these layouts returned a status. Returns false where there is none. Throws Error.
bool run_refused(DeviceState& device, const OpCall& call, uint16_t layout, plugrad_status status);
// The last rung: through host memory, if the policy allows, else Error (unsupported) naming op, dtypes and device.
void run_elsewhere(DeviceState& device, const OpCall& call);

// Runs an op by the device's kernel for these layouts, or else by the rungs that the device offers natively. Returns false
// where it offers none. Throws Error where the op fails. The first output's storage says which device runs it.
template <size_t kOutputs, size_t kInputs>
[[gnu::always_inline]] inline bool try_run(Local& l, Op op, const Operand (&outputs)[kOutputs],
                                           const Operand (&inputs)[kInputs], Attributes attributes = {}) {
  const auto views = joined(outputs, inputs, &Operand::view);
  const uint32_t opcode = static_cast<uint32_t>(op), flags = modes.load(std::memory_order_relaxed);
  const uint8_t key = views[key_operand(opcode)]->dtype;
  uint16_t layout = 0;
  for (const plugrad_view* view : views) layout |= view->layout;
  DeviceState& device = *outputs[0].storage->device;
  const plugrad_kernel* kernel = device.direct(KernelTable::slot(opcode, views.back()->dtype), key, layout, flags);
  if (!kernel) [[unlikely]] return run_general(device, OperandArrays(outputs, inputs).call(op, attributes), layout);
  const plugrad_op call{sizeof call, opcode, 0, views.data(), attributes.block, kOutputs, kInputs, flags, nullptr, 0, 0};
  if (const plugrad_status status = kernel->run(kernel, nullptr, &call)) [[unlikely]]
    return run_refused(device, OperandArrays(outputs, inputs).call(op, attributes), layout, status);
  l.count_kernel(device.ordinal);
  return true;
}

// The same, down to the last rung. Throws Error (unsupported) where nothing runs the op.
template <size_t kOutputs, size_t kInputs>
[[gnu::always_inline]] inline void run(Local& l, Op op, const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs],
                                       Attributes attributes = {}) {
  if (!try_run(l, op, outputs, inputs, attributes)) [[unlikely]]
    run_elsewhere(*outputs[0].storage->device, OperandArrays(outputs, inputs).call(op, attributes));
}

template <size_t kOutputs, size_t kInputs>
[[gnu::always_inline]] inline bool try_run(Op op, const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs],
                                           Attributes attributes = {}) {
  return try_run(local(), op, outputs, inputs, attributes);
}
template <size_t kOutputs, size_t kInputs>
[[gnu::always_inline]] inline void run(Op op, const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs],
                                       Attributes attributes = {}) {
  run(local(), op, outputs, inputs, attributes);
}

}  // namespace plugrad
