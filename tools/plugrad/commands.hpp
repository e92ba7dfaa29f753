// The commands of the program. Each takes the words after its name and returns the exit status.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::tool {

// A mistake in the command line, described in one line. The program ends with status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Arguments = std::vector<std::string>;

// The output of --help for a command.
struct Usage {
  std::string line;  // "plugrad devices [--json]"
  std::string summary;
  std::string examples;  // indented lines
};

// "; did you mean '--device'?" if any of the names is close to the word, else "".
std::string suggestion(std::string_view word, const std::vector<std::string>& names);
// A text on one line: line breaks become "; ".
std::string one_line(std::string_view text);

int backends_command(const Arguments& arguments);
int devices_command(const Arguments& arguments);
int train_command(const Arguments& arguments);
int eval_command(const Arguments& arguments);
int run_command(const Arguments& arguments);
int export_command(const Arguments& arguments);
int launch_command(const Arguments& arguments);
int trial_command(const Arguments& arguments);
int advise_command(const Arguments& arguments);
int new_plugin_command(const Arguments& arguments);

}  // namespace plugrad::tool
