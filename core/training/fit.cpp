#include <plugrad/training/fit.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/clipping.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/numbers.hpp>
#include <plugrad/steps/compile.hpp>
#include <plugrad/training/progress.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace plugrad {
namespace {

using LossOfBatch = std::function<Tensor(const Batch& batch)>;

// The mean of the losses of all samples so far. Reading a loss waits for the device, so they are read in groups.
class MeanLoss {
 public:
  void add(const Tensor& loss, int64_t rows) {
    constexpr size_t kPending = 64;
    pending_.emplace_back(loss.detach(), rows);
    if (pending_.size() == kPending) read();
  }
  double mean() {
    read();
    return total_ / static_cast<double>(rows_);
  }

 private:
  void read() {
    for (const auto& [loss, rows] : std::exchange(pending_, {})) {
      total_ += loss.item<double>() * static_cast<double>(rows);
      rows_ += rows;
    }
  }
  std::vector<std::pair<Tensor, int64_t>> pending_;
  double total_ = 0;
  int64_t rows_ = 0;
};

[[noreturn]] void refuse(const std::string& text) { throw Error(Code::invalid, "[fit] " + text); }

void check(const FitOptions& options) {
  if (options.epochs < 0) refuse("epochs " + std::to_string(options.epochs) + " is negative");
  if (options.batch_size && *options.batch_size < 1)
    refuse("batch_size " + std::to_string(*options.batch_size) + " is too small: at least 1 expected");
  if (options.compile && options.scaler)
    refuse("compile is set and there is a scaler, which reads gradients in each step: leave one of them out");
  if (options.max_norm && !(*options.max_norm > 0))
    refuse("max_norm " + number_text(*options.max_norm) + " is not positive: leave it out for gradients without limit");
}

std::vector<Tensor> parameters_of(const nn::Optimizer& optimizer) {
  std::vector<Tensor> all;
  for (size_t group = 0; group < optimizer.groups(); ++group)
    all.insert(all.end(), optimizer.parameters(group).begin(), optimizer.parameters(group).end());
  return all;
}

Tensor forward(const LossOfBatch& loss_of, const Batch& batch, const FitOptions& options) {
  std::optional<Autocast> region;
  if (options.autocast) region.emplace(*options.autocast);
  return loss_of(batch);
}

// Returns whether the optimiser made a step.
bool make_step(const Tensor& loss, nn::Optimizer& optimizer, const FitOptions& options) {
  nn::GradScaler unscaled({.enabled = false});
  nn::GradScaler& scaler = options.scaler ? *options.scaler : unscaled;
  optimizer.zero_grad();
  scaler.scale(loss).backward();
  if (options.max_norm) {
    scaler.unscale_(optimizer);
    clip_grad_norm_(parameters_of(optimizer), *options.max_norm);
  }
  const bool stepped = scaler.step(optimizer);
  scaler.update();
  return stepped;
}

// A step of the training, compiled if the options say so.
class TrainingStep {
 public:
  TrainingStep(const LossOfBatch& loss_of, nn::Optimizer& optimizer, const FitOptions& options)
      : loss_of_(loss_of), optimizer_(optimizer), options_(options) {}

  // Returns the loss before the step.
  Tensor operator()(const Batch& batch) {
    bool stepped = true;
    const auto compute = [&](const Batch& x) {
      const Tensor loss = forward(loss_of_, x, options_);
      stepped = make_step(loss, optimizer_, options_);
      return loss;
    };
    Tensor loss;
    if (options_.compile) loss = step_.call(batch, {}, [&](const Batch& x) { return StepResults{{compute(x)}}; }).tensors[0];
    else loss = compute(batch);
    if (stepped && options_.scheduler) options_.scheduler->step();
    return loss;
  }

