// Runs the program plugrad as users do, with arguments, and returns its status and both output streams.
#pragma once
#include <tests/io/scratch.hpp>

#include <sys/resource.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace plugrad::test {

struct Outcome {
  int status = -1;  // the exit status
  int signal = 0;   // the signal that ended it, or 0
  std::string out, err;
};

struct Setting {
  rlim_t file_size = RLIM_INFINITY;  // the largest file that the process may write
  std::string standard_output = {};  // the file that receives standard output instead of Outcome::out
  std::string plugin_path = {};      // PLUGRAD_PLUGIN_PATH, unless empty
};

// A running process. The destructor kills it.
class Process {
 public:
  explicit Process(const std::vector<std::string>& words, const Setting& setting = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  pid_t id() const { return pid_; }
  // Waits until the condition holds. Fails the test if the process ends or a minute passes before the condition holds.
  void wait_until(const std::function<bool()>& condition);
  bool running();
  Outcome wait();
  std::string err() const { return read_file(scratch_.path("err")); }

 private:
  Scratch scratch_;
  pid_t pid_ = -1;
  bool ended_ = false;
  int wait_status_ = 0;
};

// Runs plugrad with these words and waits for its end.
Outcome plugrad_run(const std::vector<std::string>& words, const Setting& setting = {});
// Runs `plugrad train` on the reference device, unless the words name another one.
Outcome train(std::vector<std::string> words, const Setting& setting = {});

// Expects this status, nothing on stdout, and one line on stderr that begins with "plugrad: " and contains the words.
void expect_complaint(const Outcome& outcome, int status, const std::string& words);

}  // namespace plugrad::test
