// The training loop: its losses, and when it ends.
#include <plugrad/io/moons.hpp>
#include <plugrad/plugrad.hpp>
#include <tests/core/expect.hpp>
#include <tests/paths.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <numeric>

namespace plugrad {
namespace {

using test::elements;
using test::throws;
using Numbers = std::vector<double>;

struct Points {
  Tensor inputs, labels;
};

Points points_of(int64_t count) {
  const io::Moons moons = io::make_moons(count, 0.1, 4);
  return {Tensor::from(moons.points, {count, 2}), Tensor::from(moons.labels, {count})};
}

// A network that starts with the same weights each time.
struct Started {
  Started() {
    manual_seed(1);
    model = std::make_unique<nn::Sequential>(nn::Sequential{nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 2)});
    optimizer = std::make_unique<nn::Adam>(model->parameters(), 0.05);
  }
  std::unique_ptr<nn::Sequential> model;
  std::unique_ptr<nn::Optimizer> optimizer;
};

// Python's tests compare with the same file.
TEST(Fit, HasTheRecordedLosses) {
  const nlohmann::json fixture = nlohmann::json::parse(std::ifstream(test::fixture_path("training.json")))["fit"];
  const Points points = points_of(60);
  Started net;
  nn::CosineAnnealingLR schedule(*net.optimizer, 12);
  const History history =
      fit(*net.model, points.inputs, points.labels, *net.optimizer,
          {.epochs = 3, .scheduler = &schedule, .max_norm = 0.5, .progress = false, .batch_size = 16, .seed = 3});
  EXPECT_TRUE(test::close(history.losses, fixture["losses"].get<Numbers>(), 1e-6));
  EXPECT_EQ(net.optimizer->steps(), 12);
  EXPECT_FALSE(history.interrupted);
}

TEST(Fit, CompiledStepsHaveTheSameLosses) {
  const Points points = points_of(60);
  const auto trained = [&](bool compiled) {
    Started net;
    nn::CosineAnnealingLR schedule(*net.optimizer, 12);
    int64_t calls = 0;
    const auto loss = [&](const Tensor& output, const Tensor& labels) { return ++calls, cross_entropy(output, labels); };
    const History history = fit(*net.model, points.inputs, points.labels, *net.optimizer,
                                {.epochs = 4,
                                 .loss = loss,
                                 .scheduler = &schedule,
                                 .max_norm = 0.5,
                                 .compile = compiled,
                                 .progress = false,
                                 .batch_size = 16,
                                 .seed = 3});
    EXPECT_EQ(net.optimizer->steps(), 16);
    EXPECT_EQ(calls, compiled ? 3 : 16) << "for whole batches twice, before there were gradients, and for the rest";
    return history.losses;
  };
  EXPECT_EQ(trained(true), trained(false));
}

TEST(Fit, RefusesToCompileStepsOfAScaler) {
  const Points points = points_of(8);
  Started net;
  nn::GradScaler scaler;
  EXPECT_TRUE(throws(Code::invalid, {"[fit] compile", "scaler"}, [&] {
    fit(*net.model, points.inputs, points.labels, *net.optimizer, {.scaler = &scaler, .compile = true, .progress = false});
  }));
}

TEST(Fit, ALoaderAndTensorsGiveTheSameLosses) {
  const Points points = points_of(50);
  Started first, second, third;
  const History one = fit(*first.model, points.inputs, points.labels, *first.optimizer,
                          {.epochs = 2, .progress = false, .batch_size = 16, .seed = 3});
  DataLoader loader(TensorDataset({points.inputs, points.labels}),
                    {.batch_size = 16, .shuffle = true, .seed = 3, .num_workers = 2});
  EXPECT_EQ(fit(*second.model, loader, *second.optimizer, {.epochs = 2, .progress = false}).losses, one.losses);
  EXPECT_EQ(loader.next_epoch(), 2);
  loader.set_epoch(0);
  const auto loss = [&](const Batch& batch) { return cross_entropy((*third.model)(batch[0]), batch[1]); };
  EXPECT_EQ(fit(loss, loader, *third.optimizer, {.epochs = 2, .progress = false}).losses, one.losses);
}

TEST(Fit, TheLossOfAnEpochIsTheMeanOverItsSamples) {
  Tensor weight = zeros({1}, DType::f64).requires_grad_();
  nn::SGD optimizer({weight}, 0);
  DataLoader loader(TensorDataset({test::f64({1, 2, 3, 4, 10})}), {.batch_size = 4});
  const auto loss = [&](const Batch& batch) { return mean(batch[0] + weight); };
  EXPECT_EQ(fit(loss, loader, optimizer, {.epochs = 2, .progress = false}).losses, (Numbers{4, 4}));
}

TEST(Fit, UsesAllRowsAtOnceWithoutABatchSize) {
  const Points points = points_of(40);
  Started net, other;
  std::vector<int64_t> rows;
  const auto loss = [&](const Tensor& output, const Tensor& labels) {
    rows.push_back(output.size(0));
    return cross_entropy(output, labels);
  };
  const Numbers losses =
      fit(*net.model, points.inputs, points.labels, *net.optimizer, {.epochs = 3, .loss = loss, .progress = false}).losses;
  EXPECT_EQ(rows, (std::vector<int64_t>{40, 40, 40}));
  EXPECT_EQ(losses[0], cross_entropy((*other.model)(points.inputs), points.labels).item<double>());
}

TEST(Fit, CallsItsCallbacks) {
  const Points points = points_of(20);
  Started net;
  std::string calls;
  FitOptions options{.epochs = 2, .progress = false, .batch_size = 10};
  options.validate = [&] {
    EXPECT_FALSE(grad_enabled());
    calls += "v";
    return static_cast<double>(calls.size());
  };
  options.on_epoch = [&](int64_t epoch, double loss) { calls += std::to_string(epoch) + (loss > 0 ? "+" : "-"); };
  const History history = fit(*net.model, points.inputs, points.labels, *net.optimizer, options);
  EXPECT_EQ(calls, "v0+v1+");
  EXPECT_EQ(history.validations, (Numbers{1, 4}));
}

TEST(Fit, EndsAfterTheStepInWhichItIsAsked) {
  const Points points = points_of(40);
  for (const auto& [steps, epochs] : {std::pair{3, 0}, {4, 1}, {6, 1}, {8, 2}, {13, 3}}) {
    Started net;
    int left = steps, ended = 0;
    const History history = fit(*net.model, points.inputs, points.labels, *net.optimizer,
                                {.epochs = 3,
                                 .on_epoch = [&](int64_t, double) { ++ended; },
                                 .stop = [&] { return --left == 0; },
                                 .progress = false,
                                 .batch_size = 10});
    EXPECT_EQ(history.interrupted, steps <= 12);
    EXPECT_EQ(history.losses.size(), static_cast<size_t>(epochs)) << steps;
    EXPECT_EQ(ended, epochs);
    EXPECT_EQ(net.optimizer->steps(), std::min(steps, 12));
  }
}

TEST(Fit, LimitsTheGradients) {
  Tensor weight = zeros({2}, DType::f64).requires_grad_();
  nn::SGD optimizer({weight}, 1);
  DataLoader loader(TensorDataset({test::f64({30, 40}, {1, 2})}));
  const auto loss = [&](const Batch& batch) { return sum(batch[0] * weight); };
  fit(loss, loader, optimizer, {.max_norm = 5, .progress = false});
  EXPECT_TRUE(test::close(elements(weight), {-3, -4}, 1e-6));
}

TEST(Fit, RunsInMixedPrecision) {
  const Points points = points_of(60);
  std::vector<DType> dtypes;
  FitOptions options{.epochs = 3, .max_norm = 0.5, .progress = false, .batch_size = 16, .seed = 3};
  options.loss = [&](const Tensor& output, const Tensor& labels) {
    dtypes.push_back(output.dtype());
    return cross_entropy(output, labels);
  };
  Started plain, mixed;
  const Numbers losses = fit(*plain.model, points.inputs, points.labels, *plain.optimizer, options).losses;
  EXPECT_EQ(dtypes, std::vector<DType>(12, DType::f32));
  nn::GradScaler scaler({.init_scale = 1024, .growth_interval = 12});
  options.autocast = AutocastOptions{.dtype = DType::f16};
  options.scaler = &scaler;
  dtypes.clear();
  const Numbers close = fit(*mixed.model, points.inputs, points.labels, *mixed.optimizer, options).losses;
  EXPECT_EQ(dtypes, std::vector<DType>(12, DType::f16));
  EXPECT_TRUE(test::close(close, losses, 0.01));
  EXPECT_NE(close, losses);
  EXPECT_EQ(scaler.get_scale(), 2048);  // after twelve steps
  EXPECT_FALSE(autocast_enabled());
}

TEST(Fit, AScalerLeavesOutStepsOfInfiniteGradients) {
  Tensor weight = ones({1}).requires_grad_();
  nn::SGD optimizer({weight}, 0.5);
  nn::GradScaler scaler({.init_scale = 4});
  DataLoader loader(TensorDataset({Tensor::from<float>({1, INFINITY, 2}, {3, 1})}));
  const auto loss = [&](const Batch& batch) { return sum(batch[0] * weight); };
  nn::StepLR halved(optimizer, 1, 0.5);
  fit(loss, loader, optimizer, {.scheduler = &halved, .scaler = &scaler, .progress = false});
  EXPECT_EQ(elements(weight), (Numbers{1 - 0.5 * 1 - 0.25 * 2}));
  EXPECT_EQ(scaler.get_scale(), 2);
  EXPECT_EQ(halved.last_epoch(), 2);
}

TEST(Fit, RefusesWhatMakesNoTraining) {
  const Points points = points_of(6);
  Started net;
  const auto refused = [&](const char* text, FitOptions options) {
    options.progress = false;
    return throws(Code::invalid, {"[fit]", text},
                  [&] { fit(*net.model, points.inputs, points.labels, *net.optimizer, options); });
  };
  EXPECT_TRUE(refused("epochs -1", {.epochs = -1}));
  EXPECT_TRUE(refused("batch_size 0", {.batch_size = 0}));
  EXPECT_TRUE(refused("max_norm", {.max_norm = 0}));
  EXPECT_TRUE(refused("max_norm", {.max_norm = std::nan("")}));
  EXPECT_TRUE(throws(Code::invalid, {"(6, 2)", "(4,)"},
                     [&] { fit(*net.model, points.inputs, slice(points.labels, 0, 0, 4), *net.optimizer); }));
  DataLoader loader(TensorDataset({points.inputs}), {.batch_size = 10, .drop_last = true});
  EXPECT_TRUE(throws(Code::invalid, {"no batches"}, [&] { fit(*net.model, loader, *net.optimizer); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"batch_size", "loader"}, [&] { fit(*net.model, loader, *net.optimizer, {.batch_size = 2}); }));
  DataLoader inputs_alone(TensorDataset({points.inputs}));
  EXPECT_TRUE(
      throws(Code::invalid, {"1 tensors"}, [&] { fit(*net.model, inputs_alone, *net.optimizer, {.progress = false}); }));
  EXPECT_EQ(net.optimizer->steps(), 0);
  EXPECT_TRUE(fit(*net.model, points.inputs, points.labels, *net.optimizer, {.epochs = 0}).losses.empty());
}

TEST(Fit, LearnsMoons) {
  const Points points = points_of(200);
  Started net;
  const double before = accuracy(*net.model, points.inputs, points.labels);
  fit(*net.model, points.inputs, points.labels, *net.optimizer, {.epochs = 20, .progress = false, .batch_size = 50});
  const double after = accuracy(*net.model, points.inputs, points.labels, 70);
  EXPECT_GT(after, std::max(before, 0.9));
  EXPECT_EQ(after, accuracy(*net.model, points.inputs, points.labels));
  EXPECT_THROW(accuracy(*net.model, points.inputs, points.labels, 0), Error);
}

}  // namespace
}  // namespace plugrad