 private:
  const LossOfBatch& loss_of_;
  nn::Optimizer& optimizer_;
  const FitOptions& options_;
  CompiledStep step_{{.name = "fit"}};
};

std::string loss_text(double loss) { return "loss " + fixed_text(loss, 4); }

int64_t rows_of(const Batch& batch) { return batch.empty() || batch[0].rank() == 0 ? 1 : batch[0].size(0); }

// Trains on the batches of an epoch. Returns their mean loss, or nothing if stop() ended the epoch before its last batch.
template <class Batches>
std::optional<double> train_epoch(TrainingStep& step, Batches&& batches, int64_t count, const FitOptions& options,
                                  History& history) {
  const std::string epoch = std::to_string(history.losses.size() + 1) + "/" + std::to_string(options.epochs);
  if (count == 0) refuse("epoch " + epoch + " has no batches: there are no samples, or drop_last leaves all of them out");
  MeanLoss losses;
  Progress bar(count, "epoch " + epoch, options.progress);
  int64_t done = 0;
  for (const Batch& batch : batches) {
    losses.add(step(batch), rows_of(batch));
    bar.update([&losses] { return loss_text(losses.mean()); });
    history.interrupted = options.stop && options.stop();
    if (++done < count && history.interrupted) return std::nullopt;
  }
  const double mean = losses.mean();
  bar.close();
  return mean;
}

void finish_epoch(const FitOptions& options, History& history) {
  if (options.validate) {
    const NoGrad unrecorded;
    history.validations.push_back(options.validate());
  }
  if (options.on_epoch) options.on_epoch(static_cast<int64_t>(history.losses.size()) - 1, history.losses.back());
}

// Calls train_one for each epoch. It trains an epoch as train_epoch does.
template <class TrainOne> History train(const FitOptions& options, TrainOne train_one) {
  check(options);
  History history;
  while (static_cast<int64_t>(history.losses.size()) < options.epochs && !history.interrupted) {
    const std::optional<double> loss = train_one(history);
    if (!loss) break;
    history.losses.push_back(*loss);
    finish_epoch(options, history);
  }
  return history;
}

LossOfBatch loss_of_pairs(const nn::Module& model, const FitOptions& options) {
  return [&model, &options](const Batch& batch) {
    if (batch.size() != 2)
      refuse("a batch has " + std::to_string(batch.size()) +
             " tensors: inputs and targets are expected; for others give "
             "fit a function of the batch that returns its loss");
    const Tensor output = model(batch[0]);
    return options.loss ? options.loss(output, batch[1]) : cross_entropy(output, batch[1]);
  };
}

}  // namespace

History fit(const LossOfBatch& loss, DataLoader& loader, nn::Optimizer& optimizer, const FitOptions& options) {
  if (options.batch_size) refuse("batch_size is the loader's: leave it out");
  TrainingStep step(loss, optimizer, options);
  return train(options, [&](History& history) { return train_epoch(step, loader, loader.size(), options, history); });
}

History fit(const nn::Module& model, DataLoader& loader, nn::Optimizer& optimizer, const FitOptions& options) {
  return fit(loss_of_pairs(model, options), loader, optimizer, options);
}

History fit(const nn::Module& model, const Tensor& inputs, const Tensor& targets, nn::Optimizer& optimizer,
            const FitOptions& options) {
  check(options);
  if (inputs.rank() == 0 || targets.rank() == 0 || inputs.size(0) != targets.size(0))
    refuse("inputs have shape " + inputs.shape().text() + " and targets " + targets.shape().text() +
           ": as many rows are expected of both");
  const LossOfBatch loss = loss_of_pairs(model, options);
  if (!options.batch_size) {
    const std::vector<Batch> whole(inputs.size(0) > 0 ? 1 : 0, Batch{inputs, targets});
    TrainingStep step(loss, optimizer, options);
    return train(options, [&](History& history) {
      return train_epoch(step, whole, static_cast<int64_t>(whole.size()), options, history);
    });
  }
  FitOptions rest = options;
  rest.batch_size.reset();
  DataLoader loader(TensorDataset({inputs, targets}),
                    {.batch_size = *options.batch_size, .shuffle = options.shuffle, .seed = options.seed});
  return fit(loss, loader, optimizer, rest);
}

double accuracy(const nn::Module& model, const Tensor& inputs, const Tensor& labels, int64_t batch_size) {
  if (batch_size < 1) throw Error(Code::invalid, "[accuracy] batch_size " + std::to_string(batch_size) + " is below 1");
  const NoGrad unrecorded;
  const int64_t count = inputs.size(0);
  int64_t right = 0;
  for (int64_t first = 0; first < count; first += batch_size) {
    const int64_t last = std::min(count, first + batch_size);
    const Tensor guesses = argmax(model(slice(inputs, 0, first, last)), {-1});
    right += sum(eq(guesses, slice(labels, 0, first, last))).item<int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(std::max<int64_t>(count, 1));
}

}  // namespace plugrad
