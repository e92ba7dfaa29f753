// How vmap runs each op.
#pragma once
#include <core/func/batch.hpp>

#include <initializer_list>
#include <optional>
#include <vector>

namespace plugrad::func {

// An op on all examples: a call with one more axis, or a call for each example.
class BatchedCall {
 public:
  BatchedCall(Batch& batch, const OpCall& call);
  // Runs the op for all examples. Returns nothing if no single call does: the op then runs once for each example.
  std::optional<bool> run(bool may_decline);
  // Runs the op once for each example.
  bool run_each(bool may_decline);

 private:
  size_t operands() const { return static_cast<size_t>(call_.operands()); }
  bool is_number(size_t i) const { return !call_.storages[i]; }
  bool is_batched(size_t i) const { return batch_.behind(call_.storages[i]); }
  bool is_output(size_t i) const { return i < call_.outputs; }
  void make_outputs();
  // The view of operand i over all examples, which are its first axis.
  plugrad_view lifted(size_t i) const;
  void lift(size_t i);
  void keep(size_t i);
  // Makes the examples a part of axis `axis` of the operand, in front of it. An input is copied if its strides do not allow
  // that; returns false for such an output.
  bool fold(size_t i, int axis);
  // The same for each operand with its axis; -1: all examples share it.
  bool fold_all(std::initializer_list<int> axes);
  bool submit(const void* attributes, bool may_decline);
  bool submit_as(uint32_t opcode, const void* attributes, bool may_decline);
  std::optional<bool> elementwise(bool may_decline);
  std::optional<bool> along_axis(bool may_decline);
  bool multiply_rows();
  std::optional<bool> multiply_elements(bool may_decline);
  std::optional<bool> product(bool may_decline);
  std::optional<bool> attention(bool may_decline);
  std::optional<bool> rows(bool may_decline, size_t first_parameter, size_t parameters);
  std::optional<bool> convolution(bool may_decline);
  std::optional<bool> update(bool may_decline);

  Batch& batch_;
  const OpCall& call_;
  std::vector<plugrad_view> views_;
  std::vector<Storage*> storages_;
  std::vector<Ref<Storage>> copies_;
};

}  // namespace plugrad::func
