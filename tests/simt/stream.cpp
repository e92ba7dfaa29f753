#include <tests/simt/stream.hpp>

#include <algorithm>
#include <map>
#include <thread>

namespace simt {
namespace {
constexpr size_t kQueue = 1024;
constexpr auto kIdle = std::chrono::milliseconds(1);  // idle time after which device memory is closed
std::atomic<int64_t> waiting_jobs{0};                 // jobs that need device memory

// Only a running job may access device memory. Closing the memory after every job would dominate the run time, hence kIdle.
void close_memory() {
  const std::lock_guard held(gate());
  if (waiting_jobs) return;
  for (Device* one : devices()) one->memory.close();
}
}  // namespace

void Mark::set() {
  when = std::chrono::steady_clock::now();
  done.store(true, std::memory_order_release);
  done.notify_all();
}

CUstream_st& stream_of(cudaStream_t stream) {
  if (stream && stream != cudaStreamLegacy && stream != cudaStreamPerThread) return *stream;
  Device& device = selected();
  if (stream == cudaStreamPerThread) {
    thread_local std::map<Device*, CUstream_st*> own;
    CUstream_st*& made = own[&device];
    if (!made) cudaStreamCreate(&made);
    return *made;
  }
  const std::lock_guard lock(device.mutex);
  if (!device.null_stream) device.null_stream = new CUstream_st(device, false);
  return *device.null_stream;
}

}  // namespace simt

using simt::Fault;
using simt::Job;
using simt::Mark;
using simt::SharedRange;

CUstream_st::CUstream_st(simt::Device& owner, bool blocks) : StreamHead{&simt::library()}, device(owner), blocking(blocks) {
  std::thread([this] { work(); }).detach();
}

// The null stream waits for the work of blocking streams, and they wait for its work.
void CUstream_st::keep_step() {
  std::vector<cudaStream_t> others;
  {
    const std::lock_guard lock(device.mutex);
    if (blocking && device.null_stream) others.push_back(device.null_stream);
    if (device.null_stream == this)
      std::ranges::copy_if(device.streams, std::back_inserter(others), [](cudaStream_t s) { return s->blocking; });
  }
  for (cudaStream_t other : others) {
    if (other->idle()) continue;
    const auto mark = other->mark();
    const std::lock_guard lock(mutex_);
    jobs_.push_back({[mark](SharedRange) { mark->wait(); }});
  }
}

bool CUstream_st::begin_capture() {
  const std::lock_guard lock(mutex_);
  if (capture_) return false;
  capture_ = std::make_unique<simt::Capture>();
  return true;
}

std::unique_ptr<simt::Capture> CUstream_st::end_capture() {
  const std::lock_guard lock(mutex_);
  return std::move(capture_);
}

bool CUstream_st::spoils_capture() {
  const std::lock_guard lock(mutex_);
  if (capture_) capture_->is_valid = false;
  return capture_ != nullptr;
}

void CUstream_st::push(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (capture_) return capture_->jobs.push_back(std::move(job));
  }
  keep_step();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.size() < simt::kQueue; });
  if (job.first) ++simt::waiting_jobs;
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

std::shared_ptr<Mark> CUstream_st::mark() {
  auto made = std::make_shared<Mark>();
  const std::lock_guard lock(mutex_);
  jobs_.push_back({[made](SharedRange) { made->set(); }});
  changed_.notify_all();
  return made;
}

void CUstream_st::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty(); });
}

bool CUstream_st::idle() {
  const std::lock_guard lock(mutex_);
  return jobs_.empty();
}

void CUstream_st::finish() {
  const std::lock_guard lock(mutex_);
  ending_ = true;
  changed_.notify_all();
}

void CUstream_st::work() {
  const simt::SignalStack stack;
  const SharedRange shared = simt::shared_range();
  const auto awake = [this] { return !jobs_.empty() || ending_; };
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!changed_.wait_for(lock, simt::kIdle, awake)) {
      lock.unlock();
      simt::close_memory();
      lock.lock();
      changed_.wait(lock, awake);
    }
    if (jobs_.empty()) break;
    Job job = std::move(jobs_.front());  // an empty job stays queued, so that the stream is not idle yet
    lock.unlock();
    run(job, shared);
    job = {};
    lock.lock();
    jobs_.pop_front();
    changed_.notify_all();
  }
  lock.unlock();
  delete this;
}

void CUstream_st::run(Job& job, SharedRange shared) {
  if (simt::settings().late) std::this_thread::sleep_for(std::chrono::microseconds(simt::settings().late));
  if (!job.first) return job.run(shared);
  const std::lock_guard gate(simt::gate());
  for (simt::Device* one : simt::devices())
    if (one == job.first || one == job.second) one->memory.open();
    else one->memory.close();
  try {
    if (!device.lost) job.run(shared);
  } catch (const Fault& fault) {
    simt::report_fault(fault.what());
    device.lost = fault.error();
  }
  --simt::waiting_jobs;
}
