// Whether models train on the plugin's device: the program `plugrad` contains the core and trains the models.
#pragma once
#include <sdk/conformance/supervisor.hpp>

namespace plugrad::conformance {

// Runs `plugrad trial` on the file, with the program beside this program and with the plan's deadline. Returns a case for
// each model: "train.mlp". Throws Unloadable if there is no such program.
std::vector<Found> trained(const Plan& plan, const std::string& file, const Settings& settings);

}  // namespace plugrad::conformance
