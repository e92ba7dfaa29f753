// The log: lines on stderr, or wherever the program wants them.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <functional>
#include <string_view>

namespace plugrad {

enum class LogLevel { debug, info, warning, error, off };

// Lines below this level are dropped. PLUGRAD_LOG=debug|info|warning|error|off sets it at the start. Default: warning.
PLUGRAD_API void set_log_level(LogLevel level);
PLUGRAD_API LogLevel log_level();
// Takes the lines from now on, from any thread; an empty function restores stderr.
PLUGRAD_API void set_log_sink(std::function<void(LogLevel, std::string_view)> sink);
PLUGRAD_API void log(LogLevel level, std::string_view line);

}  // namespace plugrad
