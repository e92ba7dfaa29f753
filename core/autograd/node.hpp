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
constexpr int kOperands = 3;  // more of them stand in Extra

// What a rule wants saved: its inputs, its output.
enum Uses : unsigned { kNothing = 0, kInput = 1, kInput1 = 2, kInput2 = 4, kOutput = 8 };

// The gradient of one operand from the output's. An undefined result stands for zero.
struct Vjp {
  Tensor (*apply)(const Tensor& grad, const Saved& saved) = nullptr;
  unsigned uses = kNothing;  // Uses of this operand's gradient alone
};

// An op's gradients: static, one for each operand; the last one stands for all further operands.
struct Rule {
  const char* name;
  std::array<Vjp, kOperands> vjps;
};

// What few ops have to keep.
struct Extra {
  Shape axes = {};
  std::array<int64_t, 4> integers = {};
  double number = 0;
  std::vector<Ref<Node>> next = {};   // of cat: all operands
  std::vector<int64_t> extents = {};  // of cat's operands along its axis
  std::string label = {};             // of a Value
  std::vector<Tensor> operands = {};  // of a layer of Values: those it was gathered from
};

// A leaf has no rule. Its sums in passes belong to the passes; a recorded node belongs to one pass at a time.
struct Node : Counted {
  enum Flags : uint8_t { kSpent = 1, kRetains = 2 };

  uint32_t pending = 0;           // in a pass: gradients to come; of a leaf: its place in the pass
  std::atomic<uint32_t> pass{0};  // the pass that claimed it
  uint8_t operands = 0;           // in next; 0 with Extra::next
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
  std::unique_ptr<Extra> extra;
  void* face = nullptr;  // of a Value: what a language binding shows it as
  int64_t shape[PLUGRAD_MAX_RANK];  // of the tensor

  // The operands' nodes.
  std::span<const Ref<Node>> edges() const {
    if (extra && !extra->next.empty()) [[unlikely]] return extra->next;
    return {next.data(), operands};
  }
  const Vjp& vjp(size_t i) const { return rule->vjps[std::min<size_t>(i, kOperands - 1)]; }
};
static_assert(sizeof(Node) <= kNodeBytes);

// What a gradient rule sees.
class Saved {
 public:
  Saved(Node& node, size_t operand) : node_(node), operand_(operand) {}
  // A saved input or output. Throws Error (invalid) where it was changed in place since.
  const Tensor& input(int i = 0) const { return checked(i); }
  Tensor output() const;
  // Of the operand whose gradient is wanted.
  Shape shape() const { return Shape(std::span<const int64_t>(wanted().shape, wanted().rank)); }
  uint8_t dtype() const { return wanted().dtype; }
  size_t operand() const { return operand_; }
  const Extra& extra() const { return *node_.extra; }

 private:
  const Node& wanted() const { return *node_.edges()[operand_]; }
  const Tensor& checked(int i) const;
  Node& node_;
  size_t operand_;
};

inline bool recording() { return local().mode & kRecording; }

// A node for a tensor of this shape.
Ref<Node> new_node(const plugrad_view& view);
// Gives out a node: edges to the operands that want a gradient, and what their rules use.
void record(const Rule& rule, const Tensor& out, const Tensor* const* operands, int count, Extra* extra);
// For ops of any number of operands.
void record_many(const Rule& rule, const Tensor& out, const std::vector<Tensor>& operands, Extra* extra);

// Records out = rule's op of operands, where one of them is in a graph and recording is on. Nothing is copied before that
// is known. extra: makes an Extra*, called only then.
template <class... Operands>
[[gnu::always_inline]] inline Tensor differentiable(const Rule& rule, Tensor out, const Operands&... operands) {
  if ((... || bool(operands.impl().node)) && recording()) {
    const Tensor* const all[] = {&operands...};
    record(rule, out, all, sizeof...(operands), nullptr);
  }
  return out;
}
template <class MakeExtra, class... Operands>
[[gnu::always_inline]] inline Tensor differentiable_with(const Rule& rule, MakeExtra&& extra, Tensor out,
                                                         const Operands&... operands) {
  if ((... || bool(operands.impl().node)) && recording()) {
    const Tensor* const all[] = {&operands...};
    record(rule, out, all, sizeof...(operands), extra());
  }
  return out;
}

}  // namespace plugrad
