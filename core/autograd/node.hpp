// A tensor's place in the graph.
#pragma once
#include <core/runtime/observe/observer.hpp>
#include <core/tensor/impl.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plugrad {

class Saved;
struct Hooks;
struct Place;
struct WatchedNode;
constexpr int kOperands = 3;  // More::next holds a larger number

// What a gradient may use besides the output's gradient.
enum Use : unsigned {
  kInput0 = 1,  // the op's inputs
  kInput1 = 2,
  kInput2 = 4,
  kOutput = 8,
  kShape = 16,     // of the operand whose gradient is wanted
  kDType = 32,     // of the same operand
  kPosition = 64,  // of the same operand among all
  kPayload = 128,  // what the rule keeps besides tensors
  kSum = 256,      // of the operand's gradients so far, where the gradient may be added to it in place; else null
};
constexpr unsigned kInputs = kInput0 | kInput1 | kInput2, kSavedTensors = kInputs | kOutput;

// Computes the gradient of one operand from the output's. An undefined result means zero, or that it was added to kSum.
struct Vjp {
  Tensor (*apply)(const Tensor& grad, const Saved& saved) = nullptr;
  unsigned uses = 0;  // Uses of this operand's gradient alone
};

// An op's gradients, static: one for each operand; the last one also serves all further operands. See rule.hpp.
struct Rule {
  const char* name;
  std::array<Vjp, kOperands> vjps;
};

// What a rule keeps besides tensors: one object, whose type the rule knows.
struct Payload {
  void (*destroy)(Payload* self) noexcept;
};
template <class T> struct PayloadOf final : Payload {
  T value;
};
struct PayloadDeleter {
  void operator()(Payload* payload) const noexcept { payload->destroy(payload); }
};
using PayloadPointer = std::unique_ptr<Payload, PayloadDeleter>;
template <class T> PayloadPointer make_payload(T value) {
  constexpr auto destroy = [](Payload* self) noexcept { delete static_cast<PayloadOf<T>*>(self); };
  return PayloadPointer(new PayloadOf<T>{{destroy}, std::move(value)});
}

// Members that few nodes need.
struct More {
  std::vector<Ref<Node>> next;  // the operands' nodes, where an op takes any number of them
  std::string title;            // the tensor's label in a drawing of the graph
  std::shared_ptr<Hooks> hooks;
  std::string origin;                    // what detect_anomaly says of a recorded op
  std::unique_ptr<Place> place;          // of a node whose saved values a checkpoint restores
  std::unique_ptr<WatchedNode> watched;  // of a node that memory_snapshot looks at
  More();
  ~More();
};

// A leaf has no rule, and each pass keeps its own sum for it. A recorded node belongs to one pass at a time.
struct Node : Counted {
  enum Flags : uint8_t {
    kSpent = 1,      // a pass freed what it saved
    kRetains = 2,    // keeps its gradient
    kUnasked = 4,    // a leaf that nobody asked to have a gradient
    kHooked = 8,     // has hooks
    kCall = 16,      // a call of a Function
    kPart = 32,      // one of several results of such a call; its only edge leads to the call
    kStripped = 64,  // a checkpoint has what it saved
  };
  static constexpr uint8_t kWatched = kRetains | kHooked | kCall | kPart | kStripped;  // a pass treats them specially

  uint32_t pending = 0;           // in a pass: gradients still to arrive; for a leaf: its index in the pass
  std::atomic<uint32_t> pass{0};  // the id of the pass that claimed it, or 0
  uint8_t operands = 0;           // number of them in next; 0 if More::next holds them
  uint8_t rank = 0;
  uint8_t flags = 0;
  uint8_t dtype = 0;
  union {
    const Rule* rule = nullptr;
    Node* next_dying;  // the next in the list of nodes to destroy, once released
  };
  Tensor sum;                                // in a pass: of the gradients that arrived at a recorded node
  Tensor grad;                               // of a leaf, or kept by retain_grad
  std::array<Ref<Node>, kOperands> next;     // the operands' nodes; null for operands without a gradient
  std::array<Tensor, kOperands> saved;       // by operand; the output at index `operands`
  std::array<uint32_t, kOperands> versions;  // of the storages when the values were saved
  PayloadPointer payload;
  std::unique_ptr<More> more;
  void* attached = nullptr;         // for a layer above, which sets and clears it
  int64_t shape[PLUGRAD_MAX_RANK];  // of the tensor

