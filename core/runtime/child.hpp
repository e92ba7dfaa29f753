// A child process with a deadline, which sends records through a pipe.
#pragma once
#include <sys/types.h>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace plugrad {

class Child {
 public:
  static constexpr int kPipe = 3;  // the descriptor at which the child finds its end of the pipe

  struct Ending {
    bool timed_out = false;
    std::optional<int> status;  // as waitpid stores it; nothing if the program ignores or collects its children itself
    std::string errors;         // the first bytes of its stderr
  };

  Child() = default;
  ~Child();  // kills it and its own children
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Starts a program in a process group of its own, with no input and output, and all signals at their defaults. Returns why
  // it cannot, or "".
  std::string start(std::vector<std::string> words);
  // Waits until the child ends, and at most for limit; then kills it. Calls `record` for each run of that many bytes.
  Ending run(std::chrono::seconds limit, size_t record_bytes, const std::function<void(const char*)>& record);

 private:
  // Reads what is there. Returns false at the end of the stream.
  bool drain(int& descriptor, std::string& to, size_t most);
  bool ended(Ending& ending);  // whether the child has ended

  pid_t process_ = 0;
  int records_ = -1, errors_ = -1;
};

}  // namespace plugrad
