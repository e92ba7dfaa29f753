#include <core/runtime/child.hpp>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace plugrad {
namespace {
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr size_t kMostErrors = 4 << 10, kMostRecords = 1 << 20;

void shut(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

// A pipe whose descriptors lie above those that the child uses.
bool open_pipe(std::array<int, 2>& ends) {
  std::array<int, 2> low{-1, -1};
  if (pipe2(low.data(), O_CLOEXEC)) return false;
  for (size_t i = 0; i < 2; ++i) {
    ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 10);
    close(low[i]);
  }
  return ends[0] >= 0 && ends[1] >= 0;
}

// What a program gets that must not be disturbed by the state of this one.
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
  if (process_ > 0) kill(-process_, SIGKILL);
  shut(records_);
  shut(errors_);
}

std::string Child::start(std::vector<std::string> words) {
  std::array<int, 2> records{-1, -1}, errors{-1, -1};
  const bool both = open_pipe(records) && open_pipe(errors);
  int failure = both ? 0 : errno;
  records_ = records[0];
  errors_ = errors[0];
  if (both) {
    Setting setting;
    posix_spawn_file_actions_addopen(&setting.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&setting.files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&setting.files, errors[1], STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&setting.files, records[1], kPipe);
    posix_spawn_file_actions_addclosefrom_np(&setting.files, kPipe + 1);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    failure = posix_spawn(&process_, arguments[0], &setting.files, &setting.attributes, arguments.data(), environ);
  }
  shut(records[1]);
  shut(errors[1]);
  if (failure) process_ = 0;
  return failure ? std::strerror(failure) : "";
}

bool Child::drain(int& descriptor, std::string& to, size_t most) {
  char bytes[4096];
  const ssize_t got = read(descriptor, bytes, sizeof bytes);
  if (got > 0) to.append(bytes, std::min(static_cast<size_t>(got), most - std::min(most, to.size())));
  if (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN))) return true;
  shut(descriptor);
  return false;
}

bool Child::ended(Ending& ending) {
  int status = 0;
  const pid_t got = waitpid(process_, &status, WNOHANG);
  if (got == process_) ending.status = status;
  return got == process_ || (got < 0 && errno == ECHILD);
}

Child::Ending Child::run(std::chrono::seconds limit, size_t record_bytes, const std::function<void(const char*)>& record) {
  Ending ending;
  std::string received;
  const Clock::time_point end = Clock::now() + limit;
  // The pipes close when the child ends, unless a child of its own keeps them: so we also ask from time to time.
  for (bool over = false; !over;) {
    std::array<pollfd, 2> ready{pollfd{records_, POLLIN, 0}, pollfd{errors_, POLLIN, 0}};
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    const bool open = records_ >= 0 || errors_ >= 0;
    poll(ready.data(), ready.size(), static_cast<int>(std::clamp<int64_t>(left.count(), 0, open ? 50 : 1)));
    const bool quiet = !ready[0].revents && !ready[1].revents;
    if (ready[0].revents) drain(records_, received, kMostRecords);
    if (ready[1].revents) drain(errors_, ending.errors, kMostErrors);
    if (quiet || (records_ < 0 && errors_ < 0)) over = ended(ending);
    ending.timed_out = !over && Clock::now() >= end;
    over |= ending.timed_out;
  }
  if (ending.timed_out) {
    kill(-process_, SIGKILL);
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
  } else {
    kill(-process_, SIGKILL);  // children that it left behind
  }
  process_ = 0;
  for (size_t at = 0; at + record_bytes <= received.size(); at += record_bytes) record(received.data() + at);
  return ending;
}

}  // namespace plugrad
