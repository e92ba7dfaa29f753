#include <core/runtime/plugins/process_check.hpp>

#include <core/runtime/dispatch/op_table.hpp>
#include <core/runtime/observe/observer.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/log.hpp>

#include <string>
#include <string_view>

namespace plugrad::process_check {

void start() {
  static const bool started = [] {
    const char* text = platform::environment("PLUGRAD_CHECK");
    if (!text || !*text) return false;
    if (std::string_view(text) != "process")
      throw Error(Code::invalid, std::string("PLUGRAD_CHECK='") + text + "': process expected");
    on = true;
    observe::update();
    return true;
  }();
  static_cast<void>(started);
}

Run::~Run() {
  if (const std::string changed = before_.restore(); !changed.empty())
    log(LogLevel::warning, "[" + device_.name + "] the kernel of " + op_label(opcode_) + " changed " + changed +
                               " of the process, which the core put back");
}

}  // namespace plugrad::process_check
