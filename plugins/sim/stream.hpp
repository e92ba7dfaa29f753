// A stream: a lock-free queue between the submitting thread and a worker. The worker executes in order and with a delay.
#pragma once
#include <plugins/sim/progress.hpp>

#include <plugrad/sdk/fusion.h>
#include <plugrad/sdk/native.hpp>

#include <deque>
#include <memory>
#include <vector>

namespace plugrad::sim {

// State read by the workers of a device.
struct Conditions {
  std::atomic<bool> lost{false};
  std::atomic<uint32_t> latency{0};  // microseconds
  std::atomic<uint32_t> held{0};     // roles, as 1 << role

  void hold(uint32_t roles);
  void pass(uint32_t role);  // waits while role is held

 private:
  std::mutex mutex_;
  std::condition_variable released_;
};

class SimStream;

// A submission, in a slot of the stream's ring.
struct Job {
  enum Kind : uint8_t { kOp, kCopy, kWait, kMark };  // kMark does nothing, under a number
  Kind kind;
  uint32_t faults;  // bits 1 << PLUGRAD_SIM_...
  bool racing;      // a hazard: the job accesses no memory, so that its missing result shows
  uint64_t number;  // 0: the job has no number of its own
  // kOp: copies with the addresses of the real bytes.
  const plugrad_kernel* kernel;
  plugrad_op op;
  uint32_t fresh;  // a bit set: the outputs to fill with poison before the kernel runs
  plugrad_view views[PLUGRAD_FUSION_OPERANDS];
  const plugrad_view* pointers[PLUGRAD_FUSION_OPERANDS];
  alignas(8) char attributes[128];
  // kCopy
  char* to;
  const char* from;
  uint64_t bytes;
  const Conditions* source;  // the conditions of the device copied from, or null
  // kWait
  SimStream* other;
  uint64_t other_number;
};

class SimStream final : public Stream {
 public:
  static constexpr uint64_t kSlots = 512, kStages = 4, kStageBytes = 64 << 10;

  SimStream(Conditions& conditions, uint32_t id, uint32_t role);
  uint32_t id() const { return id_; }
  uint64_t accepted() const { return accepted_.load(); }  // the last number
  uint64_t finished() const { return finished_.value(); }
  plugrad_status state() const;  // OK, DEVICE_ERROR, DEVICE_LOST
  void demand_sound() const;     // throws if the state is not OK
  void demand_number(uint64_t number) const;

  // [stream-serial]
  void wait_for_room() {
    if (tail_ >= kSlots) retired_.wait_for(tail_ - kSlots + 1);
  }
  Job& slot();                   // returns the next slot; the caller has waited for room
  void submit(uint64_t number);  // submits the next slot's job; 0: it takes no number
  char* stage();                 // returns staging memory for the next job; waits until an earlier job releases it
  void wait_until_idle() { retired_.wait_for(tail_); }
  void finish(uint64_t number);                                // on an idle stream: takes the number and marks it done
  void mark(uint64_t number);                                  // submits a job without work
  bool clear(plugrad_failure& failure, std::string& message);  // on an idle stream: moves the failure out, if there is any

  // [any], under World::mutex: work submitted from now on starts after all work submitted to other so far.
  void follow(SimStream& other);
  // [any]: calls back once nothing up to number is in flight.
  void notify(uint64_t number, Notice notice);

 private:
  [[noreturn]] void work();
  void execute(Job& job);
  void compute(Job& job);
  void move(const Job& job);
  void fail(const Job& job, plugrad_status status, const char* message);
  void pass_barriers(uint64_t next);  // waits for the barriers before job `next`
  void tell();                        // runs the callbacks of finished numbers

  Conditions& conditions_;
  const uint32_t id_, role_;
  std::unique_ptr<Job[]> slots_;
  std::unique_ptr<char[]> stages_;
  uint64_t stage_users_[kStages] = {};  // how many jobs have to retire before the stage is free
  uint64_t staged_ = 0, tail_ = 0;
  std::atomic<uint64_t> accepted_{0};
  Progress queued_, retired_;  // jobs
  Progress finished_;          // numbers
  std::atomic<uint64_t> failed_{0};
  plugrad_status failure_ = PLUGRAD_OK;  // stored before failed_
  char failure_message_[256] = {};

  struct Barrier {  // jobs from number `at` on wait for the first `jobs` jobs of other
    uint64_t at;
    SimStream* other;
    uint64_t jobs;
  };
  struct Pending {
    uint64_t number;
    Notice notice;
  };
  std::mutex native_mutex_;  // guards the members below; never held while waiting or calling back
  std::deque<Barrier> barriers_;
  std::vector<Pending> pending_;
};

}  // namespace plugrad::sim
