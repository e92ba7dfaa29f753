// Work of the host on tensors, as a part of a step.
#pragma once
#include <core/runtime/observe/host_call.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace plugrad {

class HostTask : public observe::HostCall {
 public:
  // operands: the outputs, then the inputs.
  virtual void call(std::span<const Tensor> operands) = 0;
  // The tangents of its outputs in forward mode, after it ran on these outputs and inputs; undefined: zero. Nothing: it has
  // no rule.
  virtual std::optional<std::vector<Tensor>> tangents([[maybe_unused]] std::span<const Tensor> outputs,
                                                      [[maybe_unused]] std::span<const Tensor> inputs,
                                                      [[maybe_unused]] std::span<const Tensor> of_inputs) const {
    return {};
  }
  void run(const plugrad_op& op, Storage* const* storages) final;
};

// Calls it now, and again in each replay of the step that this thread records. A tensor that it reads and writes is an input
// and an output.
void run_in_step(const std::shared_ptr<HostTask>& task, const std::vector<Tensor>& outputs,
                 const std::vector<Tensor>& inputs);

}  // namespace plugrad
