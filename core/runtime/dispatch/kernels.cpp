#include <plugrad/runtime/kernels.hpp>

#include <core/runtime/device_state.hpp>
#include <core/runtime/dispatch/op_table.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/sdk/ops.hpp>

#include <algorithm>
#include <array>

namespace plugrad {
namespace {

const OpInfo& op_of(const std::string& label) {
  const auto* op = std::ranges::find_if(kOps, [&](const OpInfo& each) { return label == op_label(each.opcode); });
  if (op == std::end(kOps)) throw Error(Code::invalid, "[has_kernel] there is no op '" + label + "' in sdk/ops.md");
  return *op;
}

uint8_t dtype_of(const std::string& label) {
  const auto* found = std::ranges::find_if(kDTypes, [&](const auto& each) { return label == each.label; });
  if (found == std::end(kDTypes)) throw Error(Code::invalid, "[has_kernel] there is no dtype '" + label + "'");
  return found->dtype;
}

}  // namespace

bool has_kernel(Device device, const std::string& op, const std::vector<KernelOperand>& operands) {
  const OpInfo& info = op_of(op);
  if (operands.size() != static_cast<size_t>(info.operand_count()))
    throw Error(Code::invalid, "[has_kernel] " + op + " has " + std::to_string(info.operand_count()) +
                                   " operands, outputs included; " + std::to_string(operands.size()) + " were given");
  std::array<plugrad_view, PLUGRAD_MAX_OPERANDS> views{};
  std::array<const plugrad_view*, PLUGRAD_MAX_OPERANDS> pointers{};
  uint16_t layout = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    views[i].dtype = dtype_of(operands[i].dtype);
    views[i].layout = operands[i].number ? PLUGRAD_IMMEDIATE : 0;
    pointers[i] = &views[i];
    layout |= views[i].layout;
  }
  // The cache of kernels assumes that the dtypes of an op follow from its key dtype.
  const uint8_t key = views[key_operand(info.opcode)].dtype;
  for (size_t i = 0; i < operands.size(); ++i) {
    const uint8_t needed = info.operand_dtype(static_cast<int>(i), key);
    if (!info.is_for(key) || (needed && needed != views[i].dtype)) return false;
  }
  plugrad_op call{};
  call.struct_size = sizeof call;
  call.opcode = info.opcode;
  call.views = pointers.data();
  call.outputs = info.outputs;
  call.inputs = info.inputs;
  return device.state().kernel(call, key, layout);
}

}  // namespace plugrad
