// Gradients that are the mean over ranks, against gradients that a rank computes alone.
#include <tests/distributed/ranks.hpp>
#include <tests/error_message.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <numeric>

namespace plugrad::test {
namespace {
namespace pd = plugrad::distributed;

int rank() { return pd::get_rank(); }
int size() { return pd::get_world_size(); }

// A network with a parameter that no loss uses.
struct Network {
  Network() : body{nn::Linear(6, 9), nn::Tanh(), nn::Linear(9, 4)}, unused(full({3}, 1.0)) { unused.requires_grad_(); }
  std::vector<Tensor> parameters() const {
    std::vector<Tensor> all = body.parameters();
    all.push_back(unused);
    return all;
  }
  Tensor loss(const Tensor& x) const { return mean(square(body(x))); }
  nn::Sequential body;
  Tensor unused;
};

// The same rows on all ranks: 24 samples.
Tensor samples() {
  std::vector<float> values(24 * 6);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 25.f;
  return Tensor::from(values, {24, 6});
}
// This rank's part of the rows, in the order of ranks.
Tensor part(const Tensor& rows, int of, int parts) {
  const int64_t each = rows.size(0) / parts;
  return narrow(rows, 0, of * each, each);
}

std::vector<std::vector<double>> gradients(const Network& network) {
  std::vector<std::vector<double>> all;
  for (const Tensor& each : network.parameters())
    all.push_back(each.grad().defined() ? cast(each.grad(), DType::f64).to_vector<double>() : std::vector<double>());
  return all;
}
void expect_near(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size()) << "parameter " << i;
    for (size_t k = 0; k < a[i].size(); ++k) ASSERT_NEAR(a[i][k], b[i][k], 1e-6) << "parameter " << i;
  }
}

// Makes a network as rank 0 does, whatever the rank.
Network network_of_rank_0() {
  manual_seed(7);
  return {};
}

std::vector<std::vector<double>> whole_batch() {
  const Network network = network_of_rank_0();
  network.loss(samples()).backward();
  return gradients(network);
}

std::unique_ptr<pd::DataParallel> parallel(const Network& network, const pd::DataParallelOptions& options = {}) {
  return std::make_unique<pd::DataParallel>(network.parameters(), std::vector<Tensor>(), options);
}

TEST(DataParallel, GradientsAreThoseOfTheWholeBatch) {
  manual_seed(static_cast<uint64_t>(7 + rank()));  // parameters become those of rank 0
  const Network network;
  const auto data = parallel(network, {.bucket_bytes = 64});
  for (int step = 0; step < 3; ++step) {
    for (Tensor& each : network.parameters()) each.clear_grad();
    network.loss(part(samples(), rank(), size())).backward();
    expect_near(gradients(network), whole_batch());
  }
  EXPECT_FALSE(network.unused.grad().defined());
  const pd::DataParallelFigures figures = data->figures();
  EXPECT_EQ(figures.steps, 3u);
  EXPECT_GT(figures.buckets, 2u);
  EXPECT_GT(figures.early, 2u);  // in each step but the first all but the unused parameter's bucket may start early
}

// Slice by slice on one rank, then the tree and the mean, as slices promises.
std::vector<std::vector<double>> sliced_alone(int slices, DType dtype) {
  Network network = network_of_rank_0();
  for (Tensor& each : network.parameters()) each.convert_(dtype);
  std::vector<std::vector<Tensor>> rows;
  for (int s = 0; s < slices; ++s) {
    for (Tensor& each : network.parameters()) each.clear_grad();
    network.loss(cast(part(samples(), s, slices), dtype)).backward();
    rows.emplace_back();
    for (const Tensor& each : network.body.parameters()) rows.back().push_back(cast(each.grad(), DType::f32));
  }
  for (size_t step = 1; step < rows.size(); step *= 2)
    for (size_t i = 0; i + step < rows.size(); i += 2 * step)
      for (size_t k = 0; k < rows[i].size(); ++k) rows[i][k] = rows[i][k] + rows[i + step][k];
  std::vector<std::vector<double>> all;
  for (const Tensor& each : rows[0]) all.push_back(cast(cast(each * (1.0 / slices), dtype), DType::f64).to_vector<double>());
  all.emplace_back();
  return all;
}

// The same bits whatever the number of ranks, the engine and the buckets.
TEST(DataParallel, SlicesFixTheBits) {
  if (size() & (size() - 1)) GTEST_SKIP() << "slices fix the bits for powers of two of ranks";
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const uint64_t bytes : {uint64_t{40}, uint64_t{1} << 20}) {
      Network network = network_of_rank_0();
      for (Tensor& each : network.parameters()) each.convert_(dtype);
      const auto data = parallel(network, {.bucket_bytes = bytes, .slices = 8});
      ASSERT_EQ(data->passes(), 8 / size());
      for (int step = 0; step < 2; ++step) {
        for (int i = 0; i < data->passes(); ++i)
          network.loss(cast(part(samples(), rank() * data->passes() + i, 8), dtype)).backward();
        EXPECT_EQ(gradients(network), sliced_alone(8, dtype)) << dtype_name(dtype) << ", buckets of " << bytes;
      }
    }
}

TEST(DataParallel, WeightsMakeUnevenPartsRight) {
  const Network network = network_of_rank_0();
  const auto data = parallel(network);
  // The last rank has what the others leave: 2 rows each.
  const int64_t rows = rank() + 1 < size() ? 2 : 24 - 2 * (size() - 1);
  data->set_weight(static_cast<double>(rows));
  network.loss(narrow(samples(), 0, 2 * rank(), rows)).backward();
  expect_near(gradients(network), whole_batch());
}

