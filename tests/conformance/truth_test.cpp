// plugrad-conform finds plugins that lie about time, sizes and the process, and only these plugins.
#include <tests/conformance/program.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const std::string kPlugin = std::string(PLUGRAD_FAULTY) + "/libplugrad-backend-faulty-time.so";

Said with_lie(const std::string& bug, const std::string& only) {
  return run_program({"env", "PLUGRAD_BUG=" + bug, PLUGRAD_CONFORM, "--only", only, kPlugin});
}

struct Lie {
  const char *bug, *only, *line;
};
void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.bug; }

class PlantedLie : public testing::TestWithParam<Lie> {};

TEST_P(PlantedLie, IsFound) {
  const Said said = with_lie(GetParam().bug, GetParam().only);
  EXPECT_EQ(said.status, 1) << said.text;
  EXPECT_NE(said.text.find(GetParam().line), std::string::npos) << "expected: " << GetParam().line << "\n" << said.text;
}

INSTANTIATE_TEST_SUITE_P(
    Conform, PlantedLie,
    testing::Values(
        Lie{"done_early", "stream.done", "completed must not be ahead of the work"},
        Lie{"run_waits", "stream.run_returns", "run submits and does not wait for the device"},
        Lie{"wait_waits", "stream.wait_returns", "the stream waits, not the host"},
        Lie{"float_index", "scale.elements", "indices need more than 24 bits"},
        Lie{"grid_limit", "scale.batches", "MATMUL f32,f32,f32 [70000 batches]"},
        Lie{"narrow_index", "scale.wide", "decline WIDE_INDEX or use 64-bit offsets"},
        Lie{"shared_arguments", "thread.dense", "has the value of another call"},
        Lie{"index_crash", "failure.indices", "SIGSEGV in failure.indices GATHER f32,f32,i64 [index of the extent]"},
        Lie{"crash_at_exit", "contract.table", "SIGSEGV in exit with work in flight"},
        Lie{"signal_at_loading", "contract.table", "loading, count and open: the plugin changed the handler of SIG"},
        Lie{"signal_in_count", "contract.table", "loading, count and open: the plugin changed the handler of SIG"},
        Lie{"signal_in_open", "contract.table", "loading, count and open: the plugin changed the handler of SIG"}),
    [](const auto& row) { return std::string(row.param.bug); });

TEST(Conform, AcceptsSignalHandlersThatAPluginDeclares) {
  const Said said = with_lie("declared_signals", "contract.table");
  EXPECT_EQ(said.status, 0) << said.text;
}

TEST(Core, WarnsOfSignalHandlersThatAPluginDoesNotDeclare) {
  const fs::path folder = fs::temp_directory_path() / ("plugrad-handlers-" + std::to_string(getpid()));
  fs::create_directories(folder);
  fs::copy_file(kPlugin, folder / fs::path(kPlugin).filename());
  for (const auto& [bug, warns] : {std::pair("signal_in_count", true), std::pair("declared_signals", false)}) {
    const Said said = run_program({"env", std::string("PLUGRAD_BUG=") + bug, "PLUGRAD_PLUGIN_PATH=" + folder.string(),
                                   PLUGRAD_CLI, "backends", "--verbose"});
    EXPECT_NE(said.text.find("libplugrad-backend-faulty-time.so"), std::string::npos) << said.text;
    EXPECT_EQ(said.text.find("changed the handler of SIGUSR1") != std::string::npos, warns) << said.text;
  }
  fs::remove_all(folder);
}

TEST(Conform, FindsNoLieInATruePlugin) {
  const Said said = with_lie("none", "stream.,scale.,thread.dense,contract.table");
  EXPECT_EQ(said.status, 0) << said.text;
}

}  // namespace
