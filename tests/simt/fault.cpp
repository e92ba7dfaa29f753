#include <tests/simt/execution.hpp>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

namespace simt {
namespace {
constexpr size_t kSignalStack = 64 << 10;
constexpr int kSignals[] = {SIGSEGV, SIGBUS};
struct sigaction previous[2];
std::atomic<bool> kernel_runs{false};
std::atomic<pthread_t> kernel_thread{};

std::string what_happened(const siginfo_t& info) {
  if (Block::current().stack_overflown_at(info.si_addr)) return "its stack overflowed";
  for (const Device* device : devices())
    if (device->memory.owns(info.si_addr)) return "touches " + device->memory.describe(info.si_addr);
  if (dynamic_shared() && info.si_addr >= dynamic_shared() &&
      info.si_addr < static_cast<char*>(dynamic_shared()) + (1 << 20))
    return "touches byte " + std::to_string(static_cast<char*>(info.si_addr) - static_cast<char*>(dynamic_shared())) +
           " of its dynamic shared memory, past its end";
  if (info.si_code == SI_KERNEL) return "touches an address that is not aligned for its type, or not valid";
  char digits[32];
  std::snprintf(digits, sizeof digits, "%p", info.si_addr);
  return std::string("touches ") + digits + ", which is not device memory";
}

bool note_write(void* address) {
  for (Device* device : devices())
    if (device->memory.note_write(address)) return true;
  return false;
}

// Prints a message about a fault outside a kernel, which is a bug of host code.
void name_host_fault(const siginfo_t& info) {
  for (const Device* device : devices()) {
    if (!device->memory.owns(info.si_addr)) continue;
    const std::string text = "simt: the host touches " + device->memory.describe(info.si_addr) + "\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  }
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (kernel_runs && pthread_equal(pthread_self(), kernel_thread)) {
    if (note_write(info->si_addr)) return;
    Block::current().interrupt(*info);
  }
  name_host_fault(*info);
  const struct sigaction& before = previous[signal == SIGBUS];
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  sigaction(signal, &before, nullptr);  // the repeated access then ends the process
}
}  // namespace

Explained describe_fault(const siginfo_t& info) {
  return {info.si_code == SI_KERNEL ? cudaErrorMisalignedAddress : cudaErrorIllegalAddress, what_happened(info)};
}

// Reinstalls the emulator's handler if the program has set its own handler in the meantime. The program's handler gets all
// faults that do not concern the emulator.
void catch_faults() {
  for (int i = 0; i < 2; ++i) {
    struct sigaction now{};
    sigaction(kSignals[i], nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) continue;
    previous[i] = now;
    struct sigaction ours{};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // the handler of a failed kernel never returns
    sigaction(kSignals[i], &ours, nullptr);
  }
}

KernelThread::KernelThread() {
  kernel_thread = pthread_self();
  kernel_runs = true;
}
KernelThread::~KernelThread() { kernel_runs = false; }

SignalStack::SignalStack() {
  stack_t before{};
  if (sigaltstack(nullptr, &before) || !(before.ss_flags & SS_DISABLE)) return;  // a sanitizer has made an alternate stack
  memory_ = std::make_unique<char[]>(kSignalStack);
  stack_t ours{};
  ours.ss_sp = memory_.get();
  ours.ss_size = kSignalStack;
  sigaltstack(&ours, nullptr);
}
SignalStack::~SignalStack() {
  if (!memory_) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

}  // namespace simt
