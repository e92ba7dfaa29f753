// Whether models train on the plugin's device: the program `plugrad`, which has the core, trains them.
#pragma once
#include <sdk/conformance/supervisor.hpp>

namespace plugrad::conformance {

// Runs `plugrad trial` on the file, with the program beside this one and with the plan's deadline. Returns one case for each
// model: "train.mlp". Throws Unloadable if there is no such program.
std::vector<Found> trained(const Plan& plan, const std::string& file, const Settings& settings);

}  // namespace plugrad::conformance
