#include <plugrad/training/progress.hpp>

#include <plugrad/runtime/numbers.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace plugrad {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr const char* kClear = "\x1b[K";  // clears the rest of the terminal's line

}  // namespace

Progress::Progress(int64_t total, std::string label, bool enabled)
    : total_(std::max<int64_t>(total, 1)), label_(std::move(label)), open_(enabled), live_(enabled && isatty(STDERR_FILENO)),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  try {
    close();
  } catch (const std::exception&) {  // the text's own reads may have failed
    text_ = {};
    close();
  }
}

std::string Progress::line() const {
  constexpr int64_t kWidth = 30;
  const auto full = static_cast<size_t>(kWidth * std::min(done_, total_) / total_);
  const std::string text = text_ ? text_() : "";
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const std::string numbers =
      "] " + std::to_string(done_) + "/" + std::to_string(total_) + " " + fixed_text(seconds, 1) + " s";
  return label_ + (label_.empty() ? "[" : " [") + std::string(full, '=') + std::string(kWidth - full, ' ') + numbers +
         (text.empty() ? "" : " ") + text;
}

void Progress::print(const char* before, const char* after) {
  std::fprintf(stderr, "%s%s%s", before, line().c_str(), after);
  std::fflush(stderr);
}

void Progress::update(std::function<std::string()> text) {
  ++done_;
  text_ = std::move(text);
  const auto now = std::chrono::steady_clock::now();
  if (!live_ || (now - drawn_ < kInterval && done_ < total_)) return;
  drawn_ = now;
  print("\r", kClear);
}

void Progress::close() {
  if (!open_) return;
  print(live_ ? "\r" : "", live_ ? "\x1b[K\n" : "\n");
  open_ = live_ = false;
}

}  // namespace plugrad
