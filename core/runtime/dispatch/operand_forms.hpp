// The forms in which a device likes operands (plugrad/sdk/forms.h).
#pragma once
#include <plugrad/sdk/forms.h>
#include <core/runtime/device_state.hpp>

#include <optional>

namespace plugrad {

// Returns the plugin's table, or null. Throws Error (internal) if the table is incomplete.
const plugrad_forms* forms_of(const DeviceState& device);
// Returns the form of an input of a call of this kernel, or nothing. Throws Error (internal) for a form that breaks the
// contract.
std::optional<plugrad_form> form_of(const DeviceState& device, const plugrad_kernel& kernel, const plugrad_op& op,
                                    uint32_t input);

}  // namespace plugrad
