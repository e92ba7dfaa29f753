// One training loop, the same in C++ and Python: for the same model, data, seed and options, plugrad.training.fit of the
// Python package visits the samples in the same order and has the same losses.
//
//   nn::Sequential model{nn::Linear(784, 128), nn::ReLU(), nn::Linear(128, 10)};  // braces draw the weights in this order
//   nn::Adam optimizer(model.parameters(), 1e-3);
//   DataLoader loader(TensorDataset({images, labels}), {.batch_size = 64, .shuffle = true});
//   const History history = fit(model, loader, optimizer, {.epochs = 5, .max_norm = 1});
#pragma once
#include <plugrad/autograd/autocast.hpp>
#include <plugrad/nn/grad_scaler.hpp>
#include <plugrad/nn/optimizer.hpp>
#include <plugrad/nn/schedules.hpp>
#include <plugrad/training/data_loader.hpp>

#include <functional>
#include <optional>
#include <vector>

namespace plugrad {
namespace distributed {
class DataParallel;
}

// The results of a training.
struct History {
  std::vector<double> losses;       // the mean of each complete epoch over its samples, before each step
  std::vector<double> validations;  // the results of validate after each epoch
  bool interrupted = false;         // whether stop() ended the training
};

struct FitOptions {
  int64_t epochs = 1;
  // The loss of a model's output under the targets; one element. By default cross_entropy. Ignored by the fit() with a loss
  // of a batch.
  std::function<Tensor(const Tensor& output, const Tensor& target)> loss = {};
  // Its step() is called after each step of the optimiser, except steps left out by the scaler.
  nn::LRScheduler* scheduler = nullptr;
  std::optional<double> max_norm = {};  // the gradients of a step are limited to this norm: see clip_grad_norm_
  // Mixed precision: model and loss run in a region of these options, and the scaler makes the steps; f16 needs a scaler.
  std::optional<AutocastOptions> autocast = {};
  nn::GradScaler* scaler = nullptr;
  // Records the steps and replays them, with the same bits: see compile(). Not allowed with a scaler: it reads gradients.
  bool compile = false;
  // Ranks that train together: all have the same batches and callbacks, and each computes the loss of its part of the rows.
  // The parameters are those of the model. Losses and steps are those of all rows; stop() of one rank stops all.
  distributed::DataParallel* parallel = nullptr;
  std::function<double()> validate = {};                          // called after each epoch, unrecorded; see History
  std::function<void(int64_t epoch, double loss)> on_epoch = {};  // called after validate
  std::function<bool()> stop = {};                                // called after each step; true ends the training
  bool progress = true;                                           // draws a bar for each epoch on stderr
  // Divides tensors without a loader into batches. Without batch_size a batch has all rows, in their order.
  std::optional<int64_t> batch_size = {};
  bool shuffle = true;
  uint64_t seed = 0;
};

// Trains on the loader's next epochs: for each batch it computes the loss, its gradients and a step of the optimiser. The
// losses are read from the device now and then, not at each step. An exception of a sample or a callback ends the training.
// Throws Error (invalid) for options out of range, for batch_size with a loader, and for an epoch without batches.
PLUGRAD_API History fit(const std::function<Tensor(const Batch& batch)>& loss, DataLoader& loader, nn::Optimizer& optimizer,
                        const FitOptions& options = {});
// As above, for a model of one tensor, on batches of inputs and targets.
PLUGRAD_API History fit(const nn::Module& model, DataLoader& loader, nn::Optimizer& optimizer,
                        const FitOptions& options = {});
// As above, on the rows of two tensors. Throws Error (invalid) if they have different numbers of rows.
PLUGRAD_API History fit(const nn::Module& model, const Tensor& inputs, const Tensor& targets, nn::Optimizer& optimizer,
                        const FitOptions& options = {});

// Returns the share of rows with the largest output at the label's place: inputs (n, ..), labels (n) of integers. Computes
// batch_size rows at a time, unrecorded, in the model's current mode: call its eval() before. 0 for no rows.
PLUGRAD_API double accuracy(const nn::Module& model, const Tensor& inputs, const Tensor& labels, int64_t batch_size = 1000);

}  // namespace plugrad
