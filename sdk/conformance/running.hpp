// The current check, to name it when the plugin crashes or hangs.
#pragma once
#include <functional>
#include <string>

namespace plugrad::conformance {

// Notes the start of a check. One thread at a time.
void note_running(const std::string& what);
// Sets the function that note_running calls; an empty function ends the calls.
void on_running(std::function<void(const std::string&)> listener);

}  // namespace plugrad::conformance
