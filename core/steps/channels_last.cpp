#include <core/steps/channels_last.hpp>

#include <core/runtime/dispatch/op_table.hpp>
#include <core/runtime/dispatch/operand_forms.hpp>
#include <core/runtime/memory/small_blocks.hpp>
#include <core/steps/forms.hpp>
#include <core/tensor/impl.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace plugrad::steps {
namespace {
constexpr int64_t kFewestChannels = 16;  // with fewer channels, or fewer results of a group, vectors stay partly empty

// The axes of an image (n, c, ..): the positions of all spatial axes are a single axis.
struct Image {
  int64_t images = 0, channels = 0, positions = 0;
  uint8_t dtype = 0;

  int64_t elements() const { return images * channels * positions; }
  bool has_layouts() const { return channels >= kFewestChannels && positions > 1; }
};

// Moves a view of an image from channels first to channels last. base: the image's offset. Returns false if the view's axes
// are not axes of the image.
bool move_view(plugrad_view& v, const Image& image, uint64_t base, uint64_t alignment) {
  if (v.dtype != image.dtype) return false;
  const auto size = static_cast<int64_t>(dtype_size(v.dtype));
  const auto offset = static_cast<int64_t>(v.offset - base) / size;
  const int64_t plane = image.positions, whole = image.channels * plane;
  int64_t n = offset / whole, c = offset % whole / plane, p = offset % plane;
  const int64_t first = n * whole + p * image.channels + c;
  for (int d = 0; d < v.rank; ++d) {
    if (v.shape[d] == 1 || v.strides[d] == 0) continue;
    const int64_t step = v.strides[d], last = v.shape[d] - 1;
    if (step < 0) return false;
    if (step % whole == 0) {
      n += last * (step / whole);
    } else if (step % plane == 0) {
      c += last * (step / plane);
      v.strides[d] = step / plane;
    } else {
      p += last * step;
      v.strides[d] = step * image.channels;
    }
  }
  if (n >= image.images || c >= image.channels || p >= image.positions) return false;
  v.offset = base + static_cast<uint64_t>(first * size);
  set_layout(v, alignment);
  return true;
}

bool is_convolution(const Call& call) {
  return call.op.opcode == PLUGRAD_OP_CONVOLUTION || call.op.opcode == PLUGRAD_OP_CONVOLUTION_BIAS;
}
// Whether a convolution is fast on images with channels last.
bool fills_vectors(const Call& call) {
  const plugrad_view& weight = call.views[call.op.outputs + 1];
  const auto& attributes = *reinterpret_cast<const plugrad_convolution*>(call.attributes.data());
  const int64_t rows = weight.shape[0] / attributes.groups;
  const plugrad_view& x = call.views[call.op.outputs];
  // A window for all channels reads them as images of a single channel each.
  const bool depthwise = rows == 1 && weight.shape[1] == 1;
  return rows >= kFewestChannels || (depthwise && x.shape[0] * x.shape[1] >= kFewestChannels);
}
// Whether the elements of the results depend on the elements at the same place alone.
bool is_placewise(const Call& call) {
  const OpInfo* const info = op_info(call.op.opcode);
  return info && (info->shape == OpShape::elementwise || info->shape == OpShape::copy || info->opcode == PLUGRAD_OP_FILL);
}

class ChannelsLast {
 public:
  ChannelsLast(Trace& trace, const std::vector<uint32_t>& bound) : trace_(trace), images_(trace.memories.size()) {
    find_images();
    for (const uint32_t each : bound) images_[each] = {};
  }

  size_t run() {
    while (drop_misfits()) {
    }
    drop_useless();
    for (Call& call : trace_.calls)
      if (has_image(call)) apply(call);
    return static_cast<size_t>(std::ranges::count_if(images_, [](const Image& each) { return each.has_layouts(); }));
  }

 private:
  bool is_image(uint32_t memory) const { return memory < images_.size() && images_[memory].has_layouts(); }
  bool has_image(const Call& call) const {
    return std::ranges::any_of(call.memories, [&](uint32_t each) { return is_image(each); });
  }
  void drop(const Call& call) {
    for (const uint32_t each : call.memories)
      if (is_image(each)) images_[each] = {};
  }

  // The largest dense view (n, c, ..) of a memory that the step makes and drops. Convolutions tell the axes best.
  void find_images() {
    for (const bool convolutions : {true, false})
      for (const Call& call : trace_.calls)
        for (size_t i = 0; i < call.memories.size(); ++i)
          if (call.memories[i] != kNever && is_convolution(call) == convolutions)
            find_image(call.memories[i], call.views[i]);
  }
  void find_image(uint32_t memory, const plugrad_view& v) {
    const Memory& m = trace_.memories[memory];
    const bool own = !m.is_older() && !m.outlives() && v.offset == m.base;
    if (!own || v.rank < 3 || !v.count || v.layout & PLUGRAD_STRIDED) return;
    const Image image{v.shape[0], v.shape[1], v.count / (v.shape[0] * v.shape[1]), v.dtype};
    if (image.elements() > images_[memory].elements()) images_[memory] = image;
  }

