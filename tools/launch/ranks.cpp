#include <tools/launch/ranks.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace plugrad::tool {
namespace {
namespace fs = std::filesystem;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
constexpr milliseconds kLastGrace{2000};  // between SIGTERM and SIGKILL

// A folder in which the ranks meet; it goes with the object.
class Meeting {
 public:
  Meeting() {
    std::string pattern = fs::temp_directory_path() / "plugrad-launch-XXXXXX";
    if (!mkdtemp(pattern.data())) throw std::system_error(errno, std::generic_category(), pattern);
    path_ = pattern;
  }
  ~Meeting() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Meeting(const Meeting&) = delete;
  std::string store() const { return "file://" + path_.string(); }
  // The cause of the job's failure that a rank has found; "" if none has.
  std::string heard() const {
    std::error_code error;
    for (fs::recursive_directory_iterator each(path_, error), end; !error && each != end; each.increment(error)) {
      if (each->path().filename() != "failed" || each->path().parent_path() == path_) continue;
      std::string text;
      std::getline(std::ifstream(each->path()), text);
      return text;
    }
    return "";
  }
  // Tells the ranks why the job fails; the file appears whole.
  void tell(const std::string& cause) const {
    const fs::path whole = path_ / "failed.part";
    std::ofstream(whole) << cause;
    std::error_code ignored;
    fs::rename(whole, path_ / "failed", ignored);
  }

 private:
  fs::path path_;
};

// The signals that the launcher waits for; in its lifetime they only wait.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int each : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, each);
    sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~Signals() { restore(); }
  Signals(const Signals&) = delete;
  void restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  // Waits for a signal, at most this long. Returns its number, or 0.
  int wait(milliseconds most) const {
    const timespec time{most.count() / 1000, most.count() % 1000 * 1000000};
    const int number = sigtimedwait(&set_, nullptr, &time);
    return number > 0 ? number : 0;
  }

 private:
  sigset_t set_{}, before_{};
};

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

// The devices cpu of all ranks share the cores, unless the user says otherwise.
void share_cores(int count) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned each = std::max(1u, cores / static_cast<unsigned>(count));
  setenv("PLUGRAD_CPU_OPTIONS", ("threads=" + std::to_string(each)).c_str(), 0);
}

// Only the first rank reads the input, and not from a terminal, whose keys are the launcher's.
void choose_input(int rank) {
  if (rank == 0 && !isatty(STDIN_FILENO)) return;
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
}

class Ranks {
 public:
  Ranks(int count, milliseconds grace)
      : processes_(static_cast<size_t>(count)), stopped_(processes_.size()), grace_(grace) {}

  void start(const std::vector<std::string>& program) {
    share_cores(static_cast<int>(processes_.size()));
    for (size_t i = 0; i < processes_.size(); ++i) {
      const pid_t launcher = getpid();
      const pid_t process = fork();
      if (process < 0) {
        const int error = errno;
        end(SIGKILL);
        throw std::system_error(error, std::generic_category(), "starting rank " + std::to_string(i));
      }
      if (!process) become(program, static_cast<int>(i), launcher);
      setpgid(process, process);
      processes_[i] = process;
    }
  }

  int wait() {
    while (std::ranges::any_of(processes_, [](pid_t each) { return each > 0; })) {
      const int signal = signals_.wait(milliseconds(100));
      if (signal && signal != SIGCHLD) pass_on(signal);
      collect();
      if (deadline_ && Clock::now() > *deadline_) hurry();
    }
    return status_;
  }

 private:
  [[noreturn]] void become(const std::vector<std::string>& program, int rank, pid_t launcher) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(1);
    setpgid(0, 0);  // a signal of the terminal reaches the ranks once, by the launcher
    signals_.restore();
    choose_input(rank);
    set("RANK", std::to_string(rank));
    set("LOCAL_RANK", std::to_string(rank));
    set("WORLD_SIZE", std::to_string(processes_.size()));
    set("LOCAL_WORLD_SIZE", std::to_string(processes_.size()));
    set("PLUGRAD_STORE", meeting_.store());
    std::vector<char*> words;
    for (const std::string& each : program) words.push_back(const_cast<char*>(each.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    if (rank == 0) std::fprintf(stderr, "plugrad launch: %s: %s\n", words[0], std::strerror(errno));
    _exit(127);
  }

  void end(int signal) const {
    for (const pid_t each : processes_)
      if (each > 0) kill(-each, signal);
  }
  void give(milliseconds time) { deadline_ = Clock::now() + time; }

  // The second signal of a user ends the ranks at once.
  void pass_on(int signal) {
    end(asked_ ? SIGKILL : signal);
    if (!asked_) give(grace_);
    asked_ = true;
  }
  void hurry() {
    end(terminated_ ? SIGKILL : SIGTERM);
    terminated_ = true;
    give(kLastGrace);
  }
  void collect() {
    int status = 0;
    for (pid_t process = 0; (process = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
      const auto found = std::ranges::find(processes_, process);
      if (found == processes_.end()) continue;
      const auto rank = static_cast<size_t>(found - processes_.begin());
      stopped_[rank] = WIFSTOPPED(status);
      if (WIFSTOPPED(status) || WIFCONTINUED(status)) continue;
      kill(-process, SIGKILL);  // what the rank left running
      *found = 0;
      if (status) note(static_cast<int>(rank), process, status);
    }
    if (status_) end_stopped();
  }
  // A stopped process has no use for its time to end.
  void end_stopped() const {
    for (size_t i = 0; i < processes_.size(); ++i)
      if (processes_[i] > 0 && stopped_[i]) kill(-processes_[i], SIGKILL);
  }
  // The first failure is the cause of the others.
  void note(int rank, pid_t process, int status) {
    if (status_) return;
    const bool by_signal = WIFSIGNALED(status);
    status_ = by_signal ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    const std::string how = by_signal ? std::string("was ended by signal ") + std::to_string(WTERMSIG(status)) + " (" +
                                            strsignal(WTERMSIG(status)) + ")"
                                      : "ended with status " + std::to_string(status_);
    const std::string cause = "rank " + std::to_string(rank) + " (process " + std::to_string(process) + ") " + how;
    const std::string heard = meeting_.heard();
    if (heard.empty()) meeting_.tell(cause);
    const bool others = std::ranges::any_of(processes_, [](pid_t each) { return each > 0; });
    const std::string rest =
        others ? "; the others have " + std::to_string(grace_.count() / 1000) + " s to end" : std::string();
    const std::string why = heard.empty() ? "" : " after: " + heard;
    std::fprintf(stderr, "plugrad launch: %s%s%s\n", cause.c_str(), why.c_str(), rest.c_str());
    if (!deadline_) give(grace_);
  }

  Signals signals_;
  Meeting meeting_;
  std::vector<pid_t> processes_;  // 0: has ended
  std::vector<bool> stopped_;
  milliseconds grace_;
  std::optional<Clock::time_point> deadline_;
  int status_ = 0;
  bool asked_ = false, terminated_ = false;
};
}  // namespace

int run_ranks(const std::vector<std::string>& program, int count, milliseconds grace) {
  std::fflush(nullptr);
  Ranks ranks(count, grace);
  ranks.start(program);
  return ranks.wait();
}

}  // namespace plugrad::tool
