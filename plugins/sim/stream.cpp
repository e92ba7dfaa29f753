#include <plugins/sim/stream.hpp>

#include <plugins/sim/inner.hpp>
#include <plugrad/sdk/threads.hpp>
#include <plugrad/sim.hpp>

#include <chrono>
#include <cstring>

namespace plugrad::sim {
namespace {
constexpr int kPoison = 0xff;
constexpr std::chrono::milliseconds kSlow{20};
constexpr uint32_t bit(uint32_t fault) { return 1u << fault; }
}  // namespace

void Conditions::hold(uint32_t roles) {
  {
    const std::lock_guard lock(mutex_);
    held = roles;
  }
  released_.notify_all();
}

void Conditions::pass(uint32_t role) {
  if (!(held.load() >> role & 1)) return;
  std::unique_lock lock(mutex_);
  released_.wait(lock, [&] { return !(held.load() >> role & 1); });
}

SimStream::SimStream(Conditions& conditions, uint32_t id, uint32_t role)
    : conditions_(conditions), id_(id), role_(role), slots_(new Job[kSlots]), stages_(new char[kStages * kStageBytes]) {
  start_thread([this] { work(); });
}

plugrad_status SimStream::state() const {
  if (conditions_.lost) return PLUGRAD_DEVICE_LOST;
  return failed_.load(std::memory_order_acquire) ? PLUGRAD_DEVICE_ERROR : PLUGRAD_OK;
}

void SimStream::demand_sound() const {
  const plugrad_status status = state();
  if (status == PLUGRAD_DEVICE_LOST) throw BackendError(status, "the simulated device is lost");
  if (status != PLUGRAD_OK) throw BackendError(status, "earlier work on this stream failed: call sync");
}

void SimStream::demand_number(uint64_t number) const {
  if (number == accepted_ + 1) return;
  throw BackendError(PLUGRAD_INVALID, "number " + std::to_string(number) + " on a stream whose next number is " +
                                          std::to_string(accepted_ + 1));
}

Job& SimStream::slot() {
  Job& job = slots_[tail_ % kSlots];
  job.number = 0;
  job.faults = 0;
  job.racing = false;
  job.source = nullptr;
  return job;
}

void SimStream::submit(uint64_t number) {
  slots_[tail_ % kSlots].number = number;
  if (number) accepted_ = number;
  queued_.advance(++tail_);
}

char* SimStream::stage() {
  const uint64_t i = staged_++ % kStages;
  retired_.wait_for(stage_users_[i]);
  stage_users_[i] = tail_ + 1;
  return stages_.get() + i * kStageBytes;
}

void SimStream::finish(uint64_t number) {
  accepted_ = number;
  finished_.advance(number);
  tell();
}

bool SimStream::clear(plugrad_failure& failure, std::string& message) {
  const uint64_t number = failed_.exchange(0);
  if (!number) return false;
  failure.status = failure_;
  failure.first = failure.last = number;
  message = failure_message_;
  return true;
}

// --- The worker.

void SimStream::work() {
  for (uint64_t next = 0;; ++next) {
    queued_.wait_for(next + 1);
    pass_barriers(next);
    conditions_.pass(role_);
    Job& job = slots_[next % kSlots];
    execute(job);
    const uint64_t number = job.number;
    if (number) finished_.advance(number);
    retired_.advance(next + 1);
    if (number) tell();
  }
}

// Waits are also executed after a failure: work behind a wait may assume that the awaited stream has reached the number.
void SimStream::execute(Job& job) {
  if (job.kind == Job::kWait) return job.other->finished_.wait_for(job.other_number);
  if (job.kind == Job::kMark) return;
  if (state() != PLUGRAD_OK) return;
  for (uint32_t i = 0; job.kind == Job::kOp && job.fresh >> i && !job.racing; ++i)
    if (job.fresh >> i & 1) {
      const plugrad_view& view = job.views[i];
      std::memset(data<char>(view), kPoison, view.count * element_size(view.dtype));
    }
  if (const uint32_t micros = conditions_.latency) std::this_thread::sleep_for(std::chrono::microseconds(micros));
  if (job.faults & bit(PLUGRAD_SIM_SLOW)) std::this_thread::sleep_for(kSlow);
  if (job.faults & bit(PLUGRAD_SIM_LOSE)) return conditions_.lost.store(true);
  if (job.faults & bit(PLUGRAD_SIM_FAIL)) return fail(job, PLUGRAD_DEVICE_ERROR, "the simulated device trapped");
  if (job.faults & bit(PLUGRAD_SIM_INDEX_ERROR)) return fail(job, PLUGRAD_INDEX_ERROR, "an index is out of range");
  if (job.faults & bit(PLUGRAD_SIM_FAIL_COPY)) return fail(job, PLUGRAD_DEVICE_ERROR, "the simulated bus failed");
  if (job.racing) return;
  job.kind == Job::kOp ? compute(job) : move(job);
}

void SimStream::compute(Job& job) {
  const plugrad_status status = job.kernel->run(job.kernel, nullptr, &job.op);
  if (status == PLUGRAD_OK) return;
  fail(job, status == PLUGRAD_INDEX_ERROR ? status : PLUGRAD_DEVICE_ERROR, inner_message());
}

void SimStream::move(const Job& job) {
  if (job.source && job.source->lost) std::memset(job.to, kPoison, job.bytes);
  else std::memmove(job.to, job.from, job.bytes);
}

void SimStream::fail(const Job& job, plugrad_status status, const char* message) {
  failure_ = status;
  std::strncpy(failure_message_, message, sizeof failure_message_ - 1);
  failed_.store(job.number, std::memory_order_release);
}

}  // namespace plugrad::sim
