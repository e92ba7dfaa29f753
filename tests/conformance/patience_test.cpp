// The time that a process has had: processor time while it wants a processor, all time while it waits.
#include <process/patience.hpp>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <csignal>
#include <thread>

namespace plugrad::test {
namespace {
using namespace std::chrono_literals;

ProcessMoment at(std::chrono::milliseconds time, std::chrono::milliseconds processor, bool wants_processor) {
  return {std::chrono::steady_clock::time_point(time), processor, wants_processor};
}

TEST(Patience, CountsTheProcessorTimeOfAStarvedProcessAndAllTimeOfAWaitingOne) {
  EXPECT_EQ(time_had(at(0ms, 10ms, true), at(1000ms, 30ms, true)), 20ms);
  EXPECT_EQ(time_had(at(0ms, 10ms, true), at(1000ms, 30ms, false)), 1000ms);
  EXPECT_EQ(time_had(at(0ms, 0ms, true), at(1000ms, 3500ms, true)), 1000ms) << "several threads";
}

// A child process for the duration of a test.
template <class Body> class Fork {
 public:
  explicit Fork(Body body) : process_(fork()) {
    if (process_) return;
    body();
    _exit(0);
  }
  ~Fork() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Fork(const Fork&) = delete;
  pid_t process() const { return process_; }

 private:
  pid_t process_;
};

TEST(Patience, EndsForALoopAndForASleeperAndReadsThreadsThatEnd) {
  const Fork loop([] {
    for (std::atomic<int> i{0};; i.fetch_add(1)) {
    }
  });
  const Fork sleeper([] {
    for (;;) pause();
  });
  for (const pid_t each : {loop.process(), sleeper.process()}) {
    Patience patience(each, 100ms);
    EXPECT_FALSE(patience.is_over());
    for (int i = 0; i < 6000 && !patience.is_over(); ++i) std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(patience.is_over());
  }

  const Fork threads_that_end([] {
    for (;;) std::jthread([] { std::atomic<int>{0}.fetch_add(1); });
  });
  EXPECT_NO_THROW({
    const auto end = std::chrono::steady_clock::now() + 300ms;
    while (std::chrono::steady_clock::now() < end) moment_of(threads_that_end.process());
  });
}

}  // namespace
}  // namespace plugrad::test
