// Remembers the running check, so that the program can name it if the plugin crashes.
#pragma once
#include <string>

namespace plugrad::conformance {

// Stores the name of the check that starts now. One thread at a time.
void note_running(const std::string& what);
// From now on, a signal that would end the process silently first prints a line that names the running check, and ends the
// process with status 1. Sanitizers keep their own reports.
void report_crashes();

}  // namespace plugrad::conformance
