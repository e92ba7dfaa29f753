#include <tools/train/trainer.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/distributed/data_parallel.hpp>
#include <plugrad/nn/activations.hpp>
#include <plugrad/nn/layers.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/generator.hpp>
#include <plugrad/steps/compile.hpp>

#include <algorithm>
#include <bit>
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

// The rows [begin, end) of a part of a batch.
std::pair<int64_t, int64_t> part_of(int64_t rows, int64_t part, int64_t parts) {
  return {rows * part / parts, rows * (part + 1) / parts};
}

// Adds up numbers of all ranks; each number is 0 on all ranks but one.
void join_ranks(std::vector<double>& numbers, Device device) {
  if (!distributed::is_initialized()) return;
  const Tensor all = Tensor::from(numbers, {std::ssize(numbers)}, device);
  distributed::all_reduce(all);
  numbers = all.to_vector<double>();
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
  if (distributed::is_initialized()) {
    rank_ = distributed::get_rank();
    ranks_ = distributed::get_world_size();
  }
  if (ranks_ == 1 && config_.slices == 0) return;
  distributed::DataParallelOptions options;
  options.slices = static_cast<int>(config_.slices);
  options.unit = static_cast<double>(config_.batch) / static_cast<double>(config_.slices ? config_.slices : ranks_);
  parallel_ = std::make_unique<distributed::DataParallel>(*network_, options);
  passes_ = parallel_->passes();
}

Trainer::Trainer(Trainer&& other) noexcept = default;
Trainer::~Trainer() = default;

void Trainer::compile() { compiled_ = std::make_unique<CompiledStep>(CompileOptions{.name = "train"}); }

int64_t Trainer::steps_per_epoch() const { return loader_.size(); }

int64_t Trainer::samples_seen() const { return epoch() * train_->size() + step() % steps_per_epoch() * config_.batch; }

int64_t Trainer::parameter_count() const {
  int64_t count = 0;
  for (const Tensor& parameter : network_->parameters()) count += parameter.count();
  return count;
}

// A pass over samples; of no samples, beside other ranks. Returns the loss, undefined without samples.
Tensor Trainer::compute(const Batch& samples, bool is_first, bool is_last) {
  if (is_first) optimizer_->zero_grad();
  Tensor loss;
  if (samples.empty()) {
    parallel_->pass_without_data();
  } else {
    if (parallel_) parallel_->set_weight(static_cast<double>(samples[0].size(0)));
    loss = mean_loss(network_->forward(samples[0]), samples[1], objective_);
    loss.backward();
    loss = loss.detach();
  }
  if (is_last) optimizer_->step();
  return loss;
}

// The part of a batch that belongs to a pass of this rank. Returns its loss; undefined for a part without samples.
Tensor Trainer::train_pass(const Batch& batch, int64_t pass) {
  const bool is_first = pass == 0, is_last = pass + 1 == passes_;
  Batch part = batch;
  if (parallel_) {
    const auto [begin, end] = part_of(batch[0].size(0), rank_ * passes_ + pass, ranks_ * passes_);
    if (begin == end) return compute({}, is_first, is_last);
    part = {slice(batch[0], 0, begin, end), slice(batch[1], 0, begin, end)};
  }
  if (!compiled_) return compute(part, is_first, is_last);
  const char which[] = {is_first, is_last};
  return compiled_
      ->call(part, {which, sizeof which}, [&](const Batch& x) { return StepResults{{compute(x, is_first, is_last)}}; })
      .tensors[0];
}

Trainer::StepLosses Trainer::train_step() {
  const Batch batch = loader_.batch(epoch(), step() % steps_per_epoch());
  StepLosses losses{{}, batch[0].size(0)};
  for (int64_t pass = 0; pass < passes_; ++pass) losses.passes.push_back(train_pass(batch, pass));
  schedule_->step();
  return losses;
}

