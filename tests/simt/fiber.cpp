#include <tests/simt/fiber.hpp>

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PLUGRAD_SIMT_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define PLUGRAD_SIMT_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define PLUGRAD_SIMT_ASAN
#endif
#if defined(__SANITIZE_THREAD__)
#define PLUGRAD_SIMT_TSAN
#endif
#ifdef PLUGRAD_SIMT_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef PLUGRAD_SIMT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace simt {
namespace {
constexpr size_t kGuard = 4096;
#if defined(PLUGRAD_SIMT_ASAN) || defined(PLUGRAD_SIMT_TSAN)
constexpr size_t kStack = 256 << 10;  // sanitizers enlarge frames
#else
constexpr size_t kStack = 64 << 10;
#endif
// The last fiber that called transfer, for a fiber that starts. Kernels run one at a time, so one variable is enough.
Fiber* came_from = nullptr;
Fiber* starting = nullptr;
}  // namespace

#ifndef PLUGRAD_SIMT_UCONTEXT_SWITCH
// Saves the callee-saved registers and switches stacks, without the two system calls of swapcontext.
extern "C" void plugrad_simt_switch(void** save, void* load);
asm(R"(
.pushsection .text
.hidden plugrad_simt_switch
.globl plugrad_simt_switch
.type plugrad_simt_switch,@function
plugrad_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size plugrad_simt_switch,.-plugrad_simt_switch
.popsection
)");
#endif

Fiber::Fiber(void (*entry)()) : entry_(entry) {
  void* memory = mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<char*>(memory);
  mprotect(memory_, kGuard, PROT_NONE);
  bottom_ = memory_ + kGuard;
  size_ = kStack;
#ifdef PLUGRAD_SIMT_TSAN
  shadow_ = __tsan_create_fiber(0);
#endif
  prepare();
}

Fiber::~Fiber() {
  if (!memory_) return;
#ifdef PLUGRAD_SIMT_TSAN
  __tsan_destroy_fiber(shadow_);
#endif
  munmap(memory_, kGuard + kStack);
}

bool Fiber::overflown_at(const void* address) const { return memory_ && address >= memory_ && address < memory_ + kGuard; }

#ifdef PLUGRAD_SIMT_UCONTEXT_SWITCH
void Fiber::prepare() {
  getcontext(&context_);
  context_.uc_stack.ss_sp = memory_ + kGuard;
  context_.uc_stack.ss_size = kStack;
  context_.uc_link = nullptr;
  makecontext(&context_, &Fiber::start, 0);
}
#else
void Fiber::prepare() {
  auto* slot = reinterpret_cast<void**>(memory_ + kGuard + kStack);
  *--slot = nullptr;  // start's return address; aligns the stack as after a call
  *--slot = reinterpret_cast<void*>(&Fiber::start);
  for (int i = 0; i < 6; ++i) *--slot = nullptr;
  stack_pointer_ = slot;
}
#endif

void Fiber::start() {
#ifdef PLUGRAD_SIMT_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &came_from->bottom_, &came_from->size_);
#endif
  starting->entry_();
  std::abort();
}

void Fiber::exchange(Fiber& from, Fiber& to, [[maybe_unused]] bool for_good) {
  came_from = &from;
  starting = &to;
#ifdef PLUGRAD_SIMT_ASAN
  __sanitizer_start_switch_fiber(for_good ? nullptr : &from.shadow_, to.bottom_, to.size_);
#endif
#ifdef PLUGRAD_SIMT_TSAN
  if (!from.memory_) from.shadow_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.shadow_, 0);
#endif
#ifdef PLUGRAD_SIMT_UCONTEXT_SWITCH
  swapcontext(&from.context_, &to.context_);
#else
  plugrad_simt_switch(&from.stack_pointer_, to.stack_pointer_);
#endif
#ifdef PLUGRAD_SIMT_ASAN
  // There is no other way to find the bounds of a stack that was not created here.
  __sanitizer_finish_switch_fiber(from.shadow_, &came_from->bottom_, &came_from->size_);
#endif
}

void Fiber::transfer(Fiber& from, Fiber& to) {
  if (&from != &to) exchange(from, to, false);
}

void Fiber::leave(Fiber& from, Fiber& to) {
  exchange(from, to, true);
  std::abort();
}

}  // namespace simt
