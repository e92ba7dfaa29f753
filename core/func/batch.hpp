// vmap's transform: a stand-in stands for B examples.
#pragma once
#include <core/tensor/tensor_transform.hpp>
#include <plugrad/func/vmap.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace plugrad::func {

class Batch final : public TensorTransform, public std::enable_shared_from_this<Batch> {
 public:
  Batch(int64_t size, Randomness randomness) : TensorTransform("vmap"), size(size), randomness_(randomness) {}

  bool run(const OpCall& call, bool may_decline) override;
  bool takes_random() const override { return randomness_ != Randomness::same; }
  Storage& readable(Storage& stand_in, uint64_t& offset) const override;
  bool has_one_value() const override { return false; }
  void run_task(const std::shared_ptr<HostTask>& task, const std::vector<Tensor>& outputs,
                const std::vector<Tensor>& inputs) override;
  Tensor leave(const Tensor& grad) override;
  Tensor constant_of(const Tensor& x) override { return wrapped(constant(unwrapped(x, 0)), 0); }
  Tensor within(const std::vector<Tensor>& x, const std::function<Tensor(const std::vector<Tensor>&)>& f) override;
  int added_axes() const override { return 1; }
  Tensor any_nan(const Tensor& x) override;

  // One example of x, whose examples lie along an axis; and all examples of y along an axis. A tensor that stands in an
  // inner transform does so afterwards, too: inner transforms lie on top. Both are recorded.
  Tensor wrap(const Tensor& x, int axis);
  Tensor unwrap(const Tensor& y, int axis);

  // What stands behind a storage in this transform, or null.
  const StandIn* behind(const Storage* storage) const;
  // Makes a storage a stand-in, so that an op can write to it. whole: the op writes all its bytes.
  void make_output(Storage& storage, uint8_t dtype, bool whole);

  const int64_t size;

 private:
  bool draw(const OpCall& call, bool may_decline);
  Tensor wrapped(const Tensor& x, int axis);
  Tensor unwrapped(const Tensor& y, int axis) const;

  const Randomness randomness_;
};

// An op on all examples at once. rule.cpp of each kind of op prepares it.
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
