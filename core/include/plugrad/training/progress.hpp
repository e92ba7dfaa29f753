// A progress bar on stderr.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace plugrad {

// Draws a bar on a terminal, at most ten times a second. Elsewhere it prints one line at the end, so that logs stay short.
class PLUGRAD_API Progress {
 public:
  // total: the number of steps. A disabled bar prints nothing.
  explicit Progress(int64_t total, std::string label = {}, bool enabled = true);
  ~Progress();  // closes the bar; if the text fails, prints the line without it
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Advances by one step. Calls `text`, for the text behind the bar, only when it draws.
  void update(std::function<std::string()> text = {});
  // Prints the last line. Later calls do nothing.
  void close();
  // Returns the drawn line: "label [===== ] 3/6 0.2 s text".
  std::string line() const;

 private:
  void print(const char* before, const char* after);

  int64_t total_, done_ = 0;
  std::string label_;
  std::function<std::string()> text_;
  bool open_, live_;
  std::chrono::steady_clock::time_point start_, drawn_;
};

}  // namespace plugrad
