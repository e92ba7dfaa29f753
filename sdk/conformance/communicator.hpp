// Checks of a communicator's file: several processes, each a rank, call its table as a core does.
#pragma once
#include <sdk/conformance/device.hpp>
#include <sdk/conformance/summary.hpp>

#include <string>
#include <vector>

namespace plugrad::conformance {

// Whether a path names the file of a communicator.
bool is_communicator(const std::string& path);

struct CommunicatorPlan {
  std::string file;
  OptionList options;             // of the communicator
  std::string launcher;           // "mpirun -n 3", for engines with a launcher of their own; else empty
  std::vector<std::string> only;  // checks; empty: all
};
// The names of the checks.
std::vector<std::string> communicator_checks();
// Runs the checks, each in new processes. Throws Unloadable for a file that is no communicator.
Summary check_communicator(const CommunicatorPlan& plan);
// One rank of a check, in a process that check_communicator has started. Returns the exit status.
int run_rank(const std::string& check, const std::string& file, const OptionList& options);

}  // namespace plugrad::conformance
