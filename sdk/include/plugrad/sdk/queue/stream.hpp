// A stream of the contract over a queue of a driver.
#pragma once
#include <plugrad/sdk/queue/driver.hpp>
#include <plugrad/sdk/threads.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {
namespace queued {

// Work of a stream, with copies of everything that the caller may change after the submission.
struct Job {
  using Run = void (*)(const Call&, DeviceQueue&);
  enum Kind : uint8_t { kOp, kWrite, kRead, kCopy, kWait };
  Kind kind = kOp;
  uint64_t number = 0;      // 0: a part of a job with a number, or a wait
  uint64_t owner = 0;       // the number of the call that the job is a part of
  bool is_on_host = false;  // a loop in host memory: all earlier work is done before it begins
  // kOp
  Run run = nullptr;
  const plugrad_kernel* kernel = nullptr;
  plugrad_op op{};
  plugrad_view views[PLUGRAD_MAX_OPERANDS];
  const plugrad_view* pointers[PLUGRAD_MAX_OPERANDS];
  alignas(8) char attributes[256];
  // kWrite, kRead, kCopy
  plugrad_buffer *to = nullptr, *from = nullptr;
  uint64_t to_offset = 0, from_offset = 0, bytes = 0;
  std::vector<char> staged;
  // kWait
  class QueuedStream* other = nullptr;
};

// A stream: a ring of jobs between the submitting thread and the stream's own thread.
class QueuedStream final : public Stream {
 public:
  static constexpr const char* kLost = "the device is lost";
  static constexpr uint64_t kSlots = 512, kStaged = 64 << 20, kChunk = 4 << 20;

  explicit QueuedStream(std::unique_ptr<DeviceQueue> queue) : queue_(std::move(queue)), slots_(new Job[kSlots]) {
    start_thread([this] { work(); });
    all().add(this);
  }

  static QueuedStream& of(Stream& stream) { return static_cast<QueuedStream&>(stream); }
  uint64_t accepted() const { return accepted_.load(); }
  uint64_t done() const { return done_.load(); }
  plugrad_status state() const { return lost_ ? PLUGRAD_DEVICE_LOST : failed_ ? PLUGRAD_DEVICE_ERROR : PLUGRAD_OK; }

  // --- For the submitting thread.

  // Returns the next slot. Throws if an earlier failure waits for sync, or if the number is not the next number.
  Job& next(uint64_t number) {
    demand_sound();
    if (number && number != accepted_ + 1)
      throw BackendError(PLUGRAD_INVALID, "number " + std::to_string(number) + " on a stream whose next number is " +
                                              std::to_string(accepted_ + 1));
    return slot();
  }
  // owner: the number of the call, also for jobs without a number.
  void submit(uint64_t number, uint64_t owner) {
    slots_[tail_ % kSlots].number = number;
    slots_[tail_ % kSlots].owner = owner;
    if (number) accepted_ = number;
    {
      const std::lock_guard lock(mutex_);
      ++tail_;
    }
    changed_.notify_all();
  }

  void run(const plugrad_kernel* kernel, const plugrad_op& op, Job::Run function, bool is_on_host) {
    const auto* const attributes = static_cast<const uint32_t*>(op.attributes);
    if (op.outputs + op.inputs > PLUGRAD_MAX_OPERANDS || (attributes && *attributes > sizeof Job::attributes))
      throw BackendError(PLUGRAD_UNSUPPORTED, "an op with more operands or attributes than a job holds");
    Job& job = next(op.number);
    job.kind = Job::kOp;
    job.run = function;
    job.is_on_host = is_on_host;
    job.kernel = kernel;
    job.op = op;
    job.op.views = job.pointers;
    for (int i = 0; i < op.outputs + op.inputs; ++i) {
      job.views[i] = *op.views[i];
      job.pointers[i] = &job.views[i];
    }
    if (attributes) std::memcpy(job.attributes, attributes, *attributes);
    job.op.attributes = attributes ? job.attributes : nullptr;
    submit(op.number, op.number);
  }

