#include <core/autograd/checkpoint.hpp>

#include <core/autograd/autocast.hpp>
#include <core/autograd/call.hpp>
#include <core/autograd/rule.hpp>
#include <core/runtime/generator.hpp>
#include <core/runtime/plugins/registry.hpp>
#include <plugrad/autograd/checkpoint.hpp>
#include <plugrad/runtime/generator.hpp>

#include <algorithm>
#include <atomic>
#include <unordered_map>

namespace plugrad {
namespace {
using States = std::vector<std::pair<Device, GeneratorState>>;

States generator_states() {
  States all;
  for (DeviceState* each : Registry::get().opened()) all.emplace_back(Device(each), generator_state(Device(each)));
  return all;
}

// Sets generators for its lifetime.
class Generators {
 public:
  explicit Generators(const States& states) {
    for (const auto& [device, state] : states) {
      before_.emplace_back(device, generator_state(device));
      set(device, state);
    }
  }
  ~Generators() {
    for (const auto& [device, state] : before_) set(device, state);
  }
  Generators(const Generators&) = delete;
  Generators& operator=(const Generators&) = delete;

 private:
  static void set(Device device, GeneratorState state) {
    Generator& generator = generator_of(device.state());
    generator.seed = state.seed;
    generator.offset = state.offset;
  }
  States before_;
};

// Returns a handle to the same values, in the graph of `node`. The node may be null.
Tensor in_graph_of(const Tensor& value, const Ref<Node>& node) {
  if (!value.defined()) return value;
  Tensor handle = with_view(value, view_of(value));
  handle.impl().node = node;
  return handle;
}

Kept keep(const std::vector<Tensor>& values) {
  Kept kept{values, {}};
  for (const Tensor& each : values) kept.versions.push_back(storage_of(each)->version);
  return kept;
}

// Returns a node's saved values, outside its graph. Values of a Function are in its call.
Kept saved_of(const Node& node) {
  if (node.flags & Node::kCall) return saved_of_call(node);
  Kept kept;
  if (std::ranges::none_of(node.saved, &Tensor::defined)) return kept;
  for (const Tensor& each : node.saved) kept.values.push_back(in_graph_of(each, {}));
  kept.versions.assign(node.versions.begin(), node.versions.end());
  return kept;
}

void drop_saved(Node& node) {
  if (node.flags & Node::kCall) drop_saved_of_call(node);
  else node.saved = {};
}
}  // namespace

class Frame : public std::enable_shared_from_this<Frame> {
 public:
  using Body = std::function<void(const std::vector<Tensor>&)>;

  Frame(Body f, const std::vector<Tensor>& inputs) : f_(std::move(f)), inputs_(keep(inputs)) {
    for (const Tensor& each : inputs) graph_.push_back(each.impl().node);
  }
  void run_first(bool preserve_rng_state);
  void list(Node& node, std::span<const Tensor* const> operands);
  void list(std::shared_ptr<Frame> inner);
  // Returns the saved values of a place. Throws Error (invalid) if the second run differs from the first.
  Kept fetch(size_t index);
  void drop(size_t index) noexcept;

 private:
  // A recorded item of the function: an op, or a checkpoint.
  struct Item {
    Ref<Node> node;
    std::shared_ptr<Frame> inner;
    std::string name() const { return node ? node->rule->name : "checkpoint"; }
    Shape shape() const { return node ? Shape(std::span<const int64_t>(node->shape, node->rank)) : Shape(); }
    Kept kept() const { return node ? saved_of(*node) : inner->inputs_; }
  };
  struct Entry {
    std::string name;
    Shape shape;
    Kept kept = {};  // once the function ran again
    bool wanted = true;
  };

  std::vector<Item> run(const std::vector<Tensor>& inputs);
  void strip(Item& item, size_t index);
  void repeat();
  std::vector<Tensor> restored_inputs();
  void require_unchanged() const;

