// What transforms (stand_ins.hpp) do with tensors, for the rooms below them.
#pragma once
#include <core/runtime/dispatch/stand_ins.hpp>
#include <core/tensor/host_task.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace plugrad {

// Every transform is one.
class TensorTransform : public Transform {
 public:
  using Transform::Transform;
  // Runs work of the host with a stand-in of this transform among its operands.
  virtual void run_task(const std::shared_ptr<HostTask>& task, const std::vector<Tensor>& outputs,
                        const std::vector<Tensor>& inputs) = 0;
  // The part of a gradient inside the function that belongs to a tensor outside it: the sum over the examples, or the
  // tangent. Undefined: zero. Recorded, if recording is on.
  virtual Tensor leave(const Tensor& grad) = 0;
  // See constant() below.
  virtual Tensor constant_of(const Tensor& x) = 0;
  // f of what the tensors stand for in this transform, as a stand-in again. f is linear; it sees shapes with added_axes()
  // more axes in front, and its result has them too. f takes undefined tensors for zeros, but not all are undefined.
  virtual Tensor within(const std::vector<Tensor>& x, const std::function<Tensor(const std::vector<Tensor>&)>& f) = 0;
  virtual int added_axes() const = 0;
  // A tensor of x's shape, NaN where a value behind an element is. Not recorded.
  virtual Tensor any_nan(const Tensor& x) = 0;
};

// The innermost transform with a stand-in among the tensors, or null.
TensorTransform* transform_of(std::span<const Tensor> tensors);
// A tensor with x's memory, outside the graph and without tangents.
Tensor constant(const Tensor& x);
// The gradient for a tensor outside the transforms with larger ids, except those whose functions run on this thread.
Tensor outside_transforms(Tensor grad, uint64_t id);

}  // namespace plugrad
