// One block of a launch. Its threads run in turn on one OS thread; only threads that wait need a stack of their own.
#pragma once
#include <simt/intrinsics.hpp>
#include <tests/simt/fiber.hpp>

#include <signal.h>

#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace simt {

// A bug that loses the device; the message names kernel, block and thread.
class Fault : public std::runtime_error {
 public:
  Fault(int error, const std::string& what) : std::runtime_error(what), error_(error) {}
  int error() const { return error_; }  // a cudaError_t

 private:
  int error_;
};

enum class Order : uint8_t { forward, reverse, shuffled };

struct Code {  // the code that each thread runs
  void (*call)(const void*);
  const void* frame;
};

class Block {
 public:
  static Block& current();  // the running block: kernels run one at a time

  // Sets the code that the blocks of a launch run, and the order in which their threads start. blockDim must be set.
  void prepare(Code code, Order order, std::mt19937_64& random);
  // Runs all threads of block `index`. Throws Fault.
  void run(uint3 index);

  int barrier(int predicate, Vote vote, const char* what, Site site);
  uint64_t meet(Meeting meeting, unsigned mask, uint64_t value, int source, const char* what, Site site);
  // blame stores why the launch fails, and abandon then ends the launch. A thread of the block calls both.
  void blame(int error, const std::string& what);
  [[noreturn]] void abandon();
  // Does both in a signal handler, which must not allocate: run() makes the message with describe_fault.
  [[noreturn]] void interrupt(const siginfo_t& info);
  bool running() const { return live_ > 0; }
  int lane() const { return static_cast<int>(current_->linear & 31); }
  // The running thread, for example "block (0,0,0) thread (1,0,0)".
  std::string where() const;
  bool stack_overflown_at(const void* address) const;

 private:
  enum class State : uint8_t { fresh, ready, barrier, warp, done };
  struct Lane {  // a GPU thread
    uint3 index;
    unsigned linear;
    State state;
    Meeting meeting;
    Vote vote;
    unsigned mask;
    int source;
    uint64_t value, result;
    Fiber* fiber;
    const char* what;
    Site site;
  };
  struct Warp {
    unsigned exist, arrived;
  };

  static void enter();
  void work();
  void yield();
  Fiber& idle_fiber();
  void resume(Lane& lane);
  void wait(State state, const char* what, Site site);
  void release(Lane& lane);
  void release_barrier();
  void answer_meeting(Warp& warp, Lane& last);
  Lane& member(const Lane& of, unsigned lane) { return lanes_[(of.linear & ~31u) + lane]; }
  std::string named(const Lane& lane) const;
  std::string who_waits();

  Code code_{};
  Order order_ = Order::forward;
  std::mt19937_64* random_ = nullptr;
  std::vector<Lane> lanes_;
  std::vector<Warp> warps_;
  std::vector<unsigned> turn_;  // the order in which threads start
  size_t next_ = 0;
  std::vector<unsigned> ready_;
  size_t first_ready_ = 0;
  unsigned live_ = 0, at_barrier_ = 0;
  Lane* current_ = nullptr;
  Fiber caller_, *on_ = &caller_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  int error_ = 0;
  std::string failure_;
  bool interrupted_ = false;
  siginfo_t signal_{};
};

// The error for a signal in a kernel, and its description.
struct Explained {
  int error;
  std::string what;
};
Explained describe_fault(const siginfo_t& info);

}  // namespace simt
