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
  bool shuffle = false;  // a new order in each epoch, from seed and epoch alone: see shuffled_rows
  uint64_t seed = 0;
  bool drop_last = false;   // leaves out the last batch if it is smaller
  int num_workers = 0;      // threads that load batches ahead; 0: the iterating thread loads each batch when it needs it
  int prefetch_factor = 2;  // the number of batches per worker ahead of the iterating thread
  // Makes a batch of samples; by default Dataset::batch does. Workers call it from several threads at once.
  std::function<Batch(const std::vector<Sample>& samples)> collate = {};
};

// The batches of one epoch; they are loaded while this object lives. Its destructor, at any point of the loop, ends its
// threads: it waits for the batches in loading. Not thread-safe.
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
  // Goes on to the next batch. Throws the exceptions of its loading; the next call then goes on with the batch after it.
  BatchIterator& operator++();
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t end) const;

 private:
  std::shared_ptr<BatchSource> source_;
};

// A range to loop over once: begin() starts the loading.
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
// if the iterating thread does. An exception of a sample reaches the loop as an Error with a message like "[DataLoader]
// sample 7: ..". An Error keeps its code; any other std::exception is nested inside an Error with Code::invalid.
// std::bad_alloc is passed on unchanged. Not thread-safe.
class PLUGRAD_API DataLoader {
 public:
  // Throws Error (invalid) for a batch_size or prefetch_factor below 1 and for negative num_workers.
  explicit DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options = {});
  // As above, for a data set of which the loader keeps a copy.
  template <std::derived_from<Dataset> Data>
  explicit DataLoader(Data dataset, DataLoaderOptions options = {})
      : DataLoader(std::make_shared<const Data>(std::move(dataset)), std::move(options)) {}

  int64_t size() const;  // the number of batches in an epoch
  const Dataset& dataset() const { return *dataset_; }
  const DataLoaderOptions& options() const { return options_; }

  // The batches of an epoch: for (const Batch& batch : loader.epoch(3)). Throws Error (invalid) for a negative number.
  Epoch epoch(int64_t number) const;
  // One batch of an epoch, loaded by this thread: for a training resumed inside an epoch. Throws Error (invalid) for numbers
  // out of range. Keeps the order of the last requested epoch.
  Batch batch(int64_t epoch, int64_t number) const;
  // A loop over the loader itself is the next epoch: 0, 1 and so on.
  BatchIterator begin() { return epoch(next_epoch_++).begin(); }
  std::default_sentinel_t end() const { return {}; }
  int64_t next_epoch() const { return next_epoch_; }
  // For a resumed training. Throws Error (invalid) for a negative epoch.
  void set_epoch(int64_t epoch);

 private:
  std::shared_ptr<const Dataset> dataset_;
  DataLoaderOptions options_;
  int64_t next_epoch_ = 0;
  mutable std::shared_ptr<const Epoch::Plan> last_;
};

}  // namespace plugrad
