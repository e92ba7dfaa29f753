#include <core/io/onnx/export_operands.hpp>

namespace plugrad::io::onnx {
namespace {

// Padding at the ends so that windows are as many as the output has: the output says how many.
std::vector<int64_t> pads_of(const Exported& e, const std::vector<int64_t>& size) {
  const std::vector<int64_t> stride = e.list("stride"), padding = e.list("padding"), dilation = e.list("dilation");
  std::vector<int64_t> pads = padding;
  for (size_t d = 0; d < size.size(); ++d) {
    const int64_t reach = (e.shape()[d + 2] - 1) * stride[d] + (size[d] - 1) * dilation[d] + 1;
    pads.push_back(std::max<int64_t>(reach - e.view(0).shape[d + 2] - padding[d], 0));
  }
  return pads;
}

std::string cut(const Exported& e, std::string value, const std::vector<int64_t>& pads, const std::vector<int64_t>& size) {
  const std::vector<int64_t> stride = e.list("stride"), dilation = e.list("dilation");
  for (size_t d = 0; d < size.size(); ++d) {
    const int64_t whole = e.view(0).shape[d + 2] + pads[d] + pads[d + size.size()] - (size[d] - 1) * dilation[d] - 1;
    if (whole / stride[d] + 1 > e.shape()[d + 2]) value = e.g.sliced(value, static_cast<int>(d) + 2, 0, e.shape()[d + 2]);
  }
  return value;
}

std::string window_attributes(const Exported& e, const std::vector<int64_t>& pads) {
  return attribute("strides", e.list("stride")) + attribute("dilations", e.list("dilation")) + attribute("pads", pads);
}
}  // namespace

Names convolved(const Exported& e) {
  const Shape& weight = e.view(1).shape;
  const std::vector<int64_t> size(weight.begin() + 2, weight.end()), pads = pads_of(e, size);
  Names inputs{e.in(0), e.in(1)};
  if (e.op.inputs.size() > 2) inputs.push_back(e.in(2));
  const std::string groups = attribute("group", static_cast<int64_t>(e.number("groups")));
  return {cut(e, e.g.node("Conv", inputs, window_attributes(e, pads) + groups), pads, size)};
}

// The transposed convolution with the output's extents.
Names convolved_back(const Exported& e) {
  const Shape &weight = e.view(1).shape, &x = e.view(0).shape;
  const std::vector<int64_t> stride = e.list("stride"), padding = e.list("padding"), dilation = e.list("dilation");
  std::vector<int64_t> pads = padding, more;
  for (size_t d = 0; d < padding.size(); ++d) {
    const int64_t whole = (x[d + 2] - 1) * stride[d] + (weight[d + 2] - 1) * dilation[d] + 1;
    const int64_t end = whole - padding[d] - e.shape()[d + 2];
    pads.push_back(std::max<int64_t>(end, 0));
    more.push_back(std::max<int64_t>(-end, 0));
  }
  const std::string groups =
      attribute("group", static_cast<int64_t>(e.number("groups"))) + attribute("output_padding", more);
  return {e.g.node("ConvTranspose", {e.in(0), e.in(1)}, window_attributes(e, pads) + groups)};
}

// ONNX counts positions over the whole tensor, and plugrad within each channel.
Names max_pooled(const Exported& e) {
  const std::vector<int64_t> size = e.list("size"), pads = pads_of(e, size);
  int64_t plane = 1;
  for (size_t d = 2; d < e.view(0).shape.size(); ++d) plane *= e.view(0).shape[d];
  const std::string attributes = window_attributes(e, pads) + attribute("kernel_shape", size);
  const Names made = e.g.nodes("MaxPool", {e.in(0)}, 2, attributes);
  const std::string places = e.g.node("Mod", {made[1], e.g.number(plane, DType::i64)});
  return {cut(e, made[0], pads, size), cut(e, places, pads, size)};
}

}  // namespace plugrad::io::onnx
