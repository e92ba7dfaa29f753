#include <tools/plugrad/progress.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace plugrad::tool {
namespace {

size_t terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

template <class... Arguments> std::string print(const char* format, Arguments... arguments) {
  char text[256];
  std::snprintf(text, sizeof text, format, arguments...);
  return text;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<long>(std::max(0.0, seconds) + 0.5);
  if (whole >= 3600) return print("%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  return print("%ld:%02ld", whole / 60, whole % 60);
}

}  // namespace

Progress::Progress(const training::Trainer& trainer, int64_t last_step, bool shown)
    : trainer_(trainer), first_step_(trainer.step()), last_step_(last_step), first_sample_(trainer.samples_seen()),
      epochs_printed_(trainer.history().evaluations.size()), terminal_(isatty(STDERR_FILENO)), shown_(shown),
      start_(std::chrono::steady_clock::now()) {}

double Progress::seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

double Progress::samples_per_second() const {
  return static_cast<double>(trainer_.samples_seen() - first_sample_) / std::max(seconds(), 1e-9);
}

std::string Progress::epoch_line() const {
  const training::Evaluation& last = trainer_.history().evaluations.back();
  const double left = seconds() * static_cast<double>(last_step_ - trainer_.step()) /
                      static_cast<double>(std::max<int64_t>(1, trainer_.step() - first_step_));
  return print("epoch %ld/%ld  loss %.4f  %s loss %.4f  accuracy %.2f%%  %.0f images/s  %s left",
               static_cast<long>(trainer_.epoch()), static_cast<long>(trainer_.config().epochs),
               training::recent_loss(trainer_.history()), trainer_.has_test() ? "test" : "training", last.loss,
               100 * last.accuracy, samples_per_second(), clock_text(left).c_str());
}

std::string Progress::bar_line(size_t columns) const {
  const double part = static_cast<double>(trainer_.step()) / static_cast<double>(std::max<int64_t>(1, last_step_));
  const double rate = seconds() / static_cast<double>(std::max<int64_t>(1, trainer_.step() - first_step_));
  const double left = rate * static_cast<double>(last_step_ - trainer_.step());
  const auto& evaluations = trainer_.history().evaluations;
  const std::string accuracy = evaluations.empty() ? "" : print(", accuracy %.1f%%", 100 * evaluations.back().accuracy);
  const long epochs = static_cast<long>(trainer_.config().epochs);
  const std::string before = print("epoch %ld/%ld [", std::min(static_cast<long>(trainer_.epoch()) + 1, epochs), epochs);
  const std::string after = print("] %.0f%% loss %.3f", 100 * part, training::recent_loss(trainer_.history())) + accuracy +
                            print(", %.0f images/s, %s left", samples_per_second(), clock_text(left).c_str());
  // The remaining columns. A line as wide as the terminal would wrap.
  const size_t text = before.size() + after.size() + 1;
  const size_t cells = std::clamp<size_t>(columns > text ? columns - text : 0, 4, 32);
  const auto full = static_cast<size_t>(part * static_cast<double>(cells));
  return (before + std::string(full, '#') + std::string(cells - full, '.') + after).substr(0, columns - 1);
}

void Progress::update() {
  if (!shown_) return;
  if (trainer_.history().evaluations.size() > epochs_printed_) {
    epochs_printed_ = trainer_.history().evaluations.size();
    // If an epoch takes milliseconds, as with moons, not every epoch gets a line.
    const int64_t every = std::max<int64_t>(1, trainer_.config().epochs / 20);
    if (trainer_.epoch() % every == 0 || trainer_.step() == last_step_) {
      clear();
      std::fprintf(stderr, "%s\n", epoch_line().c_str());
    }
  }
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || (drawn_ && now - last_drawn_ < std::chrono::milliseconds(100))) return;
  last_drawn_ = now;
  drawn_ = true;
  std::fprintf(stderr, "\r%s\x1b[K", bar_line(terminal_columns()).c_str());
  std::fflush(stderr);
}

void Progress::clear() {
  if (!std::exchange(drawn_, false)) return;
  std::fprintf(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace plugrad::tool
