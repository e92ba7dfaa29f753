// Child processes for code that may harm its process.
#pragma once
#include <sys/types.h>
#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace plugrad {

// A program with pipes to this process, in a process group of its own, with all signals at their defaults and no other
// descriptor of ours. The destructor kills the whole process group. Not thread-safe.
class Child {
 public:
  static constexpr int kRecords = 3;  // the descriptor at which the child finds the pipe for its records
  enum class Input { none, pipe };
  enum class Stream { records, output, errors };  // of the child's output: records, stdout, stderr

  Child() = default;
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Starts a program; its first word is a path. Returns why it cannot, or "".
  std::string start(std::vector<std::string> words, Input input = Input::none);
  // Writes to the child's standard input. Returns false if it no longer reads.
  bool write(const std::string& bytes);
  // Waits until the child has written something or closed a stream, and at most this long. Appends the available bytes to
  // each stream's text.
  void read(std::chrono::milliseconds most, std::array<std::string, 3>& texts);
  void close_input();
  // Whether a stream is open; a child's own children may keep it open after the child has ended.
  bool is_open(Stream stream) const { return ends_[static_cast<size_t>(stream)] >= 0; }
  // Returns whether the child has ended. Then status is as waitpid stores it, or empty if the program collects its
  // children itself.
  bool ended(std::optional<int>& status);
  // Kills the child's process group.
  void stop();
  pid_t process() const { return process_; }

 private:
  pid_t process_ = 0;
  int input_ = -1;
  std::array<int, 3> ends_{-1, -1, -1};
};

// "crashed with SIGSEGV", "ended the process with status 3".
std::string text_of_ending(std::optional<int> status);

}  // namespace plugrad
