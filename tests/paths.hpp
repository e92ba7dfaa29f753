// The folders of plugins and fixtures. Functions return the paths, because macros would put them on the compiler's command
// lines, where they differ from clone to clone.
#pragma once
#include <string>

namespace plugrad::test {

// "DIRECTORY/file", in the directory of installed plugins, of the tests' own plugins, or of fixtures.
std::string plugin_path(const std::string& file = "");
std::string test_plugin_path(const std::string& file = "");
std::string fixture_path(const std::string& file = "");

}  // namespace plugrad::test
