#include <core/steps/call_key.hpp>

#include <core/autograd/autocast.hpp>
#include <core/autograd/rule.hpp>
#include <core/runtime/observe/observed.hpp>
#include <plugrad/tensor/dtype_names.hpp>

#include <cstdint>
#include <span>

namespace plugrad::steps {
namespace {
using Tensors = std::vector<Tensor>;

// Writes to a string, and reuses its memory from call to call.
class KeyWriter {
 public:
  explicit KeyWriter(std::string& text) : text_(text) { text_.clear(); }
  void add(std::span<const uint64_t> words) {
    text_.append(reinterpret_cast<const char*>(words.data()), words.size_bytes());
  }
  void add(uint64_t word) { add(std::span(&word, 1)); }
  void add(std::string_view text) {
    add(text.size());
    text_ += text;
  }

 private:
  std::string& text_;
};

uint64_t word_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

// Adds the place of an argument relative to an earlier argument with the same storage.
void add_sharing(KeyWriter& key, const Tensor& x, const Tensors& arguments, size_t at) {
  for (size_t other = 0; other < at; ++other) {
    if (storage_of(arguments[other]) != storage_of(x)) continue;
    key.add(other);
    key.add(static_cast<uint64_t>(view_of(x).offset - view_of(arguments[other]).offset));
    return;
  }
}

void add_argument(KeyWriter& key, const Tensor& x, const Tensors& arguments, size_t at, Alignments alignments) {
  const plugrad_view& v = view_of(x);
  const DeviceState& device = device_of(x);
  const Node* const node = x.impl().node.get();
  uint64_t words[4 + 2 * PLUGRAD_MAX_RANK];
  size_t count = 0;
  words[count++] = word_of(&device);
  // A node without a requested gradient counts by its position alone. No node has the address 1.
  words[count++] = !node ? 0 : node->flags & Node::kUnasked ? 1 : word_of(node);
  const bool told = alignments == Alignments::told;
  const uint64_t layout = told ? v.layout : v.layout & ~uint64_t{PLUGRAD_UNALIGNED};
  words[count++] = v.dtype | static_cast<uint64_t>(v.rank) << 8 | layout << 32;
  words[count++] = told ? v.offset & (device.info.alignment - 1) : 0;
  for (int i = 0; i < v.rank; ++i) {
    words[count++] = static_cast<uint64_t>(v.shape[i]);
    words[count++] = v.shape[i] > 1 ? static_cast<uint64_t>(v.strides[i]) : 0;
  }
  key.add(std::span(words, count));
  add_sharing(key, x, arguments, at);
}
}  // namespace

void write_key(std::string& text, const Tensors& arguments, std::string_view constants, Alignments alignments) {
  KeyWriter key(text);
  key.add(constants);
  key.add(local().mode & ~static_cast<uint32_t>(kTracking));
  key.add(modes.load(std::memory_order_relaxed) & kKernelModes);
  key.add(observe::settings.load(std::memory_order_relaxed));
  if (autocasting()) {
    const AutocastOptions options = autocast_options();
    key.add(static_cast<uint64_t>(options.dtype));
    key.add(std::string_view(options.device));
  }
  for (size_t i = 0; i < arguments.size(); ++i) add_argument(key, arguments[i], arguments, i, alignments);
}

// --- Differences, for messages.

namespace {
// The node of a requested gradient, or null.
const Node* asked_node(const Tensor& x) {
  const Node* const node = x.impl().node.get();
  return node && !(node->flags & Node::kUnasked) ? node : nullptr;
}
}  // namespace

CallForm::CallForm(const Tensors& arguments) {
  for (const Tensor& each : arguments) arguments_.push_back({view_of(each), &device_of(each), asked_node(each)});
}

namespace {
std::string strides_text(const plugrad_view& v) {
  std::string text = "(";
  for (int i = 0; i < v.rank; ++i) text += (i ? ", " : "") + std::to_string(v.strides[i]);
  return text + ")";
}

bool same_strides(const plugrad_view& a, const plugrad_view& b) {
  for (int i = 0; i < a.rank; ++i)
    if (a.shape[i] > 1 && a.strides[i] != b.strides[i]) return false;
  return true;
}
}  // namespace

std::string CallForm::difference(const CallForm& now) const {
  const size_t before = arguments_.size(), count = now.arguments_.size();
  if (before != count) return std::to_string(count) + " tensors are arguments, were " + std::to_string(before);
  for (size_t i = 0; i < count; ++i) {
    const Argument &was = arguments_[i], &is = now.arguments_[i];
    const auto differs = [i](const std::string& property, const std::string& new_one, const std::string& old) {
      return "argument " + std::to_string(i) + " has the " + property + " " + new_one + ", was " + old;
    };
    if (!same_shape(was.view, is.view)) return differs("shape", shape_of(is.view).text(), shape_of(was.view).text());
    if (was.view.dtype != is.view.dtype) return differs("dtype", dtype_label(is.view.dtype), dtype_label(was.view.dtype));
    if (was.device != is.device) return differs("device", is.device->name, was.device->name);
    if (!same_strides(was.view, is.view)) return differs("strides", strides_text(is.view), strides_text(was.view));
    if (was.node != is.node)
      return "argument " + std::to_string(i) +
             (is.node ? " requires a gradient, and is another tensor" : " requires no gradient");
  }
  return {};
}

}  // namespace plugrad::steps
