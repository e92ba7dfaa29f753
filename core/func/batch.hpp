// vmap's transform: a stand-in stands for B examples.
#pragma once
#include <core/tensor/tensor_transform.hpp>
#include <plugrad/func/vmap.hpp>

#include <memory>
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

  // Makes a storage a stand-in, so that an op can write to it. whole: the op writes all its bytes.
  void make_output(Storage& storage, uint8_t dtype, bool whole);

  const int64_t size;

 private:
  bool draw(const OpCall& call, bool may_decline);
  Tensor wrapped(const Tensor& x, int axis);
  Tensor unwrapped(const Tensor& y, int axis) const;

  const Randomness randomness_;
};

}  // namespace plugrad::func
