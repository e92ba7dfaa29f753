// Plugins that were built against earlier contracts: a core with a matching contract computes with them, and every other
// core refuses them, names the contract as the reason, and keeps its other backends. kept/keep.sh made the files:
// NAME-LAYOUT-MACHINE.so.
#include <tests/runtime/prefix.hpp>

#include <plugrad/sdk/abi.h>
#include <tests/paths.hpp>

#include <gtest/gtest.h>

#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>

namespace plugrad::test {
namespace {
namespace fs = std::filesystem;
using Line = std::vector<std::string>;

std::string machine() {
  utsname names{};
  uname(&names);
  return names.machine;
}

// The files for this machine.
std::vector<fs::path> kept() {
  std::vector<fs::path> files;
  for (const auto& each : fs::directory_iterator(PLUGRAD_KEPT))
    if (each.path().filename().string().ends_with("-" + machine() + ".so")) files.push_back(each.path());
  std::ranges::sort(files);
  return files;
}

std::string hexadecimal(uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

TEST(Kept, PluginsComputeOrAreRefusedForTheirLayout) {
  const std::vector<fs::path> files = kept();
  if (files.empty()) GTEST_SKIP() << "no plugin was kept for " << machine();
  const std::string today = hexadecimal(plugrad_layouts[PLUGRAD_REVISION]);
  size_t agreed = 0;
  for (const fs::path& file : files) {
    SCOPED_TRACE(file);
    const std::string name = file.filename().string().substr(0, file.filename().string().find('-'));
    const bool agrees = file.filename().string().find("-" + today + "-") != std::string::npos;
    agreed += agrees;
    const Prefix prefix;
    add_plugin(test::plugin_path("libplugrad-backend-reference.so"), prefix.plugins(), "reference");
    const fs::path copy = add_plugin(file, prefix.plugins(), name);
    const Outcome outcome = prefix.probe({"records", "-", "compute", "reference", "compute", name});
    EXPECT_EQ(outcome.all("value").size(), agrees ? 2u : 1u);
    for (const Line& value : outcome.all("value")) EXPECT_EQ(value.at(1), "3.500000");
    for (const Line& record : outcome.all("record"))
      if (record.at(1) == copy) {
        EXPECT_EQ(record.at(2), agrees ? "ready" : "symbol found");
        EXPECT_EQ(record.at(3).find("laid out differently") != std::string::npos, !agrees) << record.at(3);
      }
  }
  EXPECT_GE(agreed, 2u) << "today's contract is not kept: run tests/runtime/kept/keep.sh";
}

}  // namespace
}  // namespace plugrad::test
