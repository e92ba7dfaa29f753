#include <plugrad/distributed/sync_batch_norm.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/channels.hpp>
#include <plugrad/autograd/function.hpp>
#include <plugrad/distributed/collectives.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/normalization.hpp>
#include <plugrad/ops/parts.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad::distributed {
namespace {
// The sum over all ranks. Each rank's operand is in the results of all ranks, so its gradient is the sum of the gradients of
// all losses, each weighted by its rank's rows, as DataParallel weights the gradients of parameters.
class SumOfRanks final : public Function {
 public:
  SumOfRanks(const Group& group, double rows) : group_(group), rows_(rows) {}
  std::string name() const override { return "sum_of_ranks"; }
  std::vector<Tensor> forward(const std::vector<Tensor>& x) override {
    const Tensor sum = clone(x[0]);
    all_reduce(sum, ReduceOp::sum, {.group = group_});
    return {sum};
  }
  std::vector<Tensor> backward(const std::vector<Tensor>& grads) override {
    const Tensor sum = apply_function<SumOfRanks>({mul(grads[0], rows_)}, group_, rows_)[0];
    return {rows_ > 0 ? mul(sum, 1 / rows_) : sum};
  }

 private:
  Group group_;
  double rows_;
};

}  // namespace

Tensor sync_batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                       const Tensor& bias, double momentum, double eps, const Group& given) {
  constexpr const char* kName = "sync_batch_norm";
  require_channels(kName, x, weight, bias);
  require_shape(kName, "running_mean", running_mean, {x.size(1)});
  require_shape(kName, "running_var", running_var, {x.size(1)});
  const Group group = given.defined() ? given : world();
  const Tensor wide = at_least_f32(x);
  const int64_t c = x.size(1);
  Shape axes{0};
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  const Shape shape = channel_shape(x);
  const auto rows = static_cast<double>(x.size(0)), count = static_cast<double>(x.count()) / static_cast<double>(c);
  const auto sum_of_ranks = [&](const Tensor& mine) { return apply_function<SumOfRanks>({mine}, group, rows)[0]; };
  const Tensor sums = sum_of_ranks(cat({sum(wide, axes), full({1}, count, wide.dtype(), x.device())}));
  const Tensor total = narrow(sums, 0, c, 1).detach(), mean = div(narrow(sums, 0, 0, c), total);
  const Tensor centred = sub(wide, reshape(mean, shape));
  const Tensor variance = div(sum_of_ranks(sum(mul(centred, centred), axes)), total);
  move_towards(running_mean, mean.detach(), momentum);
  move_towards(running_var, mul(variance.detach(), div(total, sub(total, 1))), momentum);
  const Tensor rstd = div(1, sqrt(add(variance, eps)));
  return scaled(mul(centred, reshape(rstd, shape)), weight, bias, shape, x.dtype());
}

Tensor SyncBatchNorm::forward(const Tensor& x) const {
  require_rank(x, 2, 5);
  const bool by_batch = training() || !running_mean.defined();
  const double momentum = next_momentum();
  if (!by_batch || (!group_.defined() && !is_initialized()) || get_world_size(group_) == 1)
    return batch_norm(x, running_mean, running_var, weight, bias, by_batch, momentum, options_.eps);
  return sync_batch_norm(x, running_mean, running_var, weight, bias, momentum, options_.eps, group_);
}

}  // namespace plugrad::distributed
