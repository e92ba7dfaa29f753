// Runs every op on every device: resolves its kernel once, then calls it; if that is not possible, takes the next rung.
#pragma once
#include <plugrad/sdk/abi.h>
#include <core/runtime/device_state.hpp>
#include <core/runtime/foreign.hpp>
#include <core/runtime/op_table.hpp>
#include <core/runtime/operand.hpp>
#include <core/runtime/small_blocks.hpp>

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
            kernel_modes(),
            nullptr,
            0,
            0};
  }
};

// The arrays of an OpCall. The fast path needs only the views, so only the slow paths build this.
template <size_t kOutputs, size_t kInputs> class OperandArrays {
 public:
  OperandArrays(const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs])
      : views_(joined(outputs, inputs, &Operand::view)), storages_(joined(outputs, inputs, &Operand::storage)) {}
  // The result refers to this object.
  OpCall call(Op op, Attributes attributes) const {
    return {static_cast<uint32_t>(op), kOutputs, kInputs, views_.data(), storages_.data(), attributes.block};
  }

 private:
  std::array<const plugrad_view*, kOutputs + kInputs> views_;
  std::array<Storage*, kOutputs + kInputs> storages_;
};

// Runs one kernel, and once more after a trim if memory is short. Returns false if the kernel declined. Throws Error if it
// failed.
bool run_or_decline(DeviceState& device, const plugrad_kernel* kernel, const OpCall& call);
// Takes the rungs on the device itself: its kernel for these layouts, one on dense copies, or one for a wider dtype. Returns
// false if it has none.
bool run_general(DeviceState& device, const OpCall& call, uint16_t layout);
// Takes the next rung after the kernel for these layouts returned a status. Returns false if there is none. Throws Error.
bool run_refused(DeviceState& device, const OpCall& call, uint16_t layout, plugrad_status status);
// The last rung: runs the op in host memory if the policy allows, else throws Error (unsupported) or (out_of_memory).
void run_elsewhere(DeviceState& device, const OpCall& call);
// Counts that the op which the device last declined on this thread is composed of other ops.
void count_decomposition(DeviceState& device);

// Runs an op by the device's kernel for these layouts, or else by the device's other rungs. Returns false if it has none.
// Throws Error if the op fails. The first output's storage determines the device.
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
  if (const plugrad_status status = contained(kernel->run, kernel, nullptr, &call)) [[unlikely]]
    return run_refused(device, OperandArrays(outputs, inputs).call(op, attributes), layout, status);
  l.count_kernel(device.ordinal);
  return true;
}

// The same, with the last rung. Throws Error (unsupported) if nothing can run the op.
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
