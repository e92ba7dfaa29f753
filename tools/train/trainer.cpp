#include <tools/train/trainer.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/nn/activations.hpp>
#include <plugrad/nn/layers.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/generator.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>

namespace plugrad::training {
namespace {

const TrainingConfig& checked(const TrainingConfig& config) {
  const bool widths = std::ranges::all_of(config.hidden, [](int64_t width) { return width >= 1; });
  if (config.epochs < 1 || config.batch < 1 || !(config.rate > 0) || !widths) {
    throw Error(Code::invalid, "[train] epochs, batch, rate and the widths of hidden layers must be above 0");
  }
  constexpr int64_t kMost = 1'000'000'000;
  if (config.epochs > kMost || config.batch > kMost) {
    throw Error(Code::invalid, "[train] " + std::to_string(config.epochs) + " epochs in batches of " +
                                   std::to_string(config.batch) + ": at most 1000000000 of each are possible");
  }
  return config;
}

int64_t count_correct(const Tensor& outputs, const Tensor& targets, Objective objective) {
  if (objective == Objective::max_margin) return sum(gt(squeeze(outputs, {1}) * targets, 0)).item<int64_t>();
  return sum(eq(argmax(outputs, {1}), targets)).item<int64_t>();
}

}  // namespace

double recent_loss(const History& history) {
  constexpr ptrdiff_t kSteps = 50;
  const auto count = std::min(kSteps, std::ssize(history.losses));
  return std::accumulate(history.losses.end() - count, history.losses.end(), 0.0) / static_cast<double>(count);
}

std::shared_ptr<nn::Sequential> make_mlp(int64_t inputs, const std::vector<int64_t>& hidden, int64_t outputs,
                                         Device device) {
  std::vector<std::shared_ptr<nn::Module>> layers;
  for (const int64_t width : hidden) {
    layers.push_back(std::make_shared<nn::Linear>(inputs, width, true, DType::f32, device));
    layers.push_back(std::make_shared<nn::ReLU>());
    inputs = width;
  }
  layers.push_back(std::make_shared<nn::Linear>(inputs, outputs, true, DType::f32, device));
  return std::make_shared<nn::Sequential>(std::move(layers));
}

Tensor mean_loss(const Tensor& outputs, const Tensor& targets, Objective objective) {
  if (objective == Objective::cross_entropy) return cross_entropy(outputs, targets);
  return mean(relu(1 - squeeze(outputs, {1}) * targets));
}

Trainer::Trainer(const TrainingConfig& config, const Data& data, Device device)
    : config_(checked(config)), device_(device), normalisation_(normalisation_of(data.train)), outputs_(data.outputs),
      objective_(data.objective),
      train_(std::make_shared<const TensorDataset>(on_device(data.train, normalisation_, data.objective, device))),
      loader_(train_, {.batch_size = config_.batch, .shuffle = true, .seed = config_.seed}) {
  if (data.has_test) judged_ = std::make_unique<TensorDataset>(on_device(data.test, normalisation_, data.objective, device));
  set_generator_state(device_, {config_.seed, 0});
  network_ = make_mlp(data.train.features, config_.hidden, outputs_, device_);
  optimizer_ = std::make_unique<nn::Adam>(network_->parameters(), config_.rate);
  schedule_ = std::make_unique<nn::CosineAnnealingLR>(*optimizer_, std::max<int64_t>(total_steps(), 1));
}

int64_t Trainer::steps_per_epoch() const { return loader_.size(); }

int64_t Trainer::samples_seen() const { return epoch() * train_->size() + step() % steps_per_epoch() * config_.batch; }

int64_t Trainer::parameter_count() const {
  int64_t count = 0;
  for (const Tensor& parameter : network_->parameters()) count += parameter.count();
  return count;
}

Tensor Trainer::train_step() {
  const Batch batch = loader_.batch(epoch(), step() % steps_per_epoch());
  const Tensor loss = mean_loss(network_->forward(batch[0]), batch[1], objective_);
  optimizer_->zero_grad();
  loss.backward();
  optimizer_->step();
  schedule_->step();
  return loss.detach();
}

// Reading a loss waits for the device, so many are read at once.
void Trainer::flush(std::vector<Tensor>& pending, std::vector<float>& losses) {
  if (pending.empty()) return;
  for (const float loss : stack(pending).to_vector<float>()) {
    losses.push_back(loss);
    history_.losses.push_back(loss);
  }
  pending.clear();
}

std::vector<float> Trainer::run_epoch_steps(int64_t count, const std::function<bool()>& stop) {
  constexpr size_t kPending = 64;
  std::vector<float> losses;
  std::vector<Tensor> pending;
  const int64_t last = std::min((epoch() + 1) * steps_per_epoch(), total_steps());
  for (int64_t i = 0; i < count && step() < last; ++i) {
    pending.push_back(train_step());
    if (pending.size() == kPending) flush(pending, losses);
    if (stop && stop()) break;
  }
  flush(pending, losses);
  return losses;
}

void Trainer::evaluate_epoch() {
  const bool ended = step() > 0 && step() % steps_per_epoch() == 0;
  const bool known = !history_.evaluations.empty() && history_.evaluations.back().step == step();
  if (ended && !known) history_.evaluations.push_back(evaluate());
}

std::vector<float> Trainer::run_steps(int64_t count) {
  std::vector<float> losses;
  while (count > static_cast<int64_t>(losses.size()) && step() < total_steps()) {
    const std::vector<float> more = run_epoch_steps(count - static_cast<int64_t>(losses.size()));
    losses.insert(losses.end(), more.begin(), more.end());
    evaluate_epoch();
  }
  return losses;
}

Evaluation evaluate(const nn::Module& network, const TensorDataset& samples, Objective objective) {
  constexpr int64_t kRows = 2000;
  const NoGrad unrecorded;
  double loss = 0;
  int64_t correct = 0;
  for (int64_t first = 0; first < samples.size(); first += kRows) {
    const int64_t last = std::min(first + kRows, samples.size());
    const Tensor outputs = network.forward(slice(samples.tensors()[0], 0, first, last));
    const Tensor targets = slice(samples.tensors()[1], 0, first, last);
    loss += mean_loss(outputs, targets, objective).item<double>() * static_cast<double>(last - first);
    correct += count_correct(outputs, targets, objective);
  }
  const double count = static_cast<double>(samples.size());
  return {0, loss / count, static_cast<double>(correct) / count};
}

void Trainer::try_evaluation() const {
  const TensorDataset& all = judged_ ? *judged_ : *train_;
  std::vector<Tensor> few;
  for (const Tensor& each : all.tensors()) few.push_back(slice(each, 0, 0, std::min(config_.batch, all.size())));
  training::evaluate(*network_, TensorDataset(few), objective_);
}

Evaluation Trainer::evaluate() const {
  Evaluation evaluation = training::evaluate(*network_, judged_ ? *judged_ : *train_, objective_);
  evaluation.step = step();
  return evaluation;
}

}  // namespace plugrad::training
