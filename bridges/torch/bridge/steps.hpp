// Compiled steps: plugrad records the kernels that PyTorch's dispatcher calls, and replays them without PyTorch.
#pragma once
#include <bridge/tensors.hpp>

#include <string>
#include <vector>

namespace plugrad_torch {

// A step's number, valid until delete_step.
int64_t new_step(const std::string& name, bool fuse);
void delete_step(int64_t step);
// Returns the results of a recording for tensors of this form. Without one, records: `run` calls the function with
// step_arguments() and gives its results to set_step_results(); it returns 0, or another number if it failed.
std::vector<T> call_step(int64_t step, at::TensorList arguments, const std::string& constants, int64_t run);
std::vector<T> step_arguments();
void set_step_results(at::TensorList results);
// The numbers of recorded calls, replays and plain calls.
std::vector<int64_t> step_figures(int64_t step);
std::string explain_step(int64_t step);

}  // namespace plugrad_torch
