// Where the build put plugins, and where fixtures lie. Functions keep the paths off the command lines of tests, because
// these paths differ from clone to clone.
#pragma once
#include <string>

namespace plugrad::test {

// "DIRECTORY/file", in the directory of installed plugins, of the tests' own plugins, or of fixtures.
std::string plugin_path(const std::string& file = "");
std::string test_plugin_path(const std::string& file = "");
std::string fixture_path(const std::string& file = "");

}  // namespace plugrad::test
