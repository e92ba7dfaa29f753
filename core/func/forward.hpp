// Forward mode's transform: a stand-in stands for a value and its tangent, the derivative along a direction.
#pragma once
#include <core/tensor/tensor_transform.hpp>

#include <memory>
#include <vector>

namespace plugrad::func {

class Forward final : public TensorTransform, public std::enable_shared_from_this<Forward> {
 public:
  Forward() : TensorTransform("jvp") {}

  bool run(const OpCall& call, bool may_decline) override;
  Storage& readable(Storage& stand_in, uint64_t& offset) const override;
  bool has_one_value() const override { return true; }
  void run_task(const std::shared_ptr<HostTask>& task, const std::vector<Tensor>& outputs,
                const std::vector<Tensor>& inputs) override;
  Tensor leave(const Tensor& grad) override { return tangent(grad); }
  Tensor constant_of(const Tensor& x) override;
  Tensor within(const std::vector<Tensor>& x, const std::function<Tensor(const std::vector<Tensor>&)>& f) override;
  int added_axes() const override { return 0; }
  Tensor any_nan(const Tensor& x) override;

  // x with a tangent of the same shape, dtype and device, or of zero if undefined; its inverses. tangent() is undefined
  // where it is known to be zero. A tensor that stands in an inner transform does so afterwards, too. All are recorded.
  Tensor pair(const Tensor& x, const Tensor& tangent);
  Tensor primal(const Tensor& y);
  Tensor tangent(const Tensor& y);

 private:
  Tensor paired(const Tensor& x, const Tensor& tangent);
  Tensor recorded_tangent(Tensor tangent, const Tensor& y);
  // The parts of a tensor without a graph.
  Tensor value_of(const Tensor& y) const;
  Tensor tangent_of(const Tensor& y) const;
  bool has_tangents(const OpCall& call, const std::vector<Tensor>& operands) const;
  void set_tangents(const OpCall& call, const std::vector<Tensor>& operands, std::vector<Tensor> made);
  bool run_on_values(const OpCall& call, bool may_decline);
  void make_output(Storage& storage, uint8_t dtype, bool whole);
  void set_tangent(const Tensor& output, const Tensor& tangent);
};

// An op on values, for the rules of its tangents.
struct ForwardCall {
  const OpCall& call;                   // on values
  std::vector<Tensor> outputs, inputs;  // an immediate is a tensor of the first output's shape
  std::vector<Tensor> tangents;         // of the inputs; undefined: zero

  // Runs the op again with other inputs, and returns new outputs. An undefined tensor leaves the op's own input in place.
  std::vector<Tensor> again(const std::vector<Tensor>& replaced) const;
};

// The tangents of the outputs; undefined: zero.
using ForwardRule = std::vector<Tensor> (*)(const ForwardCall& call);
// Returns null if the op must be composed of others.
ForwardRule forward_rule(uint32_t opcode);

}  // namespace plugrad::func
