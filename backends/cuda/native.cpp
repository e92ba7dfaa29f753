// The extension of native.h. An event orders two streams: the first stream records it, the second stream waits for it.
#include <backends/cuda/native.hpp>

#include <backends/cuda/backend.hpp>
#include <plugrad/sdk/threads.hpp>

#include <chrono>

namespace plugrad::cuda {
namespace {

// A host thread sleeps while it waits for the event, instead of spinning.
constexpr unsigned kFlags = cudaEventDisableTiming | cudaEventBlockingSync;
constexpr auto kRetry = std::chrono::milliseconds(1);

CudaStream& own(Stream& stream) { return static_cast<CudaStream&>(stream); }

}  // namespace

Event::Event(CudaBackend& backend) : backend_(backend) {
  backend.check(cudaEventCreateWithFlags(&event_, kFlags), "cudaEventCreate");
}

// CUDA keeps a destroyed event alive until no stream waits for it any more.
Event::~Event() {
  if (event_) backend_.destroy(event_);
}

// --- Order.

// Work submitted to `later` after this call waits for all work submitted to `earlier` before it.
void CudaBackend::order_streams(cudaStream_t earlier, cudaStream_t later) {
  if (earlier == later) return;
  const CallScope scope(index_);
  const Event event(*this);
  check(cudaEventRecord(event.get(), earlier), "cudaEventRecord");
  check(cudaStreamWaitEvent(later, event.get(), 0), "cudaStreamWaitEvent");
}

void* CudaBackend::native_handle(Stream& stream) { return own(stream).handle(); }

void CudaBackend::wait_native(Stream& stream, uint64_t number, void* native) {
  CudaStream& s = own(stream);
  s.demand_sound();
  order_streams(static_cast<cudaStream_t>(native), s.handle());
  s.submitted(number);
}

void CudaBackend::signal_native(Stream& stream, uint64_t number, void* native) {
  CudaStream& s = own(stream);
  s.demand_sound();
  order_streams(s.handle(), static_cast<cudaStream_t>(native));
  s.submitted(number);
}

// --- Notices.

void CudaBackend::notify(Stream& stream, uint64_t number, Notice notice) {
  CudaStream& s = own(stream);
  const uint64_t last = s.last_submitted();
  if (number > last)
    throw BackendError(PLUGRAD_INVALID,
                       "no notice for number " + std::to_string(number) + ": the stream's last is " + std::to_string(last));
  uint64_t done = 0;
  if (completed(stream, done) == PLUGRAD_DEVICE_LOST || done >= number) return notice();
  const CallScope scope(index_);
  Event event(*this);
  check(cudaEventRecord(event.get(), s.handle()), "cudaEventRecord");
  watchers_.of(s).add(std::move(event), last, notice);
}

// A notice can complete before the ring's events are queried: drops the covered events.
void CudaStream::reached(uint64_t number) noexcept {
  const std::lock_guard lock(mutex_);
  while (head_ != tail_ && ring_[head_ % kEvents].number <= number) ++head_;
  done_ = std::max(done_, number);
}

Watcher& Watchers::of(CudaStream& stream) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Watcher>& watcher = all_[&stream];
  if (!watcher) watcher = std::make_unique<Watcher>(stream);
  return *watcher;
}

Watcher::Watcher(CudaStream& stream) : stream_(stream) {
  start_thread([this] { work(); });
}

void Watcher::add(Event event, uint64_t number, Notice notice) {
  const std::lock_guard lock(mutex_);
  pending_.push_back({std::move(event), number, notice});
  added_.notify_one();
}

void Watcher::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    added_.wait(lock, [this] { return !pending_.empty(); });
    const Pending next = std::move(pending_.front());
    pending_.pop_front();
    lock.unlock();
    while (!over(next)) std::this_thread::sleep_for(kRetry);
    next.notice();
    lock.lock();
  }
}

// Waits for the event. Returns false if the call failed although the device is not lost: the caller retries.
bool Watcher::over(const Pending& pending) noexcept {
  CudaBackend& backend = stream_.backend();
  try {
    const CallScope scope(backend.index());
    backend.check(cudaEventSynchronize(pending.event.get()), "cudaEventSynchronize");
  } catch (...) {
    return backend.lost();
  }
  stream_.reached(pending.number);
  return true;
}

}  // namespace plugrad::cuda
