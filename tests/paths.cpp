#include <tests/paths.hpp>

namespace plugrad::test {
namespace {
std::string below(const char* directory, const std::string& file) {
  return file.empty() ? directory : std::string(directory) + "/" + file;
}
}  // namespace

std::string plugin_path(const std::string& file) { return below(PLUGRAD_PLUGINS, file); }
std::string test_plugin_path(const std::string& file) { return below(PLUGRAD_TEST_PLUGINS, file); }
std::string fixture_path(const std::string& file) { return below(PLUGRAD_FIXTURES, file); }

}  // namespace plugrad::test
