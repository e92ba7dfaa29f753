// Starts collectives of tensors.
#pragma once
#include <core/distributed/group.hpp>

#include <cstddef>
#include <span>

namespace plugrad::distributed {

// Starts a collective. Its memory is that of the tensors, or a copy in host memory where the engine cannot reach it. While a
// step is recorded, start and wait become calls of the step. in, out: undefined if the collective has none; the same tensor
// for ALL_REDUCE.
Work start_collective(const Group& group, Request request, const Tensor& in, const Tensor& out);

// Runs a collective in place and waits for its end, outside of any step. Does nothing if the group is undefined, as it is
// for a process alone. numbers: elements of request.dtype.
void exchange_numbers(const Group& group, Request request, std::span<std::byte> numbers);
// Replaces numbers by their sums, minima or maxima over all ranks.
void reduce_numbers(const Group& group, std::span<double> numbers, uint32_t how);

}  // namespace plugrad::distributed
