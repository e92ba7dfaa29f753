// The list of a plugin's private ops: see plugrad/sdk/private.h.
#pragma once
#include <plugrad/sdk/private.h>
#include <core/runtime/device_state.hpp>

#include <string>
#include <vector>

namespace plugrad {

// The items that the plugin offers, checked. Throws Error (internal) if one breaks the contract.
std::vector<plugrad_private_op> private_ops_of(const DeviceState& device);
// The name of a private op that a plugin of this process offers, or "" if private_ops_of has not seen it.
std::string private_op_name(uint32_t opcode);

}  // namespace plugrad
