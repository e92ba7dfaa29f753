// The half of plugrad-conform that never loads the plugin: it starts workers, gives them cases, and goes on after any
// failure of a worker.
#pragma once
#include <sdk/conformance/summary.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace plugrad::conformance {

struct Plan {
  std::vector<std::string> worker;     // the command that starts a worker
  std::vector<size_t> cases;           // numbers in all_cases
  std::chrono::seconds deadline{300};  // for a sign of life from a worker, see Patience
  std::chrono::seconds budget{0};      // afterwards no case begins; 0: none
  unsigned jobs = 1;
  bool verbose = false;   // prints the plugin's log
  bool progress = false;  // shows the finished cases on standard error
};

// Runs the cases of the plan. A worker that ends, crashes or hangs is a failure of its current case, and another worker
// goes on. whole: asks also for the missing ops of tier 0. Throws Unloadable for an unusable file, and Breach if the
// plugin's device cannot be opened.
Summary supervised(const Plan& plan, bool whole);
// Returns a worker's answer: to "kernels" the list of kernels, to "perf" the table of times. Throws as supervised does.
std::string answer_of(const Plan& plan, const std::string& question);

}  // namespace plugrad::conformance
