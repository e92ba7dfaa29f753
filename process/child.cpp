#include <process/child.hpp>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace plugrad {
namespace {
constexpr size_t kMostText = 64 << 20;  // of a stream; the rest is dropped

void shut(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

// A pipe with descriptors above the child's.
class Pipe {
 public:
  Pipe() {
    std::array<int, 2> low{-1, -1};
    if (pipe2(low.data(), O_CLOEXEC)) return;
    for (size_t i = 0; i < 2; ++i) {
      ends_[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 10);
      close(low[i]);
    }
  }
  ~Pipe() {
    shut(ends_[0]);
    shut(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool is_open() const { return ends_[0] >= 0 && ends_[1] >= 0; }
  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  // Gives an end away.
  int take(int end) { return std::exchange(ends_[static_cast<size_t>(end)], -1); }

 private:
  std::array<int, 2> ends_{-1, -1};
};

// The child's files and attributes, independent of this process's state.
class Setting {
 public:
  Setting() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~Setting() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};
}  // namespace

Child::~Child() {
  stop();
  shut(input_);
  for (int& end : ends_) shut(end);
}

std::string Child::start(std::vector<std::string> words, Input input) {
  Pipe in, records, output, errors;
  const bool open = in.is_open() && records.is_open() && output.is_open() && errors.is_open();
  if (!open) return std::strerror(errno);
  Setting setting;
  if (input == Input::pipe) posix_spawn_file_actions_adddup2(&setting.files, in.reading(), STDIN_FILENO);
  else posix_spawn_file_actions_addopen(&setting.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&setting.files, output.writing(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&setting.files, errors.writing(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&setting.files, records.writing(), kRecords);
  posix_spawn_file_actions_addclosefrom_np(&setting.files, kRecords + 1);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t started = 0;
  const int failure = posix_spawn(&started, arguments[0], &setting.files, &setting.attributes, arguments.data(), environ);
  if (failure) return std::strerror(failure);
  process_ = started;
  input_ = in.take(1);
  ends_ = {records.take(0), output.take(0), errors.take(0)};
  return "";
}

// After the child has ended, a write must not end this process by SIGPIPE. The program's handler of SIGPIPE stays as it is.
bool Child::write(const std::string& bytes) {
  sigset_t pipe, before, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const bool whole = ::write(input_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  sigpending(&pending);
  const timespec none{};
  if (!whole && sigismember(&pending, SIGPIPE) && !sigismember(&before, SIGPIPE)) sigtimedwait(&pipe, nullptr, &none);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return whole;
}

void Child::close_input() { shut(input_); }

void Child::read(std::chrono::milliseconds most, std::array<std::string, 3>& texts) {
  std::array<pollfd, 3> ready;
  for (size_t i = 0; i < ready.size(); ++i) ready[i] = {ends_[i], POLLIN, 0};
  poll(ready.data(), ready.size(), static_cast<int>(std::max<int64_t>(most.count(), 0)));
  for (size_t i = 0; i < ready.size(); ++i) {
    if (!ready[i].revents) continue;
    char bytes[1 << 16];
    const ssize_t got = ::read(ends_[i], bytes, sizeof bytes);
    if (got > 0)
      texts[i].append(bytes, std::min(static_cast<size_t>(got), kMostText - std::min(kMostText, texts[i].size())));
    else if (got == 0 || (errno != EINTR && errno != EAGAIN)) shut(ends_[i]);
  }
}

bool Child::ended(std::optional<int>& status) {
  if (process_ <= 0) return true;
  int word = 0;
  const pid_t got = waitpid(process_, &word, WNOHANG);
  if (got == process_) status = word;
  const bool over = got == process_ || (got < 0 && errno == ECHILD);
  if (over) {
    kill(-process_, SIGKILL);  // its remaining children
    process_ = 0;
  }
  return over;
}

void Child::stop() {
  if (process_ <= 0) return;
  kill(-process_, SIGKILL);
  int word = 0;
  while (waitpid(process_, &word, 0) < 0 && errno == EINTR) {
  }
  process_ = 0;
}

std::string text_of_ending(std::optional<int> status) {
  if (!status) return "ended the process";
  if (WIFEXITED(*status)) return "ended the process with status " + std::to_string(WEXITSTATUS(*status));
  const char* name = sigabbrev_np(WTERMSIG(*status));
  return "crashed with " + (name ? "SIG" + std::string(name) : "signal " + std::to_string(WTERMSIG(*status)));
}

}  // namespace plugrad
