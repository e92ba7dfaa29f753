// Batch normalisation over the batches of all ranks, against batch_norm of the whole batch.
#include <tests/distributed/ranks.hpp>
#include <tests/error_message.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace plugrad::test {
namespace {
namespace pd = plugrad::distributed;

int rank() { return pd::get_rank(); }
int size() { return pd::get_world_size(); }

constexpr int64_t kChannels = 3;

// Rows of all ranks: rank r has r + 1 of them.
Tensor rows_of_all() {
  const int64_t n = size() * (size() + 1) / 2;
  std::vector<float> values(static_cast<size_t>(n * kChannels * 4));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1e3f + static_cast<float>(static_cast<int>(i * 29 % 97) - 40) / 9.f;
  return Tensor::from(values, {n, kChannels, 2, 2});
}
Tensor mine(const Tensor& all) { return narrow(all, 0, rank() * (rank() + 1) / 2, rank() + 1); }

void expect_close(const Tensor& found, const Tensor& expected, double tolerance) {
  const auto a = cast(found, DType::f64).to_vector<double>(), b = cast(expected, DType::f64).to_vector<double>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << i;
}

struct Statistics {
  Tensor mean = zeros({kChannels}), variance = ones({kChannels});
  Tensor weight = Tensor::from(std::vector<float>{1.5f, -0.5f, 2.f}, {kChannels}).requires_grad_();
  Tensor bias = full({kChannels}, 0.25).requires_grad_();
};

// The mean of a loss over the rows.
Tensor loss_of(const Tensor& y) { return div(sum(tanh(y) + square(y) * 0.1), static_cast<double>(y.size(0))); }

TEST(SyncBatchNorm, HasTheStatisticsOfTheWholeBatch) {
  Statistics here, whole;
  pd::DataParallel data({here.weight, here.bias}, {});
  const Tensor all = rows_of_all().requires_grad_(), x = clone(mine(all)).detach().requires_grad_();
  const Tensor expected = batch_norm(all, whole.mean, whole.variance, whole.weight, whole.bias, true, 0.3);
  const Tensor y = pd::sync_batch_norm(x, here.mean, here.variance, here.weight, here.bias, 0.3);
  expect_close(y, mine(expected), 2e-3);
  expect_close(here.mean, whole.mean, 1e-3);
  expect_close(here.variance, whole.variance, 1e-3);
  loss_of(expected).backward();
  data.set_weight(static_cast<double>(x.size(0)));
  loss_of(y).backward();
  expect_close(here.weight.grad(), whole.weight.grad(), 5e-3);
  expect_close(here.bias.grad(), whole.bias.grad(), 5e-3);
  const double share = static_cast<double>(x.size(0)) / static_cast<double>(all.size(0));
  expect_close(mul(x.grad(), share), mine(all.grad()), 2e-3);
}

TEST(SyncBatchNorm, TrainsInACompiledStep) {
  const auto trained = [](bool compiled) {
    manual_seed(5);
    nn::Sequential model{nn::Linear(4, 6), pd::SyncBatchNorm(6), nn::ReLU(), nn::Linear(6, 1)};
    pd::DataParallel data(model);
    nn::SGD optimizer(model.parameters(), 0.1);
    auto step = compile([&](const Tensor& x) {
      optimizer.zero_grad();
      mean(square(model(x) - 1.0)).backward();
      optimizer.step();
    });
    manual_seed(static_cast<uint64_t>(rank()));
    for (int i = 0; i < 6; ++i) {
      const Tensor x = rand({3, 4});
      if (compiled) step(x);
      else {
        optimizer.zero_grad();
        mean(square(model(x) - 1.0)).backward();
        optimizer.step();
      }
    }
    if (compiled) {
      EXPECT_GE(step.figures().replayed, 3u) << step.explain();
    }
    std::vector<std::vector<float>> all;
    for (const auto& each : model.named_buffers())
      if (each.tensor.dtype() == DType::f32) all.push_back(each.tensor.to_vector<float>());
    for (const Tensor& each : model.parameters()) all.push_back(each.to_vector<float>());
    return all;
  };
  const auto eager = trained(false);
  EXPECT_EQ(trained(true), eager);
  for (const auto& each : eager) {  // equal on all ranks
    const Tensor here = Tensor::from(each, {std::ssize(each)}), first = clone(here);
    pd::broadcast(first, 0);
    EXPECT_EQ(first.to_vector<float>(), each);
  }
}

TEST(SyncBatchNorm, GradientsHaveGradients) {
  const Tensor x = add(rand({3, 2}), rank()).requires_grad_();
  const auto slope = [](const Tensor& at) {
    return grad({sum(pow(pd::sync_batch_norm(at), 3.0))}, {at}, {.create_graph = true})[0];
  };
  const Tensor second = grad({sum(square(slope(x)))}, {x})[0];
  // Of one element of rank 0, by differences; all ranks take part.
  const double h = 1e-2;
  const auto value = [&](double by) {
    std::vector<float> values = x.to_vector<float>();
    if (rank() == 0) values[0] += static_cast<float>(by);
    const Tensor at = cast(Tensor::from(values, {3, 2}), DType::f64).requires_grad_();
    const Tensor all = sum(square(slope(at))).detach();
    pd::all_reduce(all);
    return all.item<double>();
  };
  const double expected = (value(h) - value(-h)) / (2 * h);
  if (rank()) return;
  EXPECT_NEAR(second.to_vector<float>()[0], expected, 0.02 * std::abs(expected) + 1e-2);
}

TEST(SyncBatchNorm, AModuleEvaluatesByRunningStatistics) {
  pd::SyncBatchNorm norm(kChannels);
  norm.train();
  norm(mine(rows_of_all()));
  norm.eval();
  const Tensor one = full({1, kChannels, 2, 2}, rank());  // other ranks need not call it
  if (rank() == 0)
    expect_close(norm(one), batch_norm(one, norm.running_mean, norm.running_var, norm.weight, norm.bias, false), 1e-5);
  expect_mentions(message_of([] { pd::sync_batch_norm(zeros({4})); }), "expected (n, c, ..)");
  expect_mentions(message_of([] { pd::sync_batch_norm(zeros({4, 2}), {}, {}, ones({3})); }), "weight has shape (3,)");
}

}  // namespace
}  // namespace plugrad::test