// For each step the losses of the passes of all ranks, in the order of the samples.
std::vector<std::vector<float>> Trainer::losses_of_all(const std::vector<StepLosses>& steps) const {
  std::vector<Tensor> known;
  for (const StepLosses& each : steps)
    std::ranges::copy_if(each.passes, std::back_inserter(known), [](const Tensor& loss) { return loss.defined(); });
  const std::vector<float> read = known.empty() ? std::vector<float>() : stack(known).to_vector<float>();
  std::vector<float> own;
  auto next = read.begin();
  for (const StepLosses& each : steps)
    for (const Tensor& loss : each.passes) own.push_back(loss.defined() ? *next++ : 0.f);
  std::vector<float> all = own;
  if (ranks_ > 1) {
    const Tensor here = Tensor::from(own, {std::ssize(own)}, device_);
    const Tensor joined = zeros({ranks_ * std::ssize(own)}, DType::f32, device_);
    distributed::all_gather_into_tensor(joined, here);
    all = joined.to_vector<float>();
  }
  std::vector<std::vector<float>> by_step(steps.size());
  for (size_t i = 0; i < steps.size(); ++i)
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto first = all.begin() + rank * std::ssize(own) + static_cast<int64_t>(i) * passes_;
      by_step[i].insert(by_step[i].end(), first, first + passes_);
    }
  return by_step;
}

// Reading a loss waits for the device, so many are read at once.
void Trainer::flush(std::vector<StepLosses>& pending, std::vector<float>& losses) {
  if (pending.empty()) return;
  const std::vector<std::vector<float>> all = losses_of_all(pending);
  for (size_t i = 0; i < pending.size(); ++i) {
    const int64_t rows = pending[i].rows;
    double sum = 0;
    for (int64_t part = 0; part < ranks_ * passes_; ++part) {
      const auto [begin, end] = part_of(rows, part, ranks_ * passes_);
      sum += static_cast<double>(end - begin) * static_cast<double>(all[i][static_cast<size_t>(part)]);
    }
    losses.push_back(static_cast<float>(sum / static_cast<double>(rows)));
    history_.losses.push_back(losses.back());
  }
  pending.clear();
}

// FNV-1a: https://en.wikipedia.org/wiki/Fowler-Noll-Vo_hash_function
uint64_t Trainer::digest() const {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const Tensor& parameter : network_->parameters())
    for (const float value : parameter.to_vector<float>()) hash = (hash ^ std::bit_cast<uint32_t>(value)) * 0x100000001b3u;
  return hash;
}

std::vector<float> Trainer::run_epoch_steps(int64_t count, const std::function<bool()>& stop) {
  constexpr size_t kPending = 64;
  std::vector<float> losses;
  std::vector<StepLosses> pending;
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

// In a group of processes each evaluates some pieces, and all add up the same numbers in the same order.
Evaluation evaluate(const nn::Module& network, const TensorDataset& samples, Objective objective) {
  constexpr int64_t kRows = 2000;
  const NoGrad unrecorded;
  const int64_t pieces = (samples.size() + kRows - 1) / kRows;
  const int64_t ranks = distributed::is_initialized() ? distributed::get_world_size() : 1;
  const int64_t rank = distributed::is_initialized() ? distributed::get_rank() : 0;
  std::vector<double> found(static_cast<size_t>(2 * pieces));
  for (int64_t piece = rank; piece < pieces; piece += ranks) {
    const int64_t first = piece * kRows, last = std::min(first + kRows, samples.size());
    const Tensor outputs = network.forward(slice(samples.tensors()[0], 0, first, last));
    const Tensor targets = slice(samples.tensors()[1], 0, first, last);
    const auto at = static_cast<size_t>(2 * piece);
    found[at] = mean_loss(outputs, targets, objective).item<double>() * static_cast<double>(last - first);
    found[at + 1] = static_cast<double>(count_correct(outputs, targets, objective));
  }
  join_ranks(found, samples.tensors()[0].device());
  double loss = 0, correct = 0;
  for (size_t at = 0; at < found.size(); at += 2) {
    loss += found[at];
    correct += found[at + 1];
  }
  const double count = static_cast<double>(samples.size());
  return {0, loss / count, correct / count};
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
