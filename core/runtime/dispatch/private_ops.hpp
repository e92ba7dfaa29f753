// The list of a plugin's private ops: see plugrad/sdk/private.h.
#pragma once
#include <plugrad/sdk/private.h>
#include <core/runtime/device_state.hpp>

#include <string>
#include <vector>

namespace plugrad {

// Returns the plugin's items, checked. Throws Error (internal) if an item breaks the contract.
std::vector<plugrad_private_op> private_ops_of(const DeviceState& device);
// The name of a private op of any plugin in this process, or "" if private_ops_of has not seen the op.
std::string private_op_name(uint32_t opcode);

}  // namespace plugrad
