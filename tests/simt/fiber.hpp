// A stack of its own to run on, for a GPU thread that waits for others. Fibers may move between OS threads while they rest.
#pragma once
#include <cstddef>
#if !defined(__x86_64__) || defined(PLUGRAD_SIMT_UCONTEXT)
#define PLUGRAD_SIMT_UCONTEXT_SWITCH
#include <ucontext.h>
#endif

namespace simt {

class Fiber {
 public:
  Fiber() = default;                // stands for the stack that the caller is on
  explicit Fiber(void (*entry)());  // entry never returns
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Goes on with `to`; returns when somebody transfers back.
  static void transfer(Fiber& from, Fiber& to);
  // The caller's stack is left for good; `to` goes on.
  [[noreturn]] static void leave(Fiber& from, Fiber& to);
  // Is this address one that overflows the stack?
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
  // What sanitizers know of this stack.
  const void* bottom_ = nullptr;
  size_t size_ = 0;
  [[maybe_unused]] void* shadow_ = nullptr;
};

}  // namespace simt
