#include <plugrad/training/fit.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/distributed/data_parallel.hpp>
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
  // The mean over all ranks of the group. All ranks call it.
  double mean(const distributed::DataParallel* parallel) {
    if (!parallel) return mean();
    read();
    const std::vector<double> sums = parallel->sum_over_ranks({total_, static_cast<double>(rows_)});
    return sums[0] / sums[1];
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

int64_t rows_of(const Batch& batch) { return batch.empty() || batch[0].rank() == 0 ? 1 : batch[0].size(0); }

// This rank's parts of a batch, one for each pass of a step; empty ones for parts without rows.
std::vector<Batch> parts_of(const Batch& batch, const distributed::DataParallel* parallel) {
  if (!parallel) return {batch};
  const int64_t rows = rows_of(batch), passes = parallel->passes(), parts = parallel->size() * passes;
  std::vector<Batch> own(static_cast<size_t>(passes));
  for (int64_t pass = 0; pass < passes; ++pass) {
    const int64_t part = parallel->rank() * passes + pass, begin = rows * part / parts, end = rows * (part + 1) / parts;
    for (const Tensor& each : batch)
      if (begin < end) own[static_cast<size_t>(pass)].push_back(slice(each, 0, begin, end));
  }
  return own;
}

// Makes a step from the gradients. Returns whether the optimiser made it.
bool make_step(nn::GradScaler& scaler, nn::Optimizer& optimizer, const FitOptions& options) {
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

  // Makes a step, and adds the losses before it.
  void operator()(const Batch& batch, MeanLoss& losses) {
    const std::vector<Batch> parts = parts_of(batch, options_.parallel);
    for (size_t i = 0; const Tensor& loss : step(parts)) {
      while (parts[i].empty()) ++i;
      losses.add(loss, rows_of(parts[i++]));
    }
    if (stepped_ && options_.scheduler) options_.scheduler->step();
  }

 private:
  // Returns the losses of the parts with rows.
  std::vector<Tensor> step(const std::vector<Batch>& parts) {
    const auto is_empty = [](const Batch& each) { return each.empty(); };
    if (!options_.compile || std::ranges::any_of(parts, is_empty)) return compute(parts);
    Batch all;
    for (const Batch& each : parts) all.insert(all.end(), each.begin(), each.end());
    return step_
        .call(all, {},
              [&](const Batch& x) {
                std::vector<Batch> same(parts.size());
                for (size_t i = 0; i < x.size(); ++i) same[i / parts[0].size()].push_back(x[i]);
                return StepResults{compute(same)};
              })
        .tensors;
  }

  std::vector<Tensor> compute(const std::vector<Batch>& parts) {
    nn::GradScaler unscaled({.enabled = false});
    nn::GradScaler& scaler = options_.scaler ? *options_.scaler : unscaled;
    std::vector<Tensor> losses;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].empty()) {
        if (i == 0) optimizer_.zero_grad();
        options_.parallel->pass_without_data();
        continue;
      }
      losses.push_back(forward(loss_of_, parts[i], options_));
      if (i == 0) optimizer_.zero_grad();
      if (options_.parallel) options_.parallel->set_weight(static_cast<double>(rows_of(parts[i])));
      scaler.scale(losses.back()).backward();
    }
    stepped_ = make_step(scaler, optimizer_, options_);
    return losses;
  }

  const LossOfBatch& loss_of_;
  nn::Optimizer& optimizer_;
  const FitOptions& options_;
  CompiledStep step_{{.name = "fit"}};
  bool stepped_ = true;  // by the last step
};

std::string loss_text(double loss) { return "loss " + fixed_text(loss, 4); }

// Whether stop() of this rank, or of one that trains with it, ends the training.
bool stops(const FitOptions& options) {
  if (!options.stop) return false;
  const bool here = options.stop();
  return options.parallel ? options.parallel->sum_over_ranks({here ? 1.0 : 0.0})[0] > 0 : here;
}

// Trains on the batches of an epoch. Returns their mean loss, or nothing if stop() ended the epoch before its last batch.
template <class Batches>
std::optional<double> train_epoch(TrainingStep& step, Batches&& batches, int64_t count, const FitOptions& options,
                                  History& history) {
  const std::string epoch = std::to_string(history.losses.size() + 1) + "/" + std::to_string(options.epochs);
  if (count == 0) refuse("epoch " + epoch + " has no batches: there are no samples, or drop_last leaves all of them out");
  MeanLoss losses;
  Progress bar(count, "epoch " + epoch, options.progress && (!options.parallel || options.parallel->rank() == 0));
  int64_t done = 0;
  for (const Batch& batch : batches) {
    step(batch, losses);
    bar.update([&losses] { return loss_text(losses.mean()); });
    history.interrupted = stops(options);
    if (++done < count && history.interrupted) return std::nullopt;
  }
  const double mean = losses.mean(options.parallel);
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
