#include <tools/train/trainer.hpp>

#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace plugrad::test {
namespace {

using training::Data;
using training::Trainer;
using training::TrainingConfig;

TrainingConfig small_moons() {
  TrainingConfig config = training::default_config("moons");
  config.epochs = 2;
  return config;
}

TEST(Config, JsonReadsBackAndOtherTextIsRefused) {
  TrainingConfig config = small_moons();
  config.images = "a \"path\"";
  config.rate = 0.1;
  config.seed = UINT64_MAX;
  EXPECT_EQ(training::config_from_json(training::config_to_json(config)), config);
  for (const char* text : {"", "{}", "[]", "{\"data\":1}"}) EXPECT_THROW(training::config_from_json(text), Error) << text;
  EXPECT_THROW(training::default_config("mnist"), Error);
}

TEST(Trainer, LossesFallAndRepeat) {
  const TrainingConfig config = small_moons();
  const Data data = training::load_data(config);
  Trainer first(config, data, default_device()), second(config, data, default_device());
  const std::vector<float> losses = first.run_steps(50);
  ASSERT_EQ(losses.size(), 50u);
  EXPECT_NEAR(losses.front(), 1, 0.3);
  EXPECT_LT(losses.back(), losses.front() / 2);
  std::vector<float> pieces;
  for (const int count : {1, 30, 19}) {
    const std::vector<float> more = second.run_steps(count);
    pieces.insert(pieces.end(), more.begin(), more.end());
  }
  EXPECT_EQ(losses, pieces);
  EXPECT_EQ(first.history().losses, losses);
  EXPECT_EQ(first.history().evaluations.size(), 1u);
  EXPECT_EQ(first.samples_seen(), 1000 + 18 * 32);
}

TEST(Trainer, EndsWithItsEpochs) {
  const TrainingConfig config = small_moons();
  Trainer trainer(config, training::load_data(config), default_device());
  EXPECT_EQ(trainer.run_steps(1000000).size(), 64u);
  EXPECT_TRUE(trainer.run_steps(1).empty());
  EXPECT_EQ(trainer.epoch(), 2);
  EXPECT_EQ(trainer.samples_seen(), 2000);
  EXPECT_EQ(trainer.history().evaluations.back().step, 64);
  EXPECT_GT(trainer.evaluate().accuracy, 0.8);
}

TEST(Trainer, StopsAfterTheStepInWhichItIsAsked) {
  const TrainingConfig config = small_moons();
  Trainer trainer(config, training::load_data(config), default_device());
  EXPECT_EQ(trainer.run_epoch_steps(20, [&] { return trainer.step() >= 7; }).size(), 7u);
}

TEST(Trainer, AResumedRunHasTheSameNumbers) {
  const Scratch scratch;
  const TrainingConfig config = small_moons();
  const Data data = training::load_data(config);
  Trainer whole(config, data, default_device()), first(config, data, default_device()),
      second(config, data, default_device());
  whole.run_steps(45);
  first.run_steps(20);
  first.save(scratch.path("checkpoint"));
  second.run_steps(3);
  second.load(scratch.path("checkpoint"));
  EXPECT_EQ(second.step(), 20);
  second.run_steps(25);
  EXPECT_EQ(second.history().losses, whole.history().losses);
  second.save(scratch.path("second"));
  whole.save(scratch.path("whole"));
  EXPECT_EQ(read_file(scratch.path("second")), read_file(scratch.path("whole")));
}

TEST(Trainer, ACheckpointOfAnotherNetworkChangesNothing) {
  const Scratch scratch;
  TrainingConfig config = small_moons();
  const Data data = training::load_data(config);
  Trainer other(config, data, default_device());
  other.save(scratch.path("other"));
  config.hidden = {8};
  Trainer trainer(config, data, default_device());
  trainer.run_steps(3);
  trainer.save(scratch.path("before"));
  expect_mentions(io_error_of([&] { trainer.load(scratch.path("other")); }), "expected f32 (8, 2)");
  trainer.save(scratch.path("after"));
  EXPECT_EQ(read_file(scratch.path("before")), read_file(scratch.path("after")));
}

TEST(Trainer, PixelsAreNormalised) {
  training::Samples samples;
  samples.count = 4;
  samples.features = 1;
  samples.pixels = {0, 0, 255, 255};
  samples.labels = {0, 1, 2, 0};
  const training::Normalisation normalisation = training::normalisation_of(samples);
  EXPECT_DOUBLE_EQ(normalisation.mean, 0.5);
  EXPECT_DOUBLE_EQ(normalisation.deviation, 0.5);
  const TensorDataset uploaded = on_device(samples, normalisation, training::Objective::cross_entropy, default_device());
  EXPECT_EQ(uploaded.tensors()[0].to_vector<float>(), (std::vector<float>{-1, -1, 1, 1}));
  EXPECT_EQ(uploaded.tensors()[1].to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 0}));
  samples.pixels = {9, 9, 9, 9};
  EXPECT_EQ(training::normalisation_of(samples).deviation, 1);
}

TEST(Trainer, AnEpochIsEvaluatedOnceAndApartFromItsSteps) {
  const Scratch scratch;
  const TrainingConfig config = small_moons();
  const Data data = training::load_data(config);
  Trainer trainer(config, data, default_device());
  trainer.try_evaluation();
  trainer.evaluate_epoch();
  EXPECT_TRUE(trainer.history().evaluations.empty());
  trainer.run_epoch_steps(1000);
  EXPECT_EQ(trainer.step(), trainer.steps_per_epoch());
  EXPECT_TRUE(trainer.history().evaluations.empty());
  trainer.save(scratch.path("saved"));
  trainer.evaluate_epoch();
  trainer.evaluate_epoch();
  ASSERT_EQ(trainer.history().evaluations.size(), 1u);
  Trainer resumed(config, data, default_device());
  resumed.load(scratch.path("saved"));
  resumed.evaluate_epoch();
  EXPECT_EQ(resumed.history().evaluations[0].loss, trainer.history().evaluations[0].loss);
}

TEST(Trainer, SizesThatMakeNoNetworkAreRefused) {
  const Data data = training::load_data(small_moons());
  TrainingConfig no_epoch = small_moons(), no_batch = small_moons(), no_width = small_moons(), no_rate = small_moons();
  no_epoch.epochs = 0;
  no_batch.batch = -1;
  no_width.hidden = {4, 0};
  no_rate.rate = std::nan("");
  TrainingConfig endless = small_moons(), huge = small_moons();
  endless.epochs = huge.batch = INT64_MAX;
  for (const TrainingConfig& config : {no_epoch, no_batch, no_width, no_rate, endless, huge}) {
    EXPECT_THROW(Trainer(config, data, default_device()), Error);
  }
}

}  // namespace
}  // namespace plugrad::test
