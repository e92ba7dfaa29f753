#include <core/runtime/dispatch/op_table.hpp>

#include <plugrad/sdk/fusion.h>
#include <core/runtime/dispatch/private_ops.hpp>

#include <algorithm>
#include <cctype>

namespace plugrad {

const char* op_name(uint32_t opcode) {
  const OpInfo* op = op_info(opcode);
  if (opcode == PLUGRAD_FUSION) return "FUSION";
  return op ? op->name : "a private op";
}

std::string op_label(uint32_t opcode) {
  const OpInfo* op = op_info(opcode);
  if (opcode == PLUGRAD_FUSION) return "fusion";
  if (!op) {
    const std::string name = private_op_name(opcode);
    return name.empty() ? "op " + std::to_string(opcode) : name;
  }
  std::string label(op->name);
  std::ranges::transform(label, label.begin(), [](unsigned char c) { return std::tolower(c); });
  return label;
}

std::string dtype_label(uint8_t dtype) {
  const DTypeInfo* info = dtype_info(dtype);
  return info ? info->label : "dtype " + std::to_string(dtype);
}

}  // namespace plugrad
