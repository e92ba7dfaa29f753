// Parses the options of the program and its commands with Boost.Program_options, and prints help.
#pragma once
#include <tools/plugrad/commands.hpp>

#include <boost/program_options.hpp>

#include <string>

namespace plugrad::tool {

// Returns the command's own options, with --json and --help, which every command has.
boost::program_options::options_description with_common(const boost::program_options::options_description& own);
// Throws UsageError, with the closest match for an unknown option.
boost::program_options::variables_map parse_options(const std::string& command, const Arguments& arguments,
                                                    const boost::program_options::options_description& options);
void print_help(const Usage& usage, const boost::program_options::options_description& options);

}  // namespace plugrad::tool
