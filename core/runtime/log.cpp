#include <plugrad/runtime/log.hpp>

#include <core/runtime/dispatch/printable.hpp>
#include <core/runtime/fork.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <plugrad/runtime/error.hpp>

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

namespace plugrad {
namespace {
constexpr size_t kLongestLine = 10'000;
constexpr const char* kLevels[] = {"debug", "info", "warning", "error", "off"};

LogLevel initial_level() {
  const char* text = platform::environment("PLUGRAD_LOG");
  for (int i = 0; text && i < 5; ++i)
    if (std::string_view(text) == kLevels[i]) return static_cast<LogLevel>(i);
  if (text) std::fprintf(stderr, "plugrad: PLUGRAD_LOG='%s': expected debug, info, warning, error or off\n", text);
  return LogLevel::warning;
}

struct Log {
  std::atomic<LogLevel> level{initial_level()};
  std::shared_ptr<const std::function<void(LogLevel, std::string_view)>> sink;
};
Log& state() {
  static Log& l = *new Log;
  return l;
}
}  // namespace

std::mutex& log_mutex() {
  static std::mutex& m = *new std::mutex;
  return m;
}

void set_log_level(LogLevel level) { state().level = level; }
LogLevel log_level() { return state().level; }

void set_log_sink(std::function<void(LogLevel, std::string_view)> sink) {
  const std::lock_guard lock(log_mutex());
  state().sink = sink ? std::make_shared<const std::function<void(LogLevel, std::string_view)>>(std::move(sink)) : nullptr;
}

void log(LogLevel level, std::string_view line) {
  Log& l = state();
  if (level < l.level || level >= LogLevel::off) return;
  std::shared_ptr<const std::function<void(LogLevel, std::string_view)>> sink;
  {
    const std::lock_guard lock(log_mutex());
    sink = l.sink;
  }
  if (sink) (*sink)(level, line);
  else std::fprintf(stderr, "plugrad %s: %s\n", kLevels[static_cast<int>(level)], printable(line, kLongestLine).c_str());
}

}  // namespace plugrad
