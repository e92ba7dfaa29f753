// The truth of a stream's numbers in time: work of some length is in flight while the cases look.
#include <sdk/conformance/submission.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

namespace plugrad::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWork = 0.05;                // seconds of work to have in flight
constexpr int kMostOps = 200, kLeastOps = 8;  // a queue must hold 256 submissions
constexpr int64_t kFewElements = 1 << 18, kManyElements = 1 << 24;

double since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

uint64_t done_number(const Session& session, const Queue& queue) {
  uint64_t number = 0;
  session.plugin.table->completed(queue.stream, &number);
  return number;
}

// A chain of additions to one vector, of about kWork seconds in at most kMostOps submissions.
class Work {
 public:
  explicit Work(Session& session) : session_(session), queue_(session.device.make_queue()) {
    for (int64_t count = kFewElements; count <= kManyElements; count *= 4) {
      vectors_.emplace(session, count);
      if (!vectors_->lacking().empty()) return;
      block_.emplace(session.device, vectors_->bytes());
      vectors_->fill(queue_, block_->buffer(), 0);
      measure();
      if (seconds_ * kMostOps >= kWork) return;
    }
  }

  ~Work() { session_.device.sync(queue_); }  // nothing may free a buffer in use
  Work(const Work&) = delete;

  const std::string& lacking() const { return vectors_->lacking(); }
  Queue& queue() { return queue_; }
  plugrad_buffer* buffer() const { return block_->buffer(); }
  const Vectors& vectors() const { return *vectors_; }
  int ops() const { return ops_; }

  // Submits the chain on a vector of zeros that no other work uses. Returns whether every submission was accepted.
  bool submit(Tally& tally) {
    vectors_->fill(queue_, buffer(), 0);
    session_.device.sync(queue_);
    for (int i = 0; i < ops_; ++i)
      if (const Outcome outcome = vectors_->add_one(queue_, buffer()); !outcome.ok()) {
        tally.fail("an addition on a stream returned " + outcome.text());
        return false;
      }
    return true;
  }
  // Whether the chain is still running, by the stream's own number.
  bool in_flight() const { return done_number(session_, queue_) < queue_.last; }

 private:
  // Takes the fastest of some samples: on a busy machine the others last longer than their work.
  void measure() {
    vectors_->add_one(queue_, buffer());  // the first call may compile the kernel
    session_.device.sync(queue_);
    seconds_ = 1;
    for (int sample = 0; sample < 5; ++sample) {
      const Clock::time_point begun = Clock::now();
      for (int i = 0; i < kLeastOps; ++i) vectors_->add_one(queue_, buffer());
      session_.device.sync(queue_);
      seconds_ = std::clamp(since(begun) / kLeastOps, 1e-7, seconds_);
    }
    ops_ = static_cast<int>(std::clamp(kWork / seconds_, static_cast<double>(kLeastOps), static_cast<double>(kMostOps)));
  }

  Session& session_;
  Queue queue_;
  std::optional<Vectors> vectors_;
  std::optional<Block> block_;
  double seconds_ = 0;
  int ops_ = kLeastOps;
};

// Work for a case, or null with the reason why the case cannot run.
std::unique_ptr<Work> work_for(Session& session, Tally& tally) {
  if (!session.device.async()) {
    tally.skip("the device has no streams");
    return nullptr;
  }
  auto work = std::make_unique<Work>(session);
  if (work->lacking().empty()) return work;
  tally.skip(work->lacking());
  return nullptr;
}

// The last element of the work's vector, read by another stream without a wait: the number says that no wait is needed.
float last_element(Session& session, const Work& work, Queue& other) {
  float found = -1;
  session.device.download(other, &found, work.buffer(), work.vectors().bytes() - sizeof found, sizeof found);
  return found;
}

// completed may store the number of work only when the work is done: another stream then sees the result without a wait.
void check_done(Session& session, Tally& tally) {
  const std::unique_ptr<Work> work = work_for(session, tally);
  if (!work) return;
  Queue other = session.device.make_queue(PLUGRAD_COPY_STREAM);
  last_element(session, *work, other);  // the first copy may be slow
  for (int round = 0; round < 3; ++round) {
    if (!work->submit(tally)) return;
    const Clock::time_point begun = Clock::now();
    while (work->in_flight() && since(begun) < 60) std::this_thread::yield();
    if (work->in_flight()) return tally.fail("completed does not reach the last number within a minute");
    const float found = last_element(session, *work, other);
    session.device.sync(work->queue());
    if (!tally.check(found == static_cast<float>(work->ops()),
                     "completed stored the number of the last of " + std::to_string(work->ops()) +
                         " additions, and another stream then read " + std::to_string(found) +
                         ": completed must not be ahead of the work"))
      return;
  }
}

// run submits: in one of five rounds, work is in flight when the last submission has returned.
void check_run_returns(Session& session, Tally& tally) {
  const std::unique_ptr<Work> work = work_for(session, tally);
  if (!work) return;
  bool returned = false;
  for (int round = 0; round < 5 && !returned; ++round) {
    if (!work->submit(tally)) return;
    returned = work->in_flight();
    session.device.sync(work->queue());
  }
  tally.check(returned, "run returned only when its work was done, " + std::to_string(work->ops()) +
                            " times in each of five rounds: with ASYNC, run submits and does not wait for the device");
}

// wait makes the stream wait, not the host.
void check_wait_returns(Session& session, Tally& tally) {
  const std::unique_ptr<Work> work = work_for(session, tally);
  if (!work) return;
  Queue other = session.device.make_queue(PLUGRAD_COPY_STREAM);
  bool returned = false, ran = false;
  for (int round = 0; round < 5 && !returned; ++round) {
    if (!work->submit(tally)) return;
    if (!work->in_flight()) continue;
    ran = true;
    uint64_t number = work->queue().last;
    const Outcome outcome =
        attempt("wait", [&] { return session.plugin.table->wait(other.stream, work->queue().stream, &number); });
    returned = work->in_flight();
    session.device.sync(work->queue());
    if (!tally.check(outcome.ok(), "wait returned " + outcome.text())) return;
  }
  if (!ran) return tally.skip("run returns only when its work is done");
  tally.check(returned,
              "wait returned only when the other stream's work was done, in each of five rounds: the stream waits, "
              "not the host");
}

}  // namespace

std::vector<Case> time_cases() {
  return {
      {"stream.done", check_done}, {"stream.run_returns", check_run_returns}, {"stream.wait_returns", check_wait_returns}};
}

void leave_in_flight(Session& session) {
  if (!session.device.async()) return;
  Work& work = *new Work(session);  // outlives its work
  Tally ignored;
  if (work.lacking().empty()) work.submit(ignored);
}

}  // namespace plugrad::conformance
