// The check that runs, for whoever has to name it when the plugin crashes or hangs.
#pragma once
#include <functional>
#include <string>

namespace plugrad::conformance {

// Says that a check starts now. One thread at a time.
void note_running(const std::string& what);
// Sets the function that note_running calls; an empty one ends that.
void on_running(std::function<void(const std::string&)> listener);

}  // namespace plugrad::conformance
