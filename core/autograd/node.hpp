// A tensor's place in the graph.
#pragma once
#include <core/tensor/impl.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plugrad {

class Saved;
constexpr int kOperands = 3;  // more of them stand in More

// What a gradient may use, beside the output's gradient.
enum Use : unsigned {
  kInput0 = 1,  // the op's inputs
  kInput1 = 2,
  kInput2 = 4,
  kOutput = 8,
  kShape = 16,    // of the operand whose gradient is wanted
  kDType = 32,    // the same
  kPosition = 64,  // of that operand among all
  kPayload = 128,  // what the rule keeps beside tensors
};
constexpr unsigned kInputs = kInput0 | kInput1 | kInput2, kSavedTensors = kInputs | kOutput;

// The gradient of one operand from the output's. An undefined result stands for zero.
struct Vjp {
  Tensor (*apply)(const Tensor& grad, const Saved& saved) = nullptr;
  unsigned uses = 0;  // Uses of this operand's gradient alone
};

// An op's gradients: static, one for each operand; the last one stands for all further operands. See rule.hpp.
struct Rule {
  const char* name;
  std::array<Vjp, kOperands> vjps;
};

// What a rule keeps beside tensors: one object, of a type that the rule knows.
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

// What few nodes have.
struct More {
  std::vector<Ref<Node>> next;  // the operands' nodes, where an op takes any number of them
  std::string title;            // what a picture of the graph calls the tensor
};

// A leaf has no rule. Its sums in passes belong to the passes; a recorded node belongs to one pass at a time.
struct Node : Counted {
  enum Flags : uint8_t { kSpent = 1, kRetains = 2 };

  uint32_t pending = 0;           // in a pass: gradients to come; of a leaf: its place in the pass
  std::atomic<uint32_t> pass{0};  // the pass that claimed it
  uint8_t operands = 0;           // in next; 0 with More::next
  uint8_t rank = 0;
  uint8_t flags = 0;
  uint8_t dtype = 0;
  union {
    const Rule* rule = nullptr;
    Node* next_dying;  // once released
  };
  Tensor sum;   // in a pass: of a recorded node
  Tensor grad;  // of a leaf, or kept by retain_grad
  std::array<Ref<Node>, kOperands> next;   // the operands' nodes; null where no gradient is wanted
  std::array<Tensor, kOperands> saved;     // by operand; the output in place `operands`
  std::array<uint32_t, kOperands> versions;  // of saved, when it was
  PayloadPointer payload;
  std::unique_ptr<More> more;
  void* attached = nullptr;  // for a room above, which keeps and clears it
  int64_t shape[PLUGRAD_MAX_RANK];  // of the tensor

  // The operands' nodes.
  std::span<const Ref<Node>> edges() const {
    if (more && !more->next.empty()) [[unlikely]] return more->next;
    return {next.data(), operands};
  }
  const Vjp& vjp(size_t i) const { return rule->vjps[std::min<size_t>(i, kOperands - 1)]; }
};
static_assert(sizeof(Node) <= kObjectBytes);

// What a gradient gets its arguments from.
class Saved {
 public:
  Saved(Node& node, size_t position) : node_(node), position_(position) {}
  // A saved input or output. Throws Error (invalid) where it was changed in place since.
  const Tensor& input(int i) const { return checked(i); }
  Tensor output() const;
  // Of the operand whose gradient is wanted.
  Shape shape() const { return Shape(std::span<const int64_t>(wanted().shape, wanted().rank)); }
  DType dtype() const { return static_cast<DType>(wanted().dtype); }
  size_t position() const { return position_; }
  template <class T> const T& payload() const { return static_cast<const PayloadOf<T>&>(*node_.payload).value; }

 private:
  const Node& wanted() const { return *node_.edges()[position_]; }
  const Tensor& checked(int i) const;
  Node& node_;
  size_t position_;
};

// Bits of Local::mode.
enum Mode : uint32_t {
  kRecording = kFirstMode,  // ops on tensors that want gradients are recorded
  kRetaining = 2,           // and their nodes keep operands and gradients, for a reader of the graph
};
inline bool recording() { return local().mode & kRecording; }

// Throws Error (invalid) where the graph, or an expanded view, forbids to write x in place.
void require_writable(const Tensor& x, const char* what);

// A node for a tensor of this shape.
Ref<Node> new_node(const plugrad_view& view);
// Gives out a node: edges to the operands that want a gradient, and what their gradients use.
Node& record(const Rule& rule, const Tensor& out, const Tensor* const* operands, int count);
// The same for any number of operands, of which nothing is saved.
Node& record_all(const Rule& rule, const Tensor& out, const std::vector<Tensor>& operands);

}  // namespace plugrad
