// Batches of a data set, in order or shuffled, loaded ahead by threads:
//
//   DataLoader loader(TensorDataset({images, labels}), {.batch_size = 64, .shuffle = true, .num_workers = 2});
//   for (int epoch = 0; epoch < 10; ++epoch)
//     for (const Batch& batch : loader) step(batch[0], batch[1]);
//
// The options have the names of PyTorch's. For the same seed, plugrad.data.DataLoader of the Python package has the same
// order.
#pragma once
#include <plugrad/training/dataset.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>

namespace plugrad {

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;  // a new order in each epoch, which depends on seed and epoch alone: see shuffled_rows
  uint64_t seed = 0;
  bool drop_last = false;   // leaves out the last batch if it is smaller than the others
  int num_workers = 0;      // threads that load batches ahead; 0: the thread that iterates loads each batch when it needs it
  int prefetch_factor = 2;  // the number of batches that each worker may be ahead of the thread that iterates
  // Makes a batch of samples; by default Dataset::batch does. Workers call it from several threads at once.
  std::function<Batch(const std::vector<Sample>& samples)> collate = {};
};

// The batches of one epoch, which are loaded while it lives. Its destructor, wherever the loop was, ends its threads: it
// waits for the batches that they are loading. Not thread-safe.
class BatchSource;

// An input iterator over an epoch's batches. Copies share their place; they may outlive the loader.
class PLUGRAD_API BatchIterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;
  using iterator_concept = std::input_iterator_tag;

  BatchIterator() = default;
  explicit BatchIterator(std::shared_ptr<BatchSource> source);
  const Batch& operator*() const;
  const Batch* operator->() const { return &**this; }
  // Goes on to the next batch. Throws what loading it throws; the next call then goes on with the batch after it.
  BatchIterator& operator++();
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t end) const;

 private:
  std::shared_ptr<BatchSource> source_;
};

// Something to loop over once: starts loading when begin() is called.
class PLUGRAD_API Epoch {
 public:
  BatchIterator begin() const;
  std::default_sentinel_t end() const { return {}; }
  int64_t size() const;  // the number of batches

 private:
  friend class DataLoader;
  struct Plan;
  friend class BatchSource;
  explicit Epoch(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  std::shared_ptr<const Plan> plan_;
};

// The batches do not depend on the number of workers if the samples depend on their numbers alone. Workers record gradients
// if the thread that iterates does. An exception of a sample reaches the loop as an Error whose message begins with
// "[DataLoader] sample 7: ". It has the code of an Error; from other exceptions, which are nested inside, it has
// Code::invalid. std::bad_alloc comes out as it is. Not thread-safe.
class PLUGRAD_API DataLoader {
 public:
  // Throws Error (invalid) for a batch_size or prefetch_factor below 1 and for negative num_workers.
  explicit DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options = {});
  // The same for a data set that the loader keeps a copy of.
  template <std::derived_from<Dataset> Data>
  explicit DataLoader(Data dataset, DataLoaderOptions options = {})
      : DataLoader(std::make_shared<const Data>(std::move(dataset)), std::move(options)) {}

  int64_t size() const;  // the number of batches in an epoch
  const Dataset& dataset() const { return *dataset_; }
  const DataLoaderOptions& options() const { return options_; }

  // The batches of an epoch: for (const Batch& batch : loader.epoch(3)). Throws Error (invalid) for a negative one.
  Epoch epoch(int64_t number) const;
  // One batch of an epoch, loaded by this thread: for a training that resumes inside an epoch. Throws Error (invalid) for
  // numbers out of range. Keeps the order of the last epoch that it was asked for.
  Batch batch(int64_t epoch, int64_t number) const;
  // A loop over the loader itself is the next epoch: 0, 1 and so on.
  BatchIterator begin() { return epoch(next_epoch_++).begin(); }
  std::default_sentinel_t end() const { return {}; }
  int64_t next_epoch() const { return next_epoch_; }
  // For a training that is resumed. Throws Error (invalid) for a negative epoch.
  void set_epoch(int64_t epoch);

 private:
  std::shared_ptr<const Dataset> dataset_;
  DataLoaderOptions options_;
  int64_t next_epoch_ = 0;
  mutable std::shared_ptr<const Epoch::Plan> last_;
};

}  // namespace plugrad
