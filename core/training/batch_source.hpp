// The batches of one epoch, loaded by the requesting thread or ahead by workers.
#pragma once
#include <plugrad/training/data_loader.hpp>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace plugrad {

// Returns the number of batches for this number of samples.
int64_t batches_of(int64_t samples, const DataLoaderOptions& options);

// The contents of an epoch.
struct Epoch::Plan {
  std::shared_ptr<const Dataset> dataset;
  DataLoaderOptions options;
  int64_t epoch;
  std::vector<int64_t> order;  // of the samples

  int64_t batches() const;
  Batch load(int64_t number) const;
};

// Workers claim the numbers of batches in order, and keep at most num_workers * prefetch_factor batches ahead.
class BatchSource {
 public:
  explicit BatchSource(std::shared_ptr<const Epoch::Plan> plan);
  ~BatchSource();
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  // Takes the next batch in order as current(); at the end current() is empty. Throws the exceptions of its loading.
  void advance();
  const std::optional<Batch>& current() const { return current_; }

 private:
  struct Slot {
    std::optional<Batch> batch;
    std::exception_ptr failure;
    bool loaded() const { return batch || failure; }
  };
  void start(int workers);
  void stop();
  void work(bool record);
  std::optional<int64_t> claim();  // the number of a batch to load, once there is room; nothing at the end
  Slot load(int64_t number) const;
  Slot take(int64_t number);
  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  std::shared_ptr<const Epoch::Plan> plan_;
  std::optional<Batch> current_;
  int64_t taken_ = 0;  // by the iterating thread, under the mutex if there are workers

  std::mutex mutex_;
  std::condition_variable room_, loaded_;
  std::vector<Slot> slots_;
  int64_t claimed_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace plugrad
