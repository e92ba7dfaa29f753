// Samples on the host, as files store them, and on a device, as a network reads them.
#pragma once
#include <plugrad/training/dataset.hpp>
#include <tools/train/config.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::training {

// Pixels or points: one of the two vectors is empty.
struct Samples {
  int64_t count = 0, features = 0;
  std::vector<uint8_t> pixels;  // count * features
  std::vector<float> points;    // count * features
  std::vector<int64_t> labels;  // count
};

// A network with one output is trained with the maximum-margin loss on the labels 0 and 1, every other network with cross
// entropy.
enum class Objective { cross_entropy, max_margin };

struct Data {
  Samples train, test;
  bool has_test = false;  // false: test is empty, and networks are evaluated on train
  Objective objective = Objective::cross_entropy;
  int64_t outputs = 0;  // of the network
};

// Reads or generates the data of the configuration. Throws Error (io_error) as the readers of plugrad/io do.
Data load_data(const TrainingConfig& config);

// Pixels enter the network as (pixel / 255 - mean) / deviation, points unchanged.
struct Normalisation {
  double mean = 0, deviation = 1;
};
// Mean and standard deviation of all pixels.
Normalisation normalisation_of(const Samples& samples);

// Uploads all samples to a device: inputs (n, features), f32, and targets (n), i64 classes, or f32 of -1 and 1 for
// max_margin.
TensorDataset on_device(const Samples& samples, const Normalisation& normalisation, Objective objective, Device device);

}  // namespace plugrad::training
