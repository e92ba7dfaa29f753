#include <tests/tools/process.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

namespace plugrad::test {
namespace {

void redirect(const std::string& path, int descriptor) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || dup2(file, descriptor) < 0) _exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& words, const Setting& setting) {
  std::vector<std::string> all = {PLUGRAD_PROGRAM};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const std::string out = setting.standard_output.empty() ? scratch_.path("out") : setting.standard_output;
  const std::string err = scratch_.path("err");
  pid_ = fork();
  if (pid_ == 0) {
    redirect(out, STDOUT_FILENO);
    redirect(err, STDERR_FILENO);
    const rlimit limit{setting.file_size, setting.file_size};
    if (setting.file_size != RLIM_INFINITY) setrlimit(RLIMIT_FSIZE, &limit);
    // Tests use only the build tree's plugins, whatever their environment contains.
    if (setting.plugin_path.empty()) unsetenv("PLUGRAD_PLUGIN_PATH");
    else setenv("PLUGRAD_PLUGIN_PATH", setting.plugin_path.c_str(), 1);
    unsetenv("PLUGRAD_DISABLE");
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  EXPECT_GT(pid_, 0);
}

Process::~Process() {
  if (!running()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const { EXPECT_EQ(kill(pid_, number), 0); }

bool Process::running() {
  if (!ended_ && waitpid(pid_, &wait_status_, WNOHANG) != 0) ended_ = true;
  return !ended_;
}

void Process::wait_until(const std::function<bool()>& condition) {
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    ASSERT_TRUE(running()) << "it ended first, and said:\n" << err();
    ASSERT_LT(steady_clock::now(), deadline) << "it went on, and said:\n" << err();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Outcome Process::wait() {
  if (!ended_) waitpid(pid_, &wait_status_, 0);
  ended_ = true;
  Outcome outcome;
  if (WIFEXITED(wait_status_)) outcome.status = WEXITSTATUS(wait_status_);
  if (WIFSIGNALED(wait_status_)) outcome.signal = WTERMSIG(wait_status_);
  outcome.out = read_file(scratch_.path("out"));
  outcome.err = err();
  return outcome;
}

Outcome plugrad_run(const std::vector<std::string>& words, const Setting& setting) { return Process(words, setting).wait(); }

Outcome train(std::vector<std::string> words, const Setting& setting) {
  words.insert(words.begin(), "train");
  const bool resumed = std::ranges::find(words, "--resume") != words.end();
  const bool chosen = std::ranges::find(words, "--device") != words.end();
  if (!resumed && !chosen) words.insert(words.end(), {"--device", "reference"});
  return plugrad_run(words, setting);
}

void expect_complaint(const Outcome& outcome, int status, const std::string& words) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("plugrad: ")) << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  expect_mentions(outcome.err, words);
}

}  // namespace plugrad::test