TEST(DataParallel, ARankWithoutDataTakesPart) {
  if (size() == 1) GTEST_SKIP() << "one rank has no other";
  const Network network = network_of_rank_0();
  const auto data = parallel(network);
  const bool has_data = rank() == size() - 1;
  for (int step = 0; step < 2; ++step) {
    for (Tensor& each : network.parameters()) each.clear_grad();
    if (has_data) network.loss(samples()).backward();
    else EXPECT_TRUE(data->step_without_data());
    expect_near(gradients(network), whole_batch());
  }
  EXPECT_FALSE(data->step_without_data());  // no rank has data any more
}

TEST(DataParallel, AccumulationReducesOnce) {
  const Network network = network_of_rank_0();
  const auto data = parallel(network);
  const Tensor mine = part(samples(), rank(), size()), half = part(mine, 0, 2), other = part(mine, 1, 2);
  {
    const pd::NoSync accumulate(*data);
    mul(network.loss(half), 0.5).backward();
  }
  EXPECT_EQ(data->figures().steps, 0u);
  mul(network.loss(other), 0.5).backward();
  EXPECT_EQ(data->figures().steps, 1u);
  expect_near(gradients(network), whole_batch());
}

// A second step without clearing adds to the mean of the first, as in PyTorch.
TEST(DataParallel, GradientsAddUpOverSteps) {
  const Network network = network_of_rank_0();
  const auto data = parallel(network);
  for (int step = 0; step < 2; ++step) network.loss(part(samples(), rank(), size())).backward();
  auto twice = whole_batch();
  for (auto& each : twice)
    for (double& x : each) x *= 2;
  expect_near(gradients(network), twice);
}

// Only rank 0 uses a parameter.
TEST(DataParallel, UnusedParametersNeedNoOption) {
  const Network network = network_of_rank_0();
  const auto data = parallel(network, {.bucket_bytes = 64});
  for (int step = 0; step < 2; ++step) {
    for (Tensor& each : network.parameters()) each.clear_grad();
    const Tensor loss = network.loss(samples());
    (rank() == 0 ? loss + sum(network.unused) : loss).backward();
    ASSERT_TRUE(network.unused.grad().defined());
    EXPECT_NEAR(network.unused.grad().to_vector<float>()[0], 1.0 / size(), 1e-6);
  }
}

TEST(DataParallel, ARankThatUsesFewerParametersInSeveralPasses) {
  const Network network = network_of_rank_0();
  const auto data = parallel(network, {.bucket_bytes = 64, .slices = 2 * size()});
  for (int step = 0; step < 2; ++step)
    for (int pass = 0; pass < 2; ++pass) {
      const Tensor loss = network.loss(samples());
      (rank() == size() - 1 ? loss + sum(network.unused) : loss).backward();
    }
  EXPECT_NEAR(network.unused.grad().to_vector<float>()[0], 1.0 / size(), 1e-6);
}

// A gradient that is not accumulated is not the step's.
TEST(DataParallel, OtherGradientsDoNotDisturb) {
  const Network network = network_of_rank_0();
  const auto data = parallel(network);
  const std::vector<Tensor> parameters = network.body.parameters();
  (void)grad({network.loss(samples())}, parameters);
  network.loss(part(samples(), rank(), size())).backward();
  EXPECT_EQ(data->figures().steps, 1u);
  expect_near(gradients(network), whole_batch());
}

TEST(DataParallel, TrainsAsOneProcessDoes) {
  const Network here = network_of_rank_0(), alone = network_of_rank_0();
  const auto data = parallel(here);
  nn::Adam optimizer(here.parameters(), 1e-2), reference(alone.parameters(), 1e-2);
  for (int step = 0; step < 10; ++step) {
    optimizer.zero_grad();
    here.loss(part(samples(), rank(), size())).backward();
    optimizer.step();
    reference.zero_grad();
    alone.loss(samples()).backward();
    reference.step();
  }
  EXPECT_NEAR(here.loss(samples()).item<double>(), alone.loss(samples()).item<double>(), 1e-5);
}

TEST(DataParallel, BuffersBecomeThoseOfRank0) {
  const Network network;
  Tensor buffer = full({5}, rank());
  pd::DataParallel data(network.parameters(), {buffer});
  EXPECT_EQ(buffer.to_vector<float>(), std::vector<float>(5));
  buffer.fill_(rank() + 1);
  data.broadcast_buffers();
  EXPECT_EQ(buffer.to_vector<float>(), std::vector<float>(5, 1.f));
}

TEST(DataParallel, ErrorsNameWhatIsWrong) {
  const Network network;
  const auto expect = [](const auto& action, const char* words) { expect_mentions(message_of(action), words); };
  expect([&] { pd::DataParallel({zeros({2})}, {}); }, "no parameter requires a gradient");
  expect([&] { parallel(network, {.slices = -1}); }, "a multiple of their number expected");
  expect([&] { parallel(network)->set_weight(0); }, "a weight of 0");
  expect([&] { pd::NoSync(*parallel(network, {.slices = 2 * size()})); }, "leave no_sync out");
  if (size() == 1) return;
  expect([&] { parallel(network, {.slices = size() + 1}); }, "a multiple of their number expected");
  Tensor mine = zeros({2 + rank() % 2});
  mine.requires_grad_();
  expect([&] { pd::DataParallel({mine}, {}); }, "make the same model on all ranks");
}

TEST(DataParallel, ACompiledStepContainsNone) {
  const Network network = network_of_rank_0();
  const auto data = parallel(network);
  auto step = compile([&](const Tensor& x) { network.loss(x).backward(); });
  const auto run = [&] {
    for (int i = 0; i < 3; ++i) step(samples());
  };
  expect_mentions(message_of(run), "reduces gradients between processes");
}

}  // namespace
}  // namespace plugrad::test
