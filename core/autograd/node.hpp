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

// The values that a gradient may use besides the output's gradient.
enum Use : unsigned {
  kInput0 = 1,  // the op's inputs
  kInput1 = 2,
  kInput2 = 4,
  kOutput = 8,
  kShape = 16,     // of the operand of the wanted gradient
  kDType = 32,     // of the same operand
  kPosition = 64,  // of the same operand among all operands
  kPayload = 128,  // values kept by the rule besides tensors
  kSum = 256,      // of the operand's gradients so far, if the gradient may be added in place; else null
};
constexpr unsigned kInputs = kInput0 | kInput1 | kInput2, kSavedTensors = kInputs | kOutput;

// Computes the gradient of one operand from the output's gradient. An undefined result means zero, or a gradient already
// added to kSum.
struct Vjp {
  Tensor (*apply)(const Tensor& grad, const Saved& saved) = nullptr;
  unsigned uses = 0;  // Uses of this operand's gradient alone
};

// An op's gradients, static: a Vjp for each operand; the last Vjp also serves all later operands. See rule.hpp.
struct Rule {
  const char* name;
  std::array<Vjp, kOperands> vjps;
  // Whether the gradients are stated for complex numbers. All others are those of real numbers, from which a pass derives
  // the gradients of complex numbers: conj(apply(conj(grad))) is grad times the conjugate of the derivative.
  bool for_complex = false;
};

// A rule's values besides tensors: one object of a type known to the rule.
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

// Members needed by few nodes.
struct More {
  std::vector<Ref<Node>> next;  // the operands' nodes, for an op with any number of operands
  std::string title;            // the tensor's label in a drawing of the graph
  std::shared_ptr<Hooks> hooks;
  std::string origin;                    // detect_anomaly's description of a recorded op
  std::unique_ptr<Place> place;          // of a node with saved values restored by a checkpoint
  std::unique_ptr<WatchedNode> watched;  // of a node listed for memory_snapshot
  uint64_t transform = 0;                // the id of the innermost transform of a node inside one
  More();
  ~More();
};

// A leaf has no rule; each pass keeps its own sum for a leaf. A recorded node belongs to one pass at a time.
struct Node : Counted {
  enum Flags : uint8_t {
    kSpent = 1,      // a pass freed its saved values
    kRetains = 2,    // keeps its gradient
    kUnasked = 4,    // a leaf without a requested gradient
    kHooked = 8,     // has hooks
    kCall = 16,      // a call of a Function
    kPart = 32,      // a result of a call with several results; its only edge leads to the call
    kStripped = 64,  // a checkpoint holds its saved values
    kInside = 128,   // of a tensor inside the function of a transform: see stand_ins.hpp
  };
  static constexpr uint8_t kWatched = kRetains | kHooked | kCall | kPart | kStripped;  // a pass treats them specially

  uint32_t pending = 0;           // in a pass: gradients still to arrive; for a leaf: its index in the pass
  std::atomic<uint32_t> pass{0};  // the id of the claiming pass, or 0
  uint8_t operands = 0;           // their number in next; 0 if More::next holds them
  uint8_t rank = 0;
  uint8_t flags = 0;
  uint8_t dtype = 0;
  union {
    const Rule* rule = nullptr;
    Node* next_dying;  // the next in the list of nodes to destroy, once released
  };
  Tensor sum;                                // in a pass: of the gradients arrived at a recorded node
  Tensor grad;                               // of a leaf, or kept by retain_grad
  std::array<Ref<Node>, kOperands> next;     // the operands' nodes; null for operands without a gradient
  std::array<Tensor, kOperands> saved;       // by operand; the output at index `operands`
  std::array<uint32_t, kOperands> versions;  // of the storages when the values were saved
  PayloadPointer payload;
  std::unique_ptr<More> more;
  void* attached = nullptr;         // for a layer above; set and cleared by it
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
  // The id of the innermost transform with the tensor inside its function, or 0.
  uint64_t transform() const { return flags & kInside ? more->transform : 0; }
  const Vjp& vjp(size_t i) const { return rule->vjps[i < kOperands ? i : kOperands - 1]; }
};
static_assert(sizeof(Node) <= kObjectBytes);

// Gives a gradient its arguments.
class Saved {
 public:
  Saved(Node& node, size_t position) : node_(node), position_(position) {}
  // Return a saved input or output. They throw Error (invalid) if it was changed in place after it was saved.
  const Tensor& input(int i) const { return checked(i); }
  Tensor output() const;
  // Of the operand of the computed gradient.
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
  kRecording = kFirstMode,   // ops on tensors with requires_grad are recorded
  kRetaining = 2,            // recorded nodes keep all operands and their gradients, for inspection of the graph
  kDetecting = 4,            // passes look for NaN: see anomaly.hpp
  kDetectingForward = 8,     // the same for results of recorded ops
  kCheckpointing = 16,       // a checkpoint keeps no saved values: see checkpoint.hpp
  kAutocasting = 32,         // ops choose their dtype of computation: see autocast.hpp
  kTracking = kTrackedMode,  // record_memory may be on: see memory.hpp
};
constexpr uint32_t kObserving = kRetaining | kDetecting | kDetectingForward | kCheckpointing | kTracking | kTransformedMode;
inline bool recording() { return local().mode & kRecording; }

// Notes that this thread reads or replaces a node's gradient.
inline void note_gradient(Node& node) { observe::touched(&node); }

// Throws Error (invalid) if x may not be written in place: a leaf that requires a gradient, while recording, or an expanded
// view.
void require_writable(const Tensor& x, const char* what);

// The nodes of leaves with a gradient that was switched off. Such leaves are few, so an Impl has no room for their nodes.
void freeze(Impl& impl);              // takes the node from the leaf and keeps it
Ref<Node> thaw(Impl& impl);           // returns the node and forgets it; the leaf must be frozen
Node* frozen_node(const Impl& impl);  // of a frozen leaf

// Returns the node with a tensor's gradient, also for a frozen leaf; or null.
Node* holder(const Tensor& x);
// Returns the node of a tensor that requires a gradient. Throws Error (invalid) with the name `what` if the tensor requires
// no gradient.
Node& node_of(const Tensor& x, const char* what);
// "shape (2, 3), f32, cpu:0", for messages.
std::string description(const Tensor& x);

// Returns a new node for a tensor of this shape.
Ref<Node> new_node(const plugrad_view& view);
// Gives `out` a node with edges to the operands that require a gradient, and saves the values for their gradients.
Node& record(const Rule& rule, const Tensor& out, const Tensor* const* operands, int count);
// As record(), for any number of operands. Saves nothing.
Node& record_all(const Rule& rule, const Tensor& out, const std::vector<Tensor>& operands);
// Notes the innermost transform with the node's tensor inside its function.
void note_transform(Node& node, const Tensor& of);
// Applies the thread's modes to a recorded node.
void observe_node(Node& node, const Tensor& out, std::span<const Tensor* const> operands);

}  // namespace plugrad
