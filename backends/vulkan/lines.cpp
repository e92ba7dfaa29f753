// Ops on lines: softmax, cross-entropy, and the norms of rows.
#include <backends/vulkan/grid.hpp>

namespace plugrad::vulkan {
namespace {

// Lines along `axis` of the first view's shape, and the place of each operand's part of a line.
class LineMaker {
 public:
  LineMaker(const plugrad_view& shape, int axis) {
    lines_.extent = static_cast<uint32_t>(shape.shape[axis]);
    lines_.lines = static_cast<uint32_t>(shape.count / shape.shape[axis]);
    for (int d = shape.rank - 1; d >= 0; --d)
      if (d != axis) {
        axes_[lines_.rank] = d;
        lines_.outer[lines_.rank++] = static_cast<uint32_t>(shape.shape[d]);
      }
    axis_ = axis;
  }
  // An operand of the whole shape.
  LineMaker& whole(int k, const plugrad_view& view) {
    start(k, view);
    lines_.along[k] = stride_of(view, axis_);
    for (uint32_t d = 0; d < lines_.rank; ++d) lines_.stride[k][d] = stride_of(view, axes_[d]);
    return *this;
  }
  // An operand (d), shared by all lines.
  LineMaker& shared(int k, const plugrad_view& view) {
    start(k, view);
    lines_.along[k] = stride_of(view, 0);
    return *this;
  }
  // An operand (n) with an element for each line of (n, d).
  LineMaker& per_line(int k, const plugrad_view& view) {
    start(k, view);
    lines_.stride[k][0] = stride_of(view, 0);
    return *this;
  }
  LineMaker& epsilon(double value) {
    lines_.epsilon = static_cast<float>(value);
    return *this;
  }
  const Lines& lines() const { return lines_; }

 private:
  void start(int k, const plugrad_view& view) { lines_.base[k] = reinterpret_cast<uint64_t>(data<char>(view)); }
  Lines lines_{};
  int axis_ = 0, axes_[PLUGRAD_MAX_RANK] = {};
};

// A dispatch takes lines of fewer elements: drivers end long-running shaders.
constexpr int64_t kLongest = int64_t(1) << 23;

void demand_size(const plugrad_view& x, int64_t extent) {
  if (x.count >> 31 || extent > kLongest) throw BackendError(PLUGRAD_UNSUPPORTED, "the lines are too long");
}

void submit_lines(const Call& call, Lines lines) {
  auto& stream = call.stream<VulkanStream>();
  stream.demand_sound();
  VulkanStream::Recording recording(stream, call.op().number);
  lines.failed = recording.failed();
  lines.ordinal = recording.ordinal();
  recording.dispatch(call.own<Recipe>().of(0), lines, std::min(lines.lines, kMostGroups));
  recording.finish();
}

void softmax(const Call& call) {
  const int axis = call.attributes<plugrad_axis>().axis;
  demand_size(call.out(), call.out().shape[axis]);
  LineMaker maker(call.out(), axis);
  for (int k = 0; k < 1 + call.op().inputs; ++k) maker.whole(k, *call.op().views[k]);
  submit_lines(call, maker.lines());
}

void cross_entropy(const Call& call) {  // loss, lse; x, target
  demand_size(call.in(0), call.in(0).shape[1]);
  LineMaker maker(call.in(0), 1);
  maker.per_line(0, call.out(0)).per_line(1, call.out(1)).whole(2, call.in(0)).per_line(3, call.in(1));
  submit_lines(call, maker.lines());
}

void cross_entropy_backward(const Call& call) {  // out; grad, x, target, lse
  demand_size(call.out(), call.out().shape[1]);
  LineMaker maker(call.out(), 1);
  maker.whole(0, call.out()).per_line(1, call.in(0)).whole(2, call.in(1)).per_line(3, call.in(2)).per_line(4, call.in(3));
  submit_lines(call, maker.lines());
}

void norm(const Call& call) {  // out, for LAYER_NORM mean, rstd; x, weight, and for LAYER_NORM bias
  demand_size(call.out(), call.out().shape[1]);
  LineMaker maker(call.out(), 1);
  maker.whole(0, call.out()).whole(1, call.in(0)).shared(2, call.in(1)).epsilon(call.attributes<plugrad_norm>().epsilon);
  const bool is_centred = call.op().inputs > 2;
  if (is_centred) maker.shared(3, call.in(2)).per_line(4, call.out(1));
  maker.per_line(5, call.out(is_centred ? 2 : 1));
  submit_lines(call, maker.lines());
}

// The gradients of x, weight, and for LAYER_NORM bias; grad, x, weight, for LAYER_NORM mean, and rstd.
void norm_backward(const Call& call) {
  constexpr int64_t kMostRows = 1 << 15;
  const plugrad_view &grad = call.in(0), &x = call.in(1);
  demand_size(x, x.shape[1]);
  if (x.shape[0] > kMostRows) throw BackendError(PLUGRAD_UNSUPPORTED, "the gradient of a norm takes at most 32,768 rows");
  const bool is_centred = call.op().outputs > 2;
  const plugrad_view& rstd = call.in(is_centred ? 4 : 3);
  LineMaker rows(x, 1), columns(x, 0);
  rows.whole(0, call.out(0)).whole(1, grad).whole(2, x).shared(3, call.in(2)).per_line(5, rstd);
  columns.per_line(0, call.out(1)).whole(2, x).whole(3, grad).shared(5, rstd);
  if (is_centred) {
    rows.per_line(4, call.in(3));
    columns.per_line(1, call.out(2)).shared(4, call.in(3));
  }
  auto& stream = call.stream<VulkanStream>();
  stream.demand_sound();
  const Recipe& recipe = call.own<Recipe>();
  VulkanStream::Recording recording(stream, call.op().number);
  recording.dispatch(recipe.of(0), rows.lines(), std::min(rows.lines().lines, kMostGroups));
  recording.barrier();
  recording.dispatch(recipe.of(1), columns.lines(), groups_for(columns.lines().lines));
  recording.finish();
}

constexpr uint16_t kInMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;
constexpr uint8_t kF32 = PLUGRAD_F32;

}  // namespace

void add_line_rows(RowList& list) {
  for (const uint32_t op :
       {PLUGRAD_OP_SOFTMAX, PLUGRAD_OP_LOG_SOFTMAX, PLUGRAD_OP_SOFTMAX_BACKWARD, PLUGRAD_OP_LOG_SOFTMAX_BACKWARD})
    list.add(kernel<softmax>(op, kF32, kInMemory), "softmax");
  list.add(kernel<cross_entropy>(PLUGRAD_OP_CROSS_ENTROPY, kF32, kInMemory), "softmax");
  list.add(kernel<cross_entropy_backward>(PLUGRAD_OP_CROSS_ENTROPY_BACKWARD, kF32, kInMemory), "softmax");
  for (const uint32_t op : {PLUGRAD_OP_LAYER_NORM, PLUGRAD_OP_RMS_NORM})
    list.add(kernel<norm>(op, kF32, kInMemory), "norms");
  for (const uint32_t op : {PLUGRAD_OP_LAYER_NORM_BACKWARD, PLUGRAD_OP_RMS_NORM_BACKWARD})
    list.add(kernel<norm_backward>(op, kF32, kInMemory), "norms", 3);
}

}  // namespace plugrad::vulkan
