// Counts the atomic read-modify-writes of an op by single-stepping a child process.
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>

#include <gtest/gtest.h>
#include <cstring>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <csignal>
#include <functional>

namespace plugrad {
namespace {

struct Count {
  bool traced = false;  // whether the system allows a process to trace its child
  uint64_t atomics = 0, instructions = 0;
};

// Returns whether these bytes are an atomic read-modify-write: an instruction with LOCK, or XCHG with memory.
bool is_atomic(const uint8_t* code) {
  bool locked = false;
  for (;; ++code) {
    if (*code == 0xf0) locked = true;
    else if (*code != 0x66 && *code != 0x67 && *code != 0xf2 && *code != 0xf3 && *code != 0x2e && *code != 0x36 &&
             *code != 0x3e && *code != 0x26 && *code != 0x64 && *code != 0x65)
      break;
  }
  if (locked) return true;
  if ((*code & 0xf0) == 0x40) ++code;  // REX
  return (*code == 0x86 || *code == 0x87) && (code[1] & 0xc0) != 0xc0;
}

constexpr uint8_t kMark = 0xcc;  // int3
void mark() { asm volatile("int3" ::: "memory"); }

// Counts the instructions of body in a child. The child's code has the same addresses in this process, which reads the code.
Count count_atomics(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)) _exit(1);
    mark();
    body();
    mark();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) return {};  // tracing is not permitted
  // The child is stopped after the first mark.
  Count count;
  count.traced = true;
  for (;;) {
    user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, child, nullptr, &registers)) break;
    const auto* code = reinterpret_cast<const uint8_t*>(registers.rip);
    if (*code == kMark) break;
    ++count.instructions;
    count.atomics += is_atomic(code);
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) || waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status)) break;
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return count;
}

// The cost of one more op: the difference between 2n and n ops excludes the cost of setup.
double atomics_per_op(const std::function<void(int)>& ops, int n) {
  ops(2 * n);  // opens devices, resolves kernels and fills caches before the fork
  const Count once = count_atomics([&] { ops(n); }), twice = count_atomics([&] { ops(2 * n); });
  EXPECT_GT(twice.instructions, once.instructions);
  return static_cast<double>(twice.atomics - once.atomics) / n;
}

class Atomics : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!count_atomics([] {}).traced) GTEST_SKIP() << "this system does not allow a process to trace its child";
  }
  const Tensor a_ = full({1}, 2), b_ = full({1}, 1);
  const Tensor leaf_ = full({1}, 3).requires_grad_();
};

TEST_F(Atomics, AreCountedAtAll) {
  std::atomic<int> number{0};
  const Count count = count_atomics([&] {
    for (int i = 0; i < 100; ++i) {
      number.fetch_add(1);
      number.exchange(i);
      number.load();
    }
  });
  EXPECT_EQ(count.atomics, 200u);
}

TEST_F(Atomics, AreNoneInAnUnrecordedOp) {
  EXPECT_EQ(atomics_per_op(
                [&](int n) {
                  for (int i = 0; i < n; ++i) add(a_, b_);
                },
                40),
            0);
  EXPECT_EQ(atomics_per_op(
                [&](int n) {
                  for (int i = 0; i < n; ++i) mul(a_, 2);
                },
                40),
            0);
  EXPECT_EQ(atomics_per_op(
                [&](int n) {
                  const NoGrad unrecorded;
                  for (int i = 0; i < n; ++i) add(leaf_, b_);
                },
                40),
            0);
}

TEST_F(Atomics, AreTwoInARecordedOp) {
  EXPECT_LE(atomics_per_op(
                [&](int n) {
                  for (int i = 0; i < n; ++i) add(leaf_, b_);
                },
                40),
            2);
}

TEST_F(Atomics, AreFiveAtMostInANodeOfAChainForwardAndBackward) {
  const auto chain = [&](int n, auto op) {
    Tensor y = leaf_;
    for (int i = 0; i < n; ++i) y = op(y);
    Tensor(leaf_).clear_grad();
    y.backward();
  };
  EXPECT_LE(atomics_per_op([&](int n) { chain(n, [&](const Tensor& y) { return add(y, b_); }); }, 40), 5);
  EXPECT_LE(atomics_per_op([&](int n) { chain(n, [&](const Tensor& y) { return mul(y, b_); }); }, 40), 5);
}

}  // namespace
}  // namespace plugrad
#else
TEST(Atomics, AreCountedInMachineCode) { GTEST_SKIP() << "the count reads x86-64 instructions, without a sanitizer's own"; }
#endif
