// The program plugrad as its users meet it: words in, a status and two streams out.
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
  int signal = 0;   // what ended it instead
  std::string out, err;
};

struct Setting {
  rlim_t file_size = RLIM_INFINITY;  // the longest file that it may write
  std::string standard_output = {};  // a file instead of what Outcome::out shows
};

// A process that runs. It is killed where the test ends before it does.
class Process {
 public:
  explicit Process(const std::vector<std::string>& words, const Setting& setting = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  // Waits until the condition holds; a failure of the test where the process ends or a minute passes first.
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

// Runs plugrad with these words to its end.
Outcome plugrad_run(const std::vector<std::string>& words, const Setting& setting = {});
// Runs `plugrad train` on a device that computes in its tests.
Outcome train(std::vector<std::string> words, const Setting& setting = {});

// That it ended with this status, said nothing on stdout, and one line on stderr that begins with "plugrad: ".
void expect_complaint(const Outcome& outcome, int status, const std::string& words);

}  // namespace plugrad::test
