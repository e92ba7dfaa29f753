#include <core/training/batch_source.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/sdk/threads.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

namespace plugrad {

int64_t batches_of(int64_t samples, const DataLoaderOptions& options) {
  const int64_t whole = samples / options.batch_size;
  return options.drop_last || samples % options.batch_size == 0 ? whole : whole + 1;
}

int64_t Epoch::Plan::batches() const { return batches_of(static_cast<int64_t>(order.size()), options); }

Batch Epoch::Plan::load(int64_t number) const {
  const int64_t first = number * options.batch_size, left = static_cast<int64_t>(order.size()) - first;
  const auto numbers =
      std::span(order).subspan(static_cast<size_t>(first), static_cast<size_t>(std::min(options.batch_size, left)));
  return options.collate ? options.collate(dataset->items(numbers)) : dataset->batch(numbers);
}

BatchSource::BatchSource(std::shared_ptr<const Epoch::Plan> plan) : plan_(std::move(plan)) {
  const auto workers = static_cast<int>(std::min<int64_t>(plan_->options.num_workers, plan_->batches()));
  if (workers > 0) {
    slots_.resize(static_cast<size_t>(workers) * static_cast<size_t>(plan_->options.prefetch_factor));
    start(workers);
  }
}

BatchSource::~BatchSource() { stop(); }

void BatchSource::start(int workers) {
  const BlockedSignals blocked;
  try {
    for (int i = 0; i < workers; ++i) workers_.emplace_back(&BatchSource::work, this, grad_enabled());
  } catch (...) {
    stop();
    throw;
  }
}

void BatchSource::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  room_.notify_all();
  for (std::thread& each : workers_) each.join();
  workers_.clear();
}

std::optional<int64_t> BatchSource::claim() {
  std::unique_lock lock(mutex_);
  const auto ahead = static_cast<int64_t>(slots_.size());
  room_.wait(lock, [&] { return stopped_ || claimed_ == plan_->batches() || claimed_ < taken_ + ahead; });
  if (stopped_ || claimed_ == plan_->batches()) return std::nullopt;
  return claimed_++;
}

BatchSource::Slot BatchSource::load(int64_t number) const {
  try {
    return {plan_->load(number), nullptr};
  } catch (...) {
    return {std::nullopt, std::current_exception()};
  }
}

void BatchSource::work(bool record) {
  std::optional<NoGrad> unrecorded;
  if (!record) unrecorded.emplace();
  while (const std::optional<int64_t> number = claim()) {
    Slot loaded = load(*number);
    {
      const std::lock_guard lock(mutex_);
      slot(*number) = std::move(loaded);
    }
    loaded_.notify_one();
  }
}

BatchSource::Slot BatchSource::take(int64_t number) {
  if (workers_.empty()) {
    ++taken_;
    return load(number);
  }
  std::unique_lock lock(mutex_);
  loaded_.wait(lock, [&] { return slot(number).loaded(); });
  Slot taken = std::exchange(slot(number), {});
  ++taken_;
  lock.unlock();
  room_.notify_one();
  return taken;
}

void BatchSource::advance() {
  current_.reset();
  if (taken_ == plan_->batches()) return;
  Slot next = take(taken_);
  if (next.failure) std::rethrow_exception(next.failure);
  current_ = std::move(next.batch);
}

}  // namespace plugrad