  // The call on images with channels last, or nothing if it cannot run so.
  std::optional<Call> moved(const Call& call) const {
    if (is_convolution(call) && !fills_vectors(call)) return {};
    if (call.host || !(is_placewise(call) || is_convolution(call) || call.op.opcode == PLUGRAD_OP_MAX_POOL)) return {};
    Call made = call;
    const plugrad_view* largest = nullptr;
    for (size_t i = 0; i < made.views.size(); ++i) {
      plugrad_view& v = made.views[i];
      const uint32_t memory = made.memories[i];
      if (!is_image(memory)) {
        // A placewise call gains nothing from two layouts.
        if (is_placewise(call) && memory != kNever && v.count > 1 && !(v.layout & PLUGRAD_BROADCAST)) return {};
        continue;
      }
      if (!move_view(v, images_[memory], trace_.memories[memory].base, trace_.device->info.alignment)) return {};
      if (!largest || v.count > largest->count || (largest->layout & PLUGRAD_BROADCAST)) largest = &v;
    }
    if (call.op.opcode == PLUGRAD_OP_MAX_POOL && !is_whole_pool(call)) return {};
    if (is_placewise(call)) order_axes(made, *largest);
    return made;
  }
  // Both results and the operand of a pooling must be images: its kernels see a single layout.
  bool is_whole_pool(const Call& call) const {
    return std::ranges::all_of(call.memories, [&](uint32_t each) { return is_image(each); });
  }

  // Brings the axes of all operands in the order of one operand's memory.
  void order_axes(Call& call, const plugrad_view& like) const {
    std::vector<uint8_t> axes(like.rank);
    std::iota(axes.begin(), axes.end(), uint8_t{0});
    const plugrad_view by = like;
    const auto step = [&by](uint8_t axis) { return by.shape[axis] == 1 ? INT64_MAX : by.strides[axis]; };
    std::ranges::stable_sort(axes, std::greater(), step);
    if (std::ranges::is_sorted(axes)) return;
    for (plugrad_view& v : call.views) {
      if (v.rank != axes.size()) continue;  // a number
      const plugrad_view old = v;
      for (size_t i = 0; i < axes.size(); ++i) {
        v.shape[i] = old.shape[axes[i]];
        v.strides[i] = old.strides[axes[i]];
      }
      set_layout(v, trace_.device->info.alignment);
    }
    call.axes = std::move(axes);
  }

  const plugrad_kernel* kernel_for(const Call& call) const {
    std::vector<const plugrad_view*> views;
    uint16_t layout = 0;
    for (const plugrad_view& each : call.views) layout |= each.layout;
    const plugrad_op op = op_of(call, views);
    return trace_.device->kernel(op, views[key_operand(op.opcode)]->dtype, layout);
  }

  // Takes the images away from calls that cannot run on them. Returns whether there were such calls.
  bool drop_misfits() {
    bool dropped = false;
    for (const Call& call : trace_.calls) {
      if (!has_image(call)) continue;
      const std::optional<Call> made = moved(call);
      if (made && kernel_for(*made)) continue;
      drop(call);
      dropped = true;
    }
    return dropped;
  }

  // Images gain only by convolutions: all images in one layout with a convolution's image stay.
  void drop_useless() {
    std::vector<bool> useful(images_.size());
    for (const Call& call : trace_.calls)
      for (size_t i = 0; i < call.memories.size() && is_convolution(call); ++i)
        if (is_image(call.memories[i])) useful[call.memories[i]] = true;
    for (bool changed = true; changed;) {
      changed = false;
      for (const Call& call : trace_.calls) {
        if (is_convolution(call) || !has_image(call)) continue;
        const auto is_useful = [&](uint32_t each) { return is_image(each) && useful[each]; };
        if (!std::ranges::any_of(call.memories, is_useful)) continue;
        for (const uint32_t each : call.memories)
          if (is_image(each) && !useful[each]) changed = useful[each] = true;
      }
    }
    for (size_t i = 0; i < images_.size(); ++i)
      if (!useful[i]) images_[i] = {};
  }

  void apply(Call& call) {
    Call made = *moved(call);
    const plugrad_kernel* const kernel = kernel_for(made);
    call = std::move(made);
    set_kernel(trace_, call, kernel);
  }

  Trace& trace_;
  std::vector<Image> images_;  // by memory; unknown: it keeps its layout
};
}  // namespace

size_t put_channels_last(Trace& trace, const std::vector<uint32_t>& bound) {
  if (!trace.device) return 0;
  const plugrad_forms* const offered = forms_of(*trace.device);
  return offered && offered->flags & PLUGRAD_CHANNELS_LAST ? ChannelsLast(trace, bound).run() : 0;
}

plugrad_view recorded_order(const Call& call, const plugrad_view& view) {
  plugrad_view made = view;
  if (view.rank != call.axes.size()) return made;
  for (size_t i = 0; i < call.axes.size(); ++i) {
    made.shape[call.axes[i]] = view.shape[i];
    made.strides[call.axes[i]] = view.strides[i];
  }
  return made;
}

}  // namespace plugrad::steps
