// Where tests find what the build made. Functions, not definitions on the command line: a path in there would keep a cache
// of the compiler from serving a second clone.
#pragma once
#include <string>

namespace plugrad::test {

// "DIRECTORY/file": the directory of the plugins that are installed, of those that only tests use, and of fixtures.
std::string plugin_path(const std::string& file = "");
std::string test_plugin_path(const std::string& file = "");
std::string fixture_path(const std::string& file = "");

}  // namespace plugrad::test
