// Parses the options of the program and its commands, and prints help; a mistake gets one line.
#pragma once
#include <boost/program_options.hpp>

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

// What --help prints for a command.
struct Usage {
  std::string line;  // "plugrad devices [--json]"
  std::string summary;
  std::string examples;  // indented lines
};

// Returns the command's own options, with --json and --help, which every command has.
boost::program_options::options_description with_common(const boost::program_options::options_description& own);
// Throws UsageError, with the closest match for an unknown option.
boost::program_options::variables_map parse_options(const std::string& command, const Arguments& arguments,
                                                    const boost::program_options::options_description& options);
void print_help(const Usage& usage, const boost::program_options::options_description& options);

// "; did you mean '--device'?" where one of the names is close to the word, else "".
std::string suggestion(std::string_view word, const std::vector<std::string>& names);
// A text on one line: line breaks become "; ".
std::string one_line(std::string_view text);

}  // namespace plugrad::tool
