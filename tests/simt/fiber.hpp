// A stack for a GPU thread that waits for others. A suspended fiber may move to another OS thread.
#pragma once
#include <cstddef>
#if !defined(__x86_64__) || defined(PLUGRAD_SIMT_UCONTEXT)
#define PLUGRAD_SIMT_UCONTEXT_SWITCH
#include <ucontext.h>
#endif

namespace simt {

class Fiber {
 public:
  Fiber() = default;                // represents the caller's own stack
  explicit Fiber(void (*entry)());  // entry never returns
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Switches from `from` to `to`; returns when another fiber transfers back.
  static void transfer(Fiber& from, Fiber& to);
  // Switches to `to` and never returns to the caller's stack.
  [[noreturn]] static void leave(Fiber& from, Fiber& to);
  // Returns whether an access at this address is a stack overflow.
  bool overflown_at(const void* address) const;

 private:
  static void start();
  void prepare();
  static void exchange(Fiber& from, Fiber& to, bool for_good);

  void (*entry_)() = nullptr;
  char* memory_ = nullptr;  // a guard page, then the stack
#ifdef PLUGRAD_SIMT_UCONTEXT_SWITCH
  ucontext_t context_{};
#else
  void* stack_pointer_ = nullptr;
#endif
  // The sanitizers' data about this stack.
  const void* bottom_ = nullptr;
  size_t size_ = 0;
  [[maybe_unused]] void* shadow_ = nullptr;
};

}  // namespace simt
