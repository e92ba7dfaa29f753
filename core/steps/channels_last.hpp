// Images of a step with their channels last in memory, for devices whose convolutions are fastest on such images:
// PLUGRAD_CHANNELS_LAST of plugrad/sdk/forms.h.
#pragma once
#include <core/steps/trace.hpp>

#include <cstdint>
#include <vector>

namespace plugrad::steps {

// Puts the channels last in the step's own images between convolutions, elementwise calls, copies and poolings, where all
// calls that use an image have a kernel for that. Elementwise calls on such images get their axes in the order of memory, so
// that they are as dense as before: see Call::axes. Results keep their bits. bound: the memories that each replay binds.
// Returns the number of such images.
size_t put_channels_last(Trace& trace, const std::vector<uint32_t>& bound);

// The view with the axes in the order of the recorded call.
plugrad_view recorded_order(const Call& call, const plugrad_view& view);

}  // namespace plugrad::steps
