// GATHER and SCATTER_ADD.
#include <backends/vulkan/grid.hpp>

namespace plugrad::vulkan {
namespace {

// Returns the view without its axis: the shader adds the offset along the axis from an index.
plugrad_view without_axis(plugrad_view view, int axis) {
  view.strides[axis] = 0;
  view.layout |= PLUGRAD_STRIDED;
  return view;
}

// The first element of each line along the axis.
plugrad_view heads(plugrad_view view, int axis) {
  if (is_immediate(view)) return view;
  view.count /= view.shape[axis];
  view.shape[axis] = 1;
  view.layout |= PLUGRAD_STRIDED;
  return view;
}

void gather(const Call& call) {
  const int axis = call.attributes<plugrad_axis>().axis;
  const plugrad_view x = without_axis(call.in(0), axis);
  const plugrad_view* const views[] = {&call.out(), &call.in(1), &x};
  submit_box(call, Box(views, 3), 0, [&](Grid& grid) {
    grid.axis_extent = call.in(0).shape[axis];
    grid.axis_stride = stride_of(call.in(0), axis);
  });
}

// For additions in a fixed order, one invocation adds a whole line. Without DETERMINISTIC, each element is added separately.
// The length of lines is limited, because drivers end long invocations.
void scatter(const Call& call) {
  constexpr int64_t kLongest = 1 << 14;
  const int axis = call.attributes<plugrad_axis>().axis;
  const plugrad_view &to = call.out(), &index = call.in(0), &source = call.in(1);
  const int64_t steps = index.shape[axis];
  const bool in_any_order = to.dtype == PLUGRAD_F32 && !(call.op().flags & PLUGRAD_DETERMINISTIC);
  if (in_any_order) {
    const plugrad_view out = without_axis(to, axis);
    const plugrad_view* const views[] = {&source, &index, &out};
    return submit_box(call, Box(views, 3), 1, [&](Grid& grid) {
      grid.axis_extent = to.shape[axis];
      grid.axis_stride = stride_of(to, axis);
    });
  }
  const plugrad_view o = heads(to, axis), i = heads(index, axis), s = heads(source, axis);
  const plugrad_view* const views[] = {&o, &i, &s};
  auto& stream = call.stream<VulkanStream>();
  stream.demand_sound();
  const VkPipeline pipeline = call.own<Recipe>().of(0);
  VulkanStream::Recording recording(stream, call.op().number);
  const int64_t stride1 = stride_of(index, axis), stride2 = stride_of(source, axis);
  for (int64_t first = 0; first < steps; first += kLongest) {
    if (first) recording.barrier();
    Box(views, 3).cut(kSpan, [&](const Box& part) {
      Grid grid = grid_of(part);
      grid.failed = recording.failed();
      grid.ordinal = recording.ordinal();
      grid.axis_extent = to.shape[axis];
      grid.axis_stride = stride_of(to, axis);
      grid.steps = std::min(kLongest, steps - first);
      grid.stride1 = stride1;
      grid.stride2 = stride2;
      grid.base[1] += static_cast<uint64_t>(first * stride1 * 8);
      grid.base[2] += static_cast<uint64_t>(first * stride2) * element_size(source.dtype);
      recording.dispatch(pipeline, grid, groups_for(grid.count));
    });
  }
  recording.finish();
}

constexpr uint16_t kInMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;

}  // namespace

void add_indexing_rows(RowList& list, const Abilities& abilities) {
  for (const uint8_t dtype : stored_dtypes(abilities))
    list.add(kernel<gather>(PLUGRAD_OP_GATHER, dtype, kInMemory), "gather_" + std::to_string(element_size(dtype)));
  for (const uint8_t dtype : number_dtypes(abilities))
    list.add(kernel<scatter>(PLUGRAD_OP_SCATTER_ADD, dtype, kInMemory), "scatter" + suffix_of(dtype), 3);
}

}  // namespace plugrad::vulkan
