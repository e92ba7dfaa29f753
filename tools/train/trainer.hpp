// The training loop: an MLP with ReLU, Adam, a cosine schedule.
#pragma once
#include <plugrad/nn/module.hpp>
#include <plugrad/nn/optimizer.hpp>
#include <tools/train/config.hpp>
#include <tools/train/data.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace plugrad::training {

struct Evaluation {
  int64_t step = 0;
  double loss = 0, accuracy = 0;
};

// What was seen on the way; part of a checkpoint.
struct History {
  std::vector<float> losses;            // of each step, before its update
  std::vector<Evaluation> evaluations;  // one at the end of each epoch
};
// The mean of the last 50 losses, or of those there are; NaN where there is none.
double recent_loss(const History& history);

// Linear layers with ReLU between them, on a device; weights come from its generator.
std::shared_ptr<nn::Sequential> make_mlp(int64_t inputs, const std::vector<int64_t>& hidden, int64_t outputs, Device device);
// The mean loss of outputs (n, k) under targets (n); one element.
Tensor mean_loss(const Tensor& outputs, const Tensor& targets, Objective objective);

// Mean loss and accuracy over all samples, unrecorded; step is left 0.
Evaluation evaluate(const nn::Module& network, const DeviceSamples& samples, Objective objective);

// A network, its optimiser and its place in the data. Equal configurations, data and devices give equal numbers, whether a
// run is unbroken or was resumed. Not thread-safe.
class Trainer {
 public:
  // Seeds the device's generator. Data is not kept. Throws Error (invalid) for sizes that make no network.
  Trainer(TrainingConfig config, const Data& data, Device device);

  // Up to count steps, fewer at the end of an epoch or when stop() answers true after one. Their losses. The device is asked
  // only now and then. At the end of an epoch the network is evaluated.
  std::vector<float> run_epoch_steps(int64_t count, const std::function<bool()>& stop = {});
  // Exactly count steps, or what is left of the run.
  std::vector<float> run_steps(int64_t count);
  // Mean loss and accuracy on the test set; on the training set where there is none.
  Evaluation evaluate() const;

  int64_t step() const { return optimizer_->steps(); }
  int64_t steps_per_epoch() const;
  int64_t total_steps() const { return config_.epochs * steps_per_epoch(); }
  int64_t epoch() const { return step() / steps_per_epoch(); }  // completed ones
  int64_t samples_seen() const;                                 // since the start of the run
  int64_t parameter_count() const;
  const TrainingConfig& config() const { return config_; }
  const History& history() const { return history_; }
  const nn::Sequential& network() const { return *network_; }
  Device device() const { return device_; }
  bool has_test() const { return judged_ != nullptr; }

  // Writes a checkpoint, atomically. Throws Error (io_error).
  void save(const std::string& path) const;
  // Takes all of it back from a checkpoint of an equal network on the same data. Throws Error (io_error), which names the
  // tensor and both shapes where the network is another; nothing is changed then.
  void load(const std::string& path);

 private:
  Tensor train_step();
  void flush(std::vector<Tensor>& pending, std::vector<float>& losses);

  TrainingConfig config_;
  Device device_;
  Normalisation normalisation_;
  int64_t outputs_;
  Objective objective_;
  DeviceSamples train_;
  std::unique_ptr<DeviceSamples> judged_;  // null where that is the training set
  std::shared_ptr<nn::Sequential> network_;
  std::unique_ptr<nn::Adam> optimizer_;
  History history_;
  int64_t shuffled_epoch_ = -1;
  std::vector<int64_t> rows_;  // of that epoch
};

// What a checkpoint says of the run that wrote it.
struct CheckpointOrigin {
  TrainingConfig config;
  std::string device;
  int64_t step = 0, outputs = 0;
  Normalisation normalisation;
};
// Throws Error (io_error) for a file that is none of plugrad train's.
CheckpointOrigin read_origin(const std::string& path);
// Takes the parameters alone from a checkpoint, as Trainer::load does.
void load_network(const std::string& path, const nn::Sequential& network, Device device);

}  // namespace plugrad::training
