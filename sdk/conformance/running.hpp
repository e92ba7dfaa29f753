// What runs now, for the last words of a program that a plugin brings down.
#pragma once
#include <string>

namespace plugrad::conformance {

// Notes what is checked from here on. One thread at a time.
void note_running(const std::string& what);
// From here on a signal that would end the process silently writes a line that names what ran, and ends it with status 1.
// Sanitizers keep their own reports.
void report_crashes();

}  // namespace plugrad::conformance