  Body f_;
  AutocastOptions autocast_ = autocast_options();  // for the second run
  Kept inputs_;
  std::vector<Ref<Node>> graph_;                                         // of the inputs
  std::unique_ptr<Place> place_;                                         // in an outer frame; the frame restores the inputs
  States states_;                                                        // of generators used by the function
  std::unordered_map<const Node*, std::pair<Tensor, uint32_t>> leaves_;  // used by the function, with their versions
  Frame* outer_ = nullptr;                                               // while the function runs
  std::vector<Item> items_;                                              // while the function runs
  std::mutex mutex_;                                                     // guards entries_
  std::vector<Entry> entries_;
  std::atomic<bool> busy_{false};
  bool repeated_ = false;
};

Place::Place(std::shared_ptr<Frame> in, size_t number) : frame(std::move(in)), index(number) {}
Place::~Place() { frame->drop(index); }

void Frame::list(Node& node, std::span<const Tensor* const> operands) {
  items_.push_back({Ref<Node>::share(&node), nullptr});
  for (const Tensor* each : operands) {
    const Node* leaf = each->impl().node.get();
    if (!leaf || leaf->rule) continue;
    for (Frame* frame = this; frame; frame = frame->outer_)
      frame->leaves_.try_emplace(leaf, *each, storage_of(*each)->version);
  }
}

void Frame::list(std::shared_ptr<Frame> inner) { items_.push_back({{}, std::move(inner)}); }

// Runs the function as the thread's innermost checkpoint. Returns all recorded items with saved values.
std::vector<Frame::Item> Frame::run(const std::vector<Tensor>& inputs) {
  struct Scope {
    explicit Scope(Frame* frame) : mode(local().mode), outer(std::exchange(local().checkpoint, frame)) {
      frame->outer_ = mode & kCheckpointing ? static_cast<Frame*>(outer) : nullptr;
      local().mode |= kRecording | kCheckpointing;
    }
    ~Scope() {
      local().mode = mode;
      local().checkpoint = outer;
    }
    uint32_t mode;
    void* outer;
  };
  items_.clear();
  const Scope scope(this);
  f_(inputs);
  std::vector<Item> all = std::exchange(items_, {});
  std::erase_if(all, [](const Item& each) { return each.kept().values.empty(); });
  return all;
}

void Frame::strip(Item& item, size_t index) {
  auto place = std::make_unique<Place>(shared_from_this(), index);
  if (item.inner) {
    item.inner->inputs_ = {};
    item.inner->place_ = std::move(place);
    return;
  }
  drop_saved(*item.node);
  item.node->flags |= Node::kStripped;
  item.node->extra().place = std::move(place);
}

void Frame::run_first(bool preserve_rng_state) {
  const States before = preserve_rng_state ? generator_states() : States();
  std::vector<Item> all = run(inputs_.values);
  for (const auto& [device, state] : before)
    if (generator_state(device) != state) states_.emplace_back(device, state);
  for (const Item& each : all) entries_.push_back({each.name(), each.shape()});
  for (size_t i = 0; i < all.size(); ++i) strip(all[i], i);
}

Kept Frame::fetch(size_t index) {
  if (busy_.exchange(true))
    throw Error(Code::invalid, "[checkpoint] another backward pass runs the function again: passes may share only leaves");
  struct Release {
    ~Release() { busy = false; }
    std::atomic<bool>& busy;
  } const release{busy_};
  if (!repeated_) repeat();
  const std::lock_guard lock(mutex_);
  return std::exchange(entries_[index].kept, {});
}

void Frame::drop(size_t index) noexcept {
  Kept unused;  // released without the lock
  const std::lock_guard lock(mutex_);
  entries_[index].wanted = false;
  unused = std::exchange(entries_[index].kept, {});
}

void Frame::require_unchanged() const {
  for (const auto& [node, leaf] : leaves_)
    if (storage_of(leaf.first)->version != leaf.second)
      throw Error(Code::invalid, "[checkpoint] a leaf of shape " + leaf.first.shape().text() +
                                     " that the function uses was changed in place: change it after the backward pass");
}

namespace {
// Returns an input for the second run. It must not lead to the nodes of the waiting pass: the function may start a pass of
// its own. Its node has no operands, unless it is a leaf: passes may share leaves.
Tensor stand_in(const Tensor& value, const Ref<Node>& node) {
  static constexpr auto kRule = rule("input");
  if (!node || !node->rule) return in_graph_of(value, node);
  Tensor handle = in_graph_of(value, {});
  record_all(kRule, handle, {});
  return handle;
}
}  // namespace

std::vector<Tensor> Frame::restored_inputs() {
  if (inputs_.values.size() < graph_.size()) inputs_ = place_->frame->fetch(place_->index);
  std::vector<Tensor> all;
  for (size_t i = 0; i < inputs_.values.size(); ++i) {
    const Tensor& each = inputs_.values[i];
    if (storage_of(each)->version != inputs_.versions[i])
      throw Error(Code::invalid, "[checkpoint] an input of shape " + each.shape().text() +
                                     " was changed in place: change a clone of it, or change it after the backward pass");
    all.push_back(stand_in(each, graph_[i]));
  }
  return all;
}

void Frame::repeat() {
  const std::vector<Tensor> inputs = restored_inputs();
  require_unchanged();
  std::vector<Item> all;
  {
    const Generators generators(states_);
    const Autocast precision(autocast_);
    all = run(inputs);
  }
  const auto alike = [](const Item& item, const Entry& entry) {
    return item.name() == entry.name && item.shape() == entry.shape;
  };
  if (!std::ranges::equal(all, entries_, alike))
    throw Error(Code::invalid, "[checkpoint] the function recorded " + std::to_string(entries_.size()) +
                                   " ops that keep values, and " + std::to_string(all.size()) +
                                   " or others when it ran again: it must do the same each time");
  {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < all.size(); ++i)
      if (entries_[i].wanted) entries_[i].kept = all[i].kept();
  }
  repeated_ = true;
  f_ = {};
  inputs_ = {};
  leaves_.clear();
}

void detail::checkpoint(Frame::Body f, const std::vector<Tensor>& inputs, CheckpointOptions options) {
  for (const Tensor& each : inputs) require_defined(each, "checkpoint");
  if (!recording()) return f(inputs);
  const auto frame = std::make_shared<Frame>(std::move(f), inputs);
  if (local().mode & kCheckpointing) static_cast<Frame*>(local().checkpoint)->list(frame);
  frame->run_first(options.preserve_rng_state);
}

void list_in_checkpoint(Node& node, std::span<const Tensor* const> operands) {
  static_cast<Frame*>(local().checkpoint)->list(node, operands);
}

void restore(Node& node) {
  Kept kept = node.more->place->frame->fetch(node.more->place->index);
  node.flags &= static_cast<uint8_t>(~Node::kStripped);
  if (node.flags & Node::kCall) return give_saved_to_call(node, kept);
  for (size_t i = 0; i < kOperands; ++i) {
    node.saved[i] = in_graph_of(kept.values[i], i < node.operands ? node.next[i] : Ref<Node>());
    node.versions[i] = kept.versions[i];
  }
}

}  // namespace plugrad
