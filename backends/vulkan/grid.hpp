// Records ops on boxes of elements.
#pragma once
#include <backends/vulkan/backend.hpp>
#include <backends/vulkan/parameters.hpp>

#include <plugrad/sdk/box.hpp>
#include <plugrad/sdk/divider.hpp>

#include <algorithm>

namespace plugrad::vulkan {

inline constexpr uint32_t kGroup = 256, kMostGroups = 65535;
inline constexpr int64_t kSpan = 1 << 30;  // shaders compute offsets of elements in 32 bits

// Drivers end long-running shaders (lavapipe an invocation after 65,535 iterations of its loops, without an error), so a
// workgroup reduces at most kChunk elements, and another dispatch reduces the results of the workgroups.
inline constexpr uint32_t kChunk = 256 * 1024;
// Whether a workgroup, and not an invocation, reduces each line.
inline bool reduces_by_group(uint64_t lines, uint64_t extent) { return extent > 512 || (lines < 64 && extent > 64); }

inline uint32_t groups_for(uint64_t places) {
  return static_cast<uint32_t>(std::min<uint64_t>((places + kGroup - 1) / kGroup, kMostGroups));
}

inline int64_t stride_of(const plugrad_view& view, int axis) {
  return is_immediate(view) || view.count == 1 || view.shape[axis] == 1 ? 0 : view.strides[axis];
}

Grid grid_of(const Box& box);

// Records the op: a dispatch for each narrow part of the box. `complete` may add to the parameters of a dispatch.
template <class Complete> void submit_box(const Call& call, const Box& box, uint32_t mode, Complete complete) {
  auto& stream = call.stream<VulkanStream>();
  stream.demand_sound();
  const VkPipeline pipeline = call.own<Recipe>().of(mode);
  VulkanStream::Recording recording(stream, call.op().number);
  box.cut(kSpan, [&](const Box& part) {
    Grid grid = grid_of(part);
    grid.failed = recording.failed();
    grid.ordinal = recording.ordinal();
    complete(grid);
    recording.dispatch(pipeline, grid, groups_for(grid.count));
  });
  recording.finish();
}

// The kernel of ops whose shader needs only the operands.
void map(const Call& call);

}  // namespace plugrad::vulkan
