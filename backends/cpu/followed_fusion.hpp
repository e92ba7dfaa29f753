// Fusions with a head: a product, and the other instructions on each of its tiles while the tile is in the caches.
#pragma once
#include <backends/cpu/fusion.hpp>

#include <memory>

namespace plugrad::cpu {

// Returns a kernel for a fusion with a head, or null if the rows of the settings do not suffice.
std::unique_ptr<FusionKernel> make_followed(OpenDevice& device, const Fusion& fusion, const FusionSettings& settings);

}  // namespace plugrad::cpu
