// The half of plugrad-conform that never loads the plugin: it starts workers, gives them cases, and goes on whatever
// happens to them.
#pragma once
#include <sdk/conformance/summary.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace plugrad::conformance {

struct Plan {
  std::vector<std::string> worker;     // the command that starts a worker
  std::vector<size_t> cases;           // numbers in all_cases
  std::chrono::seconds deadline{300};  // for a sign of life from a worker
  std::chrono::seconds budget{0};      // after which no case begins; 0: none
  unsigned jobs = 1;
  bool verbose = false;   // prints the plugin's log
  bool progress = false;  // shows on standard error what is being checked
};

// Runs the cases of the plan. A worker that ends, crashes or hangs is a failure of the case that it ran, and another one
// goes on. whole: asks also what tier 0 lacks. Throws Unloadable for a file that cannot be used, and Breach for a plugin
// whose device cannot be opened.
Summary supervised(const Plan& plan, bool whole);
// Returns what a worker answers: to "kernels" the list of kernels, to "perf" the table of times. Throws as supervised does.
std::string answer_of(const Plan& plan, const std::string& question);

}  // namespace plugrad::conformance