  // Copies the bytes into staging memory first, in chunks, so that the caller may reuse them.
  void write(const plugrad_copy& copy) {
    next(copy.number);
    const char* const from = reinterpret_cast<const char*>(copy.from.buffer) + copy.from.offset;
    for (uint64_t at = 0; at < copy.bytes; at += kChunk) {
      const uint64_t bytes = std::min(copy.bytes - at, kChunk);
      if (staged_ + bytes > kStaged) {
        wait_until_idle();
        staged_ = 0;
      }
      staged_ += bytes;
      Job& job = slot();
      job.kind = Job::kWrite;
      job.staged.assign(from + at, from + at + bytes);
      job.to = copy.to.buffer;
      job.to_offset = copy.to.offset + at;
      submit(at + bytes == copy.bytes ? copy.number : 0, copy.number);
    }
  }

  // Waits for the bytes. The number is taken only if the copy succeeds.
  void read(const plugrad_copy& copy) {
    Job& job = next(copy.number);
    job.kind = Job::kRead;
    job.to = copy.to.buffer;
    job.to_offset = copy.to.offset;
    job.from = copy.from.buffer;
    job.from_offset = copy.from.offset;
    job.bytes = copy.bytes;
    submit(0, copy.number);
    wait_until_idle();
    demand_sound();
    done_ = copy.number;
    accepted_ = copy.number;
    number_done();
  }

  // Between two places on the device, or from or to pinned memory of the host.
  void move(const plugrad_copy& copy) {
    Job& job = next(copy.number);
    job.kind = copy.from.kind == PLUGRAD_PINNED ? Job::kWrite : copy.to.kind == PLUGRAD_PINNED ? Job::kRead : Job::kCopy;
    job.staged.clear();
    job.to = copy.to.buffer;
    job.to_offset = copy.to.offset;
    job.from = copy.from.buffer;
    job.from_offset = copy.from.offset;
    job.bytes = copy.bytes;
    submit(copy.number, copy.number);
  }

  void follow(QueuedStream& other, uint64_t number) {
    if (number > other.accepted())
      throw BackendError(PLUGRAD_INVALID, "a wait for number " + std::to_string(number) + " of a stream that has " +
                                              std::to_string(other.accepted()));
    if (&other == this) return;
    Job& job = slot();
    job.kind = Job::kWait;
    job.other = &other;
    job.bytes = number;
    submit(0, 0);
  }

  void sync(plugrad_failure& failure) {
    wait_until_idle();
    if (lost_) throw BackendError(PLUGRAD_DEVICE_LOST, kLost);
    if (!failed_) return;
    failure.status = failure_.status;
    failure.last = std::min<uint64_t>(failure_.last, accepted_);  // a copy to the host that failed took no number
    failure.first = std::min(failure_.first, failure.last);
    failed_ = false;
    throw BackendError(PLUGRAD_DEVICE_ERROR, message_);
  }

 private:
  // The streams of the process. The process ends only when they are idle: a driver may not end in the midst of its work.
  struct All {
    std::mutex mutex;
    std::vector<QueuedStream*> streams;
    bool is_copy = false;
    void add(QueuedStream* stream) {
      const std::lock_guard lock(mutex);
      if (streams.empty()) {
        std::atexit([] { all().drain(); });
        pthread_atfork(nullptr, nullptr, [] { all().is_copy = true; });
      }
      streams.push_back(stream);
    }
    void drain() {
      if (is_copy) return;  // a copy of the process has no threads
      const std::lock_guard lock(mutex);
      for (QueuedStream* each : streams) each->wait_until_idle(std::chrono::seconds(10));
    }
  };
  static All& all() {
    static All& all = *new All;
    return all;
  }

