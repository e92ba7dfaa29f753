#include <tests/simt/block.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <utility>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace simt {
namespace {
std::string text(uint3 v) { return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")"; }
std::string text(Site site) {
  const std::string file = site.file;
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(site.line);
}
std::string hex(unsigned mask) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "0x%08x", mask);
  return digits;
}
template <class F> void each(unsigned mask, F f) {
  for (; mask; mask &= mask - 1) f(static_cast<unsigned>(std::countr_zero(mask)));
}
}  // namespace

Block& Block::current() {
  static auto* block = new Block;  // leaked: workers may still run at process exit
  return *block;
}

std::string Block::named(const Lane& lane) const { return "thread " + text(lane.index); }
std::string Block::where() const {
  return "block " + text(blockIdx) + " thread " + text(current_ ? current_->index : uint3{});
}
bool Block::stack_overflown_at(const void* address) const { return on_->overflown_at(address); }

// All blocks of a launch have the same threads, started in the same order.
void Block::prepare(Code code, Order order, std::mt19937_64& random) {
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  code_ = code;
  order_ = order;
  random_ = &random;
  lanes_.assign(count, Lane{});
  warps_.assign((count + 31) / 32, Warp{});
  turn_.resize(count);
  for (unsigned i = 0; i < count; ++i) {
    lanes_[i].index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
    lanes_[i].linear = i;
    warps_[i / 32].exist |= 1u << (i & 31);
    turn_[i] = order == Order::reverse ? count - 1 - i : i;
  }
  if (order == Order::shuffled) std::shuffle(turn_.begin(), turn_.end(), random);
}

void Block::run(uint3 index) {
  blockIdx = index;
  for (Lane& lane : lanes_) lane.state = State::fresh;
  for (Warp& warp : warps_) warp.arrived = 0;
  next_ = first_ready_ = 0;
  ready_.clear();
  live_ = static_cast<unsigned>(lanes_.size());
  at_barrier_ = 0;
  error_ = 0;
  Fiber& first = idle_fiber();
  on_ = &first;
  Fiber::transfer(caller_, first);
  if (std::exchange(interrupted_, false)) {
    const Explained fault = describe_fault(signal_);
    blame(fault.error, fault.what);
  }
  on_ = &caller_;
  current_ = nullptr;
  if (!error_) return;
  live_ = 0;
  idle_.clear();  // frames of failed threads are still on them
  fibers_.clear();
  throw Fault(error_, failure_);
}

Fiber& Block::idle_fiber() {
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(&Block::enter));
    return *fibers_.back();
  }
  Fiber& fiber = *idle_.back();
  idle_.pop_back();
  return fiber;
}

void Block::enter() {
  for (;;) current().work();
}

// Threads that do not wait run one after the other on the same fiber, which yields when all threads have started.
void Block::work() {
  while (next_ < turn_.size() && first_ready_ == ready_.size()) {
    Lane& lane = lanes_[turn_[next_++]];
    lane.fiber = on_;
    lane.state = State::ready;
    current_ = &lane;
    threadIdx = lane.index;
    code_.call(code_.frame);
    current_->state = State::done;
    --live_;
    release_barrier();
  }
  idle_.push_back(on_);
  yield();
}

void Block::resume(Lane& lane) {
  Fiber& from = *on_;
  on_ = lane.fiber;
  Fiber::transfer(from, *lane.fiber);
}

// Suspends a waiting thread or an idle fiber, and continues with a ready thread, a thread that has not started, or the
// caller.
void Block::yield() {
  if (first_ready_ < ready_.size()) {
    if (order_ == Order::shuffled)
      std::swap(ready_[first_ready_], ready_[first_ready_ + (*random_)() % (ready_.size() - first_ready_)]);
    resume(lanes_[ready_[first_ready_++]]);
  } else if (next_ < turn_.size()) {
    Fiber& from = *on_;
    on_ = &idle_fiber();
    Fiber::transfer(from, *on_);
  } else if (live_ == 0) {
    Fiber::transfer(*on_, caller_);
  } else {
    blame(cudaErrorLaunchFailure, who_waits());
    abandon();
  }
}

void Block::wait(State state, const char* what, Site site) {
  Lane& lane = *current_;
  lane.state = state;
  lane.what = what;
  lane.site = site;
}

void Block::release(Lane& lane) {
  lane.state = State::ready;
  if (first_ready_ == ready_.size()) {
    ready_.clear();
    first_ready_ = 0;
  }
  if (&lane != current_) ready_.push_back(lane.linear);
}

int Block::barrier(int predicate, Vote vote, const char* what, Site site) {
  Lane& lane = *current_;
  lane.value = predicate != 0;
  lane.vote = vote;
  wait(State::barrier, what, site);
  ++at_barrier_;
  release_barrier();
  while (lane.state == State::barrier) yield();
  current_ = &lane;
  threadIdx = lane.index;
  return static_cast<int>(lane.result);
}

