// The training loop: an MLP with ReLU, Adam, a cosine schedule.
#pragma once
#include <plugrad/nn/containers.hpp>
#include <plugrad/nn/optimizers.hpp>
#include <plugrad/nn/schedules.hpp>
#include <plugrad/training/data_loader.hpp>
#include <tools/train/config.hpp>
#include <tools/train/data.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace plugrad {
class CompiledStep;
}
namespace plugrad::distributed {
class DataParallel;
}

namespace plugrad::training {

struct Evaluation {
  int64_t step = 0;
  double loss = 0, accuracy = 0;
};

// The measurements of a run; part of a checkpoint.
struct History {
  std::vector<float> losses;            // of each step, before its update
  std::vector<Evaluation> evaluations;  // at the end of each epoch
};
// The mean of the last 50 losses, or of all losses if there are fewer; NaN without a loss.
double recent_loss(const History& history);

// Linear layers with ReLU between them, on a device. The device's generator draws the weights.
std::shared_ptr<nn::Sequential> make_mlp(int64_t inputs, const std::vector<int64_t>& hidden, int64_t outputs, Device device);
// The mean loss of outputs (n, k) under targets (n); one element.
Tensor mean_loss(const Tensor& outputs, const Tensor& targets, Objective objective);

// Returns mean loss and accuracy over all samples, with step 0. Records no graph.
Evaluation evaluate(const nn::Module& network, const TensorDataset& samples, Objective objective);

// A network, its optimiser and its place in the data. Equal configurations, data and devices give equal numbers, whether a
// run is unbroken or was resumed. Not thread-safe.
//
// In a group of processes each rank computes its part of each batch, and all ranks have the same network. With slices in the
// configuration, the numbers are the same whatever the number of ranks (of powers of two) and the communicator.
class Trainer {
 public:
  // Seeds the device's generator. Keeps no reference to data. Throws Error (invalid) for sizes that cannot
  // form a network, and for epochs or batches above 10^9.
  Trainer(const TrainingConfig& config, const Data& data, Device device);
  Trainer(Trainer&& other) noexcept;
  ~Trainer();

  // From now on records the passes of a step and replays them, with the same bits: see plugrad/steps/compile.hpp.
  void compile();

  // Makes up to count steps and returns their losses. Ends early at the end of an epoch, and when stop() returns true after
  // a step. Waits for the device only now and then.
  std::vector<float> run_epoch_steps(int64_t count, const std::function<bool()>& stop = {});
  // At the end of an epoch, evaluates the network for the history, once. It is separate from the steps, so that a program
  // can save the steps first.
  void evaluate_epoch();
  // Makes count steps, or all remaining steps of the run if they are fewer, and evaluates each completed epoch.
  std::vector<float> run_steps(int64_t count);
  // Returns mean loss and accuracy on the test set, or on the training set without a test set.
  Evaluation evaluate() const;
  // Evaluates a few samples and forgets the result: if a device cannot evaluate, it fails before the first epoch.
  void try_evaluation() const;

  int64_t step() const { return optimizer_->steps(); }
  int64_t steps_per_epoch() const;
  int64_t total_steps() const { return config_.epochs * steps_per_epoch(); }
  int64_t epoch() const { return step() / steps_per_epoch(); }  // completed
  int64_t samples_seen() const;                                 // since the start of the run
  int64_t parameter_count() const;
  // A number of all bits of the parameters: equal for equal networks.
  uint64_t digest() const;
  const TrainingConfig& config() const { return config_; }
  const History& history() const { return history_; }
  const nn::Sequential& network() const { return *network_; }
  Device device() const { return device_; }
  bool has_test() const { return judged_ != nullptr; }

  // Writes a checkpoint atomically. Throws Error (io_error).
  void save(const std::string& path) const;
  // Restores everything from a checkpoint of an equal network on the same data. For a different network it throws Error
  // (io_error) and changes nothing; the message names the tensor and both shapes.
  void load(const std::string& path);

 private:
  // The losses of this rank's passes of a step.
  struct StepLosses {
    std::vector<Tensor> passes;  // undefined for passes without samples
    int64_t rows;                // of the whole batch
  };
  StepLosses train_step();
  Tensor train_pass(const Batch& batch, int64_t pass);
  Tensor compute(const Batch& samples, bool is_first, bool is_last);
  std::vector<std::vector<float>> losses_of_all(const std::vector<StepLosses>& steps) const;
  void flush(std::vector<StepLosses>& pending, std::vector<float>& losses);

  TrainingConfig config_;
  Device device_;
  Normalisation normalisation_;
  int64_t outputs_;
  Objective objective_;
  std::shared_ptr<const TensorDataset> train_;
  std::unique_ptr<TensorDataset> judged_;  // null: the training set
  DataLoader loader_;
  std::shared_ptr<nn::Sequential> network_;
  std::unique_ptr<nn::Adam> optimizer_;
  std::unique_ptr<nn::CosineAnnealingLR> schedule_;
  int rank_ = 0, ranks_ = 1;
  int64_t passes_ = 1;                                   // of this rank, in a step
  std::unique_ptr<distributed::DataParallel> parallel_;  // null: one pass of this process alone
  std::unique_ptr<CompiledStep> compiled_;               // null: each pass runs op by op
  History history_;
};

// A checkpoint's record of its run.
struct CheckpointOrigin {
  TrainingConfig config;
  std::string device;
  int64_t step = 0, outputs = 0;
  Normalisation normalisation;
};
// Throws Error (io_error) unless plugrad train wrote the file.
CheckpointOrigin read_origin(const std::string& path);
// Restores only the parameters from a checkpoint, as Trainer::load does.
void load_network(const std::string& path, const nn::Sequential& network, Device device);

}  // namespace plugrad::training
