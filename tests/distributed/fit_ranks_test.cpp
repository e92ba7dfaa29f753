// The training loop on several ranks, against the same loop of one process.
#include <tests/distributed/ranks.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace plugrad::test {
namespace {
namespace pd = plugrad::distributed;

int rank() { return pd::get_rank(); }
int size() { return pd::get_world_size(); }

// 45 rows in batches of 8: in the last batch some ranks have fewer rows, or none.
struct Data {
  Data() {
    manual_seed(11);
    inputs = randn({45, 6});
    targets = randint(4, {45});
  }
  Tensor inputs, targets;
};

struct Result {
  std::vector<double> losses;
  std::vector<std::vector<float>> parameters;
};

Result trained(bool in_parallel, int slices = 0, bool compiled = false) {
  const Data data;
  manual_seed(3);
  nn::Sequential model{nn::Linear(6, 9), nn::Tanh(), nn::Linear(9, 4)};
  std::unique_ptr<pd::DataParallel> parallel;
  if (in_parallel) parallel = std::make_unique<pd::DataParallel>(model, pd::DataParallelOptions{.slices = slices});
  nn::Adam optimizer(model.parameters(), 1e-2);
  FitOptions options{.epochs = 3, .max_norm = 1, .compile = compiled, .progress = false, .batch_size = 8};
  options.parallel = parallel.get();
  Result result{fit(model, data.inputs, data.targets, optimizer, options).losses, {}};
  for (const Tensor& each : model.parameters()) result.parameters.push_back(each.to_vector<float>());
  return result;
}

TEST(FitOnRanks, TrainsAsOneProcessDoes) {
  const Result alone = trained(false);
  for (const int slices : {0, 2 * size()}) {
    const Result ours = trained(true, slices);
    ASSERT_EQ(ours.losses.size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(ours.losses[i], alone.losses[i], 1e-5) << slices;
    for (size_t i = 0; i < alone.parameters.size(); ++i)
      for (size_t k = 0; k < alone.parameters[i].size(); ++k)
        ASSERT_NEAR(ours.parameters[i][k], alone.parameters[i][k], 1e-4) << slices;
    const Result compiled = trained(true, slices, true);
    EXPECT_EQ(compiled.losses, ours.losses);
    EXPECT_EQ(compiled.parameters, ours.parameters);
  }
}

TEST(FitOnRanks, OneRankStopsAll) {
  const Data data;
  nn::Sequential model{nn::Linear(6, 4)};
  pd::DataParallel parallel(model);
  nn::SGD optimizer(model.parameters(), 0.1);
  int steps = 0;
  FitOptions options{.epochs = 3, .progress = false, .batch_size = 8};
  options.parallel = &parallel;
  options.stop = [&] { return ++steps == 4 && rank() == size() - 1; };
  const History history = fit(model, data.inputs, data.targets, optimizer, options);
  EXPECT_TRUE(history.interrupted);
  EXPECT_EQ(steps, 4);
}

}  // namespace
}  // namespace plugrad::test
