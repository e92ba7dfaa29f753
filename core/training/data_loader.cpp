#include <plugrad/training/data_loader.hpp>

#include <core/training/batch_source.hpp>
#include <plugrad/io/shuffle.hpp>
#include <plugrad/runtime/error.hpp>

#include <numeric>
#include <string>

namespace plugrad {
namespace {

void check_at_least(int64_t least, const char* name, int64_t given) {
  if (given < least)
    throw Error(Code::invalid, std::string("[DataLoader] ") + name + " " + std::to_string(given) +
                                   " is too small: at least " + std::to_string(least) + " expected");
}

std::vector<int64_t> order_of(int64_t count, const DataLoaderOptions& options, int64_t epoch) {
  if (options.shuffle) return io::shuffled_rows(count, options.seed, epoch);
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

}  // namespace

BatchIterator::BatchIterator(std::shared_ptr<BatchSource> source) : source_(std::move(source)) { source_->advance(); }

const Batch& BatchIterator::operator*() const {
  if (*this == std::default_sentinel) throw Error(Code::invalid, "[DataLoader] the epoch has no further batch");
  return *source_->current();
}

BatchIterator& BatchIterator::operator++() {
  if (source_) source_->advance();
  return *this;
}

bool BatchIterator::operator==(std::default_sentinel_t) const { return !source_ || !source_->current(); }

BatchIterator Epoch::begin() const { return BatchIterator(std::make_shared<BatchSource>(plan_)); }

int64_t Epoch::size() const { return plan_->batches(); }

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  if (!dataset_) throw Error(Code::invalid, "[DataLoader] the data set is a null pointer");
  check_at_least(1, "batch_size", options_.batch_size);
  check_at_least(0, "num_workers", options_.num_workers);
  check_at_least(1, "prefetch_factor", options_.prefetch_factor);
}

int64_t DataLoader::size() const { return batches_of(dataset_->size(), options_); }

Epoch DataLoader::epoch(int64_t number) const {
  check_at_least(0, "epoch", number);
  return Epoch(std::make_shared<const Epoch::Plan>(
      Epoch::Plan{dataset_, options_, number, order_of(dataset_->size(), options_, number)}));
}

Batch DataLoader::batch(int64_t epoch, int64_t number) const {
  if (!last_ || last_->epoch != epoch) last_ = this->epoch(epoch).plan_;
  if (number < 0 || number >= last_->batches())
    throw Error(Code::invalid, "[DataLoader] batch " + std::to_string(number) + " is out of range: an epoch has " +
                                   std::to_string(last_->batches()));
  return last_->load(number);
}

void DataLoader::set_epoch(int64_t epoch) {
  check_at_least(0, "epoch", epoch);
  next_epoch_ = epoch;
}

}  // namespace plugrad