  // The operands' nodes.
  std::span<const Ref<Node>> edges() const {
    if (more && !more->next.empty()) [[unlikely]]
      return more->next;
    return {next.data(), operands};
  }
  More& extra() {
    if (!more) more = std::make_unique<More>();
    return *more;
  }
  const Vjp& vjp(size_t i) const { return rule->vjps[i < kOperands ? i : kOperands - 1]; }
};
static_assert(sizeof(Node) <= kObjectBytes);

// Gives a gradient its arguments.
class Saved {
 public:
  Saved(Node& node, size_t position) : node_(node), position_(position) {}
  // A saved input or output. Throws Error (invalid) if it was changed in place after it was saved.
  const Tensor& input(int i) const { return checked(i); }
  Tensor output() const;
  // Of the operand whose gradient is computed.
  Shape shape() const { return Shape(std::span<const int64_t>(wanted().shape, wanted().rank)); }
  DType dtype() const { return static_cast<DType>(wanted().dtype); }
  size_t position() const { return position_; }
  Tensor* sum() const;
  template <class T> const T& payload() const { return static_cast<const PayloadOf<T>&>(*node_.payload).value; }

 private:
  const Node& wanted() const { return *node_.edges()[position_]; }
  const Tensor& checked(int i) const;
  Node& node_;
  size_t position_;
};

// Bits of Local::mode.
enum Mode : uint32_t {
  kRecording = kFirstMode,   // ops on tensors that require gradients are recorded
  kRetaining = 2,            // recorded nodes keep all operands and their gradients, for inspection of the graph
  kDetecting = 4,            // passes look for NaN: see anomaly.hpp
  kDetectingForward = 8,     // the same for results of recorded ops
  kCheckpointing = 16,       // a checkpoint keeps no saved values: see checkpoint.hpp
  kAutocasting = 32,         // ops choose the dtype that they compute in: see autocast.hpp
  kTracking = kTrackedMode,  // record_memory may be on: see memory.hpp
};
constexpr uint32_t kObserving = kRetaining | kDetecting | kDetectingForward | kCheckpointing | kTracking;
inline bool recording() { return local().mode & kRecording; }

// This thread reads or replaces the gradient that a node holds.
inline void note_gradient(Node& node) { observe::touched(&node); }

// Throws Error (invalid) if x may not be written in place: a leaf that requires a gradient, while recording, or an expanded
// view.
void require_writable(const Tensor& x, const char* what);

// The nodes of leaves whose gradient was switched off. They are few, so an Impl has no room for them.
void freeze(Impl& impl);              // takes the node from the leaf and keeps it
Ref<Node> thaw(Impl& impl);           // returns the node and forgets it; the leaf must be frozen
Node* frozen_node(const Impl& impl);  // of a frozen leaf

// The node that holds a tensor's gradient, also that of a frozen leaf; or null.
Node* holder(const Tensor& x);
// The same of a tensor that requires a gradient. Throws Error (invalid), which names `what`, for another.
Node& node_of(const Tensor& x, const char* what);
// "shape (2, 3), f32, cpu:0", for messages.
std::string description(const Tensor& x);

// A node for a tensor of this shape.
Ref<Node> new_node(const plugrad_view& view);
// Gives out a node with edges to the operands that require a gradient, and saves what their gradients use.
Node& record(const Rule& rule, const Tensor& out, const Tensor* const* operands, int count);
// The same for any number of operands. Saves nothing.
Node& record_all(const Rule& rule, const Tensor& out, const std::vector<Tensor>& operands);
// Does to a recorded node what the thread's modes ask for, beyond recording it.
void observe_node(Node& node, const Tensor& out, std::span<const Tensor* const> operands);

}  // namespace plugrad