// The barrier does not wait for threads that have returned.
void Block::release_barrier() {
  if (!live_ || at_barrier_ != live_) return;
  at_barrier_ = 0;
  const Lane* first = nullptr;
  unsigned count = 0;
  for (const Lane& lane : lanes_) {
    if (lane.state != State::barrier) continue;
    if (!first) first = &lane;
    if (first->site.line != lane.site.line || std::strcmp(first->site.file, lane.site.file)) {
      blame(cudaErrorLaunchFailure, "divergent __syncthreads: " + named(*first) + " waits at " + text(first->site) + ", " +
                                        named(lane) + " at " + text(lane.site));
      abandon();
    }
    count += static_cast<unsigned>(lane.value);
  }
  for (const unsigned i : turn_) {
    Lane& lane = lanes_[i];
    if (lane.state != State::barrier) continue;
    lane.result = lane.vote == Vote::any ? count > 0 : lane.vote == Vote::all ? count == live_ : count;
    release(lane);
  }
}

uint64_t Block::meet(Meeting meeting, unsigned mask, uint64_t value, int source, const char* what, Site site) {
  Lane& lane = *current_;
  Warp& warp = warps_[lane.linear / 32];
  const unsigned bit = 1u << (lane.linear & 31);
  wait(State::warp, what, site);
  if (!(mask & bit)) {
    blame(cudaErrorLaunchFailure,
          std::string(what) + " at " + text(site) + ": the mask " + hex(mask) + " excludes the calling lane");
    abandon();
  }
  lane.meeting = meeting;
  lane.mask = mask &= warp.exist;
  lane.value = value;
  lane.source = source;
  each(mask, [&](unsigned i) {
    if (member(lane, i).state != State::done) return;
    blame(cudaErrorLaunchFailure, std::string(what) + " at " + text(site) + ": the mask " + hex(mask) +
                                      " names absent lanes: " + named(member(lane, i)) + " has returned");
    abandon();
  });
  warp.arrived |= bit;
  if ((warp.arrived & mask) == mask) answer_meeting(warp, lane);
  while (lane.state == State::warp) yield();
  current_ = &lane;
  threadIdx = lane.index;
  return lane.result;
}

void Block::answer_meeting(Warp& warp, Lane& last) {
  const unsigned mask = last.mask;
  warp.arrived &= ~mask;
  unsigned votes = 0;
  each(mask, [&](unsigned i) {
    const Lane& one = member(last, i);
    if (one.mask != mask || one.meeting != last.meeting) {
      blame(cudaErrorLaunchFailure, "lanes of a warp disagree: " + named(one) + " calls " + one.what + " with mask " +
                                        hex(one.mask) + " at " + text(one.site) + ", " + named(last) + " " + last.what +
                                        " with mask " + hex(mask) + " at " + text(last.site));
      abandon();
    }
    votes |= one.value ? 1u << i : 0;
  });
  each(mask, [&](unsigned i) {
    Lane& one = member(last, i);
    if (one.meeting == Meeting::ballot) one.result = votes;
    if (one.meeting == Meeting::match) {
      one.result = 0;
      each(mask, [&](unsigned k) { one.result |= member(last, k).value == one.value ? 1u << k : 0; });
    }
    if (one.meeting != Meeting::shuffle) return;
    if (one.source < 0 || one.source > 31) one.result = one.value;
    // undefined in CUDA
    else one.result = mask >> one.source & 1 ? member(last, static_cast<unsigned>(one.source)).value : ~uint64_t{0};
  });
  each(mask, [&](unsigned i) { release(member(last, i)); });
}

std::string Block::who_waits() {
  std::string what = "deadlock:";
  const Lane* named_last = nullptr;
  for (const Lane& lane : lanes_) {
    if (lane.state != State::barrier && lane.state != State::warp) continue;
    if (named_last && named_last->site.line == lane.site.line && named_last->what == lane.what) continue;
    what += (named_last ? "; " : " ") + named(lane) + " waits in " + lane.what + " at " + text(lane.site);
    if (lane.state == State::warp) {
      const unsigned absent = lane.mask & ~warps_[lane.linear / 32].arrived;
      what += " for lanes " + hex(absent) + ", which its mask " + hex(lane.mask) + " names and which are absent";
      const Lane& first = member(lane, static_cast<unsigned>(std::countr_zero(absent)));
      if (first.state == State::done) what += ": " + named(first) + " has returned";
    }
    named_last = &lane;
  }
  for (Lane& lane : lanes_)
    if (&lane == named_last) current_ = &lane;
  return what;
}

void Block::blame(int error, const std::string& what) {
  error_ = error;
  failure_ = where() + ": " + what;
}

// Never unwinds the fiber's frames, so the caller must have no objects there that need destruction.
void Block::abandon() { Fiber::leave(*on_, caller_); }

void Block::interrupt(const siginfo_t& info) {
  signal_ = info;
  interrupted_ = true;
  abandon();
}

int barrier(int predicate, Vote vote, const char* what, Site site) {
  return Block::current().barrier(predicate, vote, what, site);
}
uint64_t meet(Meeting meeting, unsigned mask, uint64_t value, int source, const char* what, Site site) {
  return Block::current().meet(meeting, mask, value, source, what, site);
}
int lane() { return Block::current().lane(); }
void trap(const char* what, Site site) {
  Block::current().blame(cudaErrorAssert, std::string(what) + " at " + text(site));
  Block::current().abandon();
}

}  // namespace simt
