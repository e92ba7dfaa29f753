// Exit and fork with work in flight, in child processes.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <string>

namespace {

// Runs streams_child and returns its wait status. The thread sanitizer needs an option to permit threads after a fork.
int status_of_child(const std::string& mode) {
  const char* given = std::getenv("TSAN_OPTIONS");
  const std::string options = std::string(given ? given : "") + " die_after_fork=0";
  const pid_t child = fork();
  if (child == 0) {
    setenv("TSAN_OPTIONS", options.c_str(), 1);
    execl(PLUGRAD_STREAMS_CHILD, PLUGRAD_STREAMS_CHILD, mode.c_str(), nullptr);
    _exit(99);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

void expect_clean_end(const std::string& mode) {
  const int status = status_of_child(mode);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Process, LeavesAfterTheWorkInFlightIsDone) { expect_clean_end("work"); }
TEST(Process, FinishesBeforeADriverLeaves) {
  expect_clean_end("finished");
  const int status = status_of_child("unfinished");
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5) << status;
}
TEST(Process, LeavesWithAFailureThatNobodySaw) { expect_clean_end("failure"); }
TEST(Process, LeavesWhileOtherThreadsSubmit) { expect_clean_end("threads"); }
TEST(Process, ForksWithWorkInFlight) { expect_clean_end("fork"); }

}  // namespace
