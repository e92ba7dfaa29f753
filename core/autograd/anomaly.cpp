#include <core/autograd/anomaly.hpp>

#include <core/tensor/tensor_transform.hpp>
#include <plugrad/autograd/anomaly.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plugrad {
namespace {
// The largest element is NaN if any element is NaN.
bool has_nan(const Tensor& x) {
  if (!x.defined() || !is_floating(dtype_of(x)) || !view_of(x).count) return false;
  Shape one = x.shape();
  std::ranges::fill(one, 1);
  Tensor largest = empty(Op::MAX, device_of(x), one, dtype_of(x));
  run(Op::MAX, {largest}, {x});
  while (TensorTransform* const inside = transform_of({&largest, 1})) largest = inside->any_nan(largest);
  return std::isnan(largest.item<double>());
}

Shape shape_at(const Node& node) { return Shape(std::span<const int64_t>(node.shape, node.rank)); }

// "operands (2, 3), (3,)", as far as they are known.
std::string operands_text(const Node& node) {
  std::string all = "operands";
  const auto edges = node.edges();
  for (size_t i = 0; i < edges.size(); ++i) {
    const Tensor saved = i < node.operands ? node.saved[i] : Tensor();
    all += (i ? ", " : " ") + (edges[i] ? shape_at(*edges[i]).text() : saved.defined() ? saved.shape().text() : "(?)");
  }
  return all;
}

std::string operands_text(std::span<const Tensor* const> operands) {
  std::string all = "operands";
  for (size_t i = 0; i < operands.size(); ++i) all += (i ? ", " : " ") + operands[i]->shape().text();
  return all;
}

std::string call_text(const Node& node) {
  const bool noted = node.more && !node.more->origin.empty();
  return "result " + shape_at(node).text() + " of " + (noted ? node.more->origin : operands_text(node));
}
}  // namespace

DetectAnomaly::DetectAnomaly(AnomalyOptions options)
    : options_(std::move(options)), mode_(local().mode), outer_(std::exchange(local().anomaly, this)) {
  local().mode &= ~uint32_t(kDetectingForward);
  local().mode |= kDetecting | (options_.forward ? static_cast<uint32_t>(kDetectingForward) : 0);
}
DetectAnomaly::~DetectAnomaly() {
  constexpr uint32_t kOwn = kDetecting | kDetectingForward;
  local().mode = (local().mode & ~kOwn) | (mode_ & kOwn);
  local().anomaly = outer_;
}

void detect_forward(Node& node, const Tensor& out, std::span<const Tensor* const> operands) {
  const std::string shapes = operands_text(operands);
  if (local().mode & kDetectingForward && has_nan(out) &&
      std::ranges::none_of(operands, [](const Tensor* each) { return has_nan(*each); }))
    throw Error(Code::invalid, std::string("[detect_anomaly] ") + node.rule->name + " made NaN from operands without NaN: " +
                                   shapes + "; if this NaN is meant, set forward to false");
  const AnomalyOptions& options = static_cast<const DetectAnomaly*>(local().anomaly)->options();
  node.extra().origin = shapes;
  if (options.where) node.extra().origin += ", computed here:\n" + options.where();
}

void require_no_nan(const Node& node, const Tensor& sum) {
  if (!has_nan(sum)) return;
  throw Error(Code::invalid, "[detect_anomaly] the gradients that reach " +
                                 (node.rule ? std::string("the result of ") + node.rule->name + ", " + call_text(node)
                                            : "a leaf of shape " + shape_at(node).text()) +
                                 " add up to NaN, or a seed or a hook brought it");
}

void require_no_nan(const Node& node, size_t i, const Tensor& gradient) {
  if (!has_nan(gradient)) return;
  throw Error(Code::invalid, std::string("[detect_anomaly] the gradient of ") + node.rule->name + " for operand " +
                                 std::to_string(i) +
                                 " has NaN, and the gradient of its result has none: " + call_text(node));
}

}  // namespace plugrad