  Job& slot() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tail_ - head_ < kSlots; });
    return slots_[tail_ % kSlots];
  }
  void wait_until_idle(std::chrono::seconds most = std::chrono::hours(24 * 365)) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, most, [this] { return head_ == tail_; });
  }
  void demand_sound() const {
    if (lost_) throw BackendError(PLUGRAD_DEVICE_LOST, kLost);
    if (failed_) throw BackendError(PLUGRAD_DEVICE_ERROR, "earlier work on this stream failed: call sync");
  }

  // --- The stream's thread.

  void work() {
    for (;;) {
      uint64_t end = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return tail_ != head_; });
        end = tail_;
      }
      run_batch(head_, end);
    }
  }

  // Hands jobs to the driver and waits for them. A wait for another stream, a loop in host memory and a full batch end it.
  void run_batch(uint64_t begin, uint64_t end) {
    constexpr uint64_t kMost = 64;
    uint64_t at = begin;
    first_ = 0;
    for (; at < end && at < begin + kMost; ++at) {
      Job& job = slots_[at % kSlots];
      if (job.kind == Job::kWait || (job.kind == Job::kOp && job.is_on_host)) {
        retire(begin, at);
        begin = at;
        first_ = 0;
      }
      if (job.kind == Job::kWait) wait_for(*job.other, job.bytes);
      if (job.kind == Job::kWait || state() != PLUGRAD_OK) continue;
      if (!first_) first_ = job.owner;
      attempt(job.owner, [&] { issue(job); });
    }
    retire(begin, at);
  }

  void issue(Job& job) {
    char* const to = reinterpret_cast<char*>(job.to);
    switch (job.kind) {
      case Job::kOp: return job.run(Call(job.kernel, handle(), &job.op), *queue_);
      case Job::kWrite:
        return job.staged.empty()
                   ? queue_->write(job.to, job.to_offset, reinterpret_cast<char*>(job.from) + job.from_offset, job.bytes)
                   : queue_->write(job.to, job.to_offset, job.staged.data(), job.staged.size());
      case Job::kRead: return queue_->read(to + job.to_offset, job.from, job.from_offset, job.bytes);
      case Job::kCopy: return queue_->copy(job.to, job.to_offset, job.from, job.from_offset, job.bytes);
      case Job::kWait: return;
    }
  }

  // Waits for the jobs begin .. end - 1, and makes their numbers done.
  void retire(uint64_t begin, uint64_t end) {
    if (begin == end) return;
    uint64_t last = 0, owner = 0;
    for (uint64_t i = begin; i < end; ++i) {
      last = std::max(last, slots_[i % kSlots].number);
      owner = std::max(owner, slots_[i % kSlots].owner);
    }
    if (!lost_) {
      attempt(owner, [&] { queue_->finish(); });
      attempt(owner, [&] {  // also after a failure: the flag belongs to this batch
        if (queue_->take_index_error()) throw BackendError(PLUGRAD_INDEX_ERROR, "an index is out of range");
      });
    }
    if (last) done_ = last;
    for (uint64_t i = begin; i < end; ++i) slots_[i % kSlots].staged = {};
    {
      const std::lock_guard lock(mutex_);
      head_ = end;
    }
    changed_.notify_all();
    number_done();
  }

  // Calls the driver for jobs up to this number. The driver may report a failure of any job of the batch.
  template <class Body> void attempt(uint64_t last, Body body) {
    try {
      body();
    } catch (const BackendError& error) {
      fail(error.status(), last, error.what());
    } catch (const std::exception& error) {
      fail(PLUGRAD_DEVICE_ERROR, last, error.what());
    } catch (...) {
      fail(PLUGRAD_DEVICE_ERROR, last, "an exception that is not a std::exception");
    }
  }
  void fail(plugrad_status status, uint64_t last, const char* message) {
    if (status == PLUGRAD_DEVICE_LOST) lost_ = true;
    if (failed_ || lost_) return;
    message_ = message;
    failure_.status = status == PLUGRAD_INDEX_ERROR ? status : PLUGRAD_DEVICE_ERROR;
    failure_.first = first_ ? first_ : done_ + 1;
    failure_.last = std::max(failure_.first, last);
    failed_ = true;
  }

  // Other streams wait for numbers of this stream.
  void number_done() {
    {
      const std::lock_guard lock(done_mutex_);
    }
    done_changed_.notify_all();
  }
  static void wait_for(QueuedStream& other, uint64_t number) {
    std::unique_lock lock(other.done_mutex_);
    other.done_changed_.wait(lock, [&] { return other.done_ >= number || other.lost_; });
  }

  const std::unique_ptr<DeviceQueue> queue_;
  const std::unique_ptr<Job[]> slots_;
  std::atomic<uint64_t> accepted_{0}, done_{0};
  std::atomic<bool> failed_{false}, lost_{false};
  plugrad_failure failure_{};  // with message_: written before failed_
  std::string message_;
  std::mutex mutex_, done_mutex_;
  std::condition_variable changed_, done_changed_;
  uint64_t head_ = 0, tail_ = 0;  // jobs before head_ have ended
  uint64_t staged_ = 0;           // bytes staged since the stream was idle
  uint64_t first_ = 0;            // the first number of the current batch
};

}  // namespace queued
}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
