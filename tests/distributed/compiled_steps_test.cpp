// Collectives as calls of compiled steps.
#include <tests/distributed/ranks.hpp>
#include <tests/error_message.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

namespace plugrad::test {
namespace {
namespace pd = plugrad::distributed;
using pd::Order;
using pd::ReduceOp;

int rank() { return pd::get_rank(); }
int size() { return pd::get_world_size(); }

// Each collective as a part of a compiled step, with other values in each call.
TEST(CompiledSteps, ContainCollectives) {
  Tensor kept = zeros({3});  // older than the step
  const auto body = [&](const Tensor& x) {
    const Tensor sum = mul(x, 2.0), least = add(x, 1.0), all = zeros({3 * size()}), part = zeros({3}), sent = clone(x);
    const pd::Work first = pd::all_reduce(sum, ReduceOp::sum, {.async_op = true});
    pd::Work second = pd::all_reduce(least, ReduceOp::min, {.async_op = true, .order = Order::ordered});
    const Tensor between = exp(x);  // while both are on their way
    second.wait();
    pd::Work(first).wait();
    pd::all_gather_into_tensor(all, sum);
    pd::reduce_scatter_tensor(part, all);
    pd::broadcast(sent, size() - 1);
    pd::barrier();
    Tensor(kept).copy_(sent);
    return relu(sum + least + part + sent) + between;
  };
  auto step = compile(body, {.name = "exchange"});
  for (int i = 0; i < 6; ++i) {
    const Tensor x = Tensor::from(std::vector<float>{1.f * i, 0.25f * static_cast<float>(rank()), -3.f}, {3});
    const std::vector<float> expected = body(x).to_vector<float>(), last = kept.to_vector<float>();
    kept.fill_(0);
    ASSERT_EQ(step(x).to_vector<float>(), expected) << i;
    ASSERT_EQ(kept.to_vector<float>(), last) << i;
  }
  EXPECT_EQ(step.figures().replayed, 5u);
  expect_mentions(step.explain(), "by the host: all_reduce of 3 f32 (minimum, ordered), start");
  if (default_device().name().starts_with("sim")) {
    expect_mentions(step.explain(), " lists\n");  // cut at the collectives
  }
}

TEST(CompiledSteps, MessagesArePartsOfThem) {
  if (size() == 1) GTEST_SKIP() << "one rank has no other";
  const int next = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
  auto step = compile([&](const Tensor& x) {
    Tensor received = zeros({1000});
    const Tensor sent = mul(x, 3.0);
    pd::Work to = pd::send(sent, next, {.async_op = true}), from = pd::recv(received, before, {.async_op = true});
    from.wait();
    to.wait();
    return received;
  });
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(step(full({1000}, rank() + i)).to_vector<float>(),
              std::vector<float>(1000, 3.f * static_cast<float>(before + i)));
  EXPECT_EQ(step.figures().replayed, 3u);
}

TEST(CompiledSteps, WaitForWhatTheyStart) {
  pd::Work left;
  auto careless = compile([&](const Tensor& x) {
    const Tensor y = mul(x, 2.0);
    left = pd::all_reduce(y, ReduceOp::sum, {.async_op = true});
    return y;
  });
  for (int i = 0; i < 4; ++i) {
    careless(full({3}, 1.0));
    left.wait();
  }
  EXPECT_EQ(careless.figures().replayed, 0u);
  expect_mentions(careless.explain(), "it starts all_reduce of 3 f32 and does not wait for it: call wait() inside");
  auto late = compile([&](const Tensor& x) {
    left.wait();
    return mul(x, 2.0);
  });
  const Tensor outside = full({3}, 1.0);
  left = pd::all_reduce(outside, ReduceOp::sum, {.async_op = true});
  pd::Work same = left;
  expect_mentions(message_of([&] { late(full({3}, 1.0)); }), "waits for a collective that started before it");
  same.wait();
}

}  // namespace
}  // namespace plugrad::test
