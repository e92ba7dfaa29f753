// The log, written to stderr or to the program's own sink.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <functional>
#include <string_view>

namespace plugrad {

enum class LogLevel { debug, info, warning, error, off };

// Lines below this level are dropped. PLUGRAD_LOG=debug|info|warning|error|off sets the initial level. Default: warning.
PLUGRAD_API void set_log_level(LogLevel level);
PLUGRAD_API LogLevel log_level();
// Sets the receiver of later lines; it runs on the thread of each logging call. An empty function restores stderr.
PLUGRAD_API void set_log_sink(std::function<void(LogLevel, std::string_view)> sink);
PLUGRAD_API void log(LogLevel level, std::string_view line);

}  // namespace plugrad
