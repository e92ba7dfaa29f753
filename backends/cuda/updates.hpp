// The optimisers' steps of many parameters.
#pragma once
#include <backends/cuda/stream.hpp>

#include <plugrad/sdk/backend.hpp>

#include <span>

namespace plugrad::cuda {

// Launches the steps of ops of one kernel of update_rows(), as many as possible at a time.
void run_updates(const plugrad_kernel& kernel, CudaStream& stream, std::span<const plugrad_op* const> ops);

}  // namespace plugrad::cuda
