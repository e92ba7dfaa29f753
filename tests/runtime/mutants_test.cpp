// Damaged copies of plugins: the program continues and uses the healthy plugin in the same folder, whichever bytes are
// wrong. PLUGRAD_MUTANTS is the number of copies; 300 by default.
#include <sdk/conformance/sanitizer.hpp>
#include <tests/paths.hpp>
#include <tests/runtime/mutated.hpp>
#include <tests/runtime/prefix.hpp>

#include <gtest/gtest.h>
#include <cstdlib>

namespace plugrad::test {
namespace {

// A copy whose code is damaged may access wrong memory and continue. The core cannot detect that, but a sanitizer ends the
// program: five of 5000 copies caused this under the address sanitizer.
TEST(Mutants, HarmNobody) {
  if (conformance::kSanitized) GTEST_SKIP() << "sanitizers end the program at what a damaged plugin's own code does";
  const char* wanted = std::getenv("PLUGRAD_MUTANTS");
  const int count = wanted ? std::atoi(wanted) : 300;
  const std::string originals[] = {read_file(variant("tiny")), read_file(variant("hostile"))};
  const Prefix prefix;
  add_plugin(test::plugin_path("libplugrad-backend-reference.so"), prefix.plugins(), "reference");
  const std::filesystem::path file = prefix.plugins() / "libplugrad-backend-a.so";
  std::mt19937_64 random(20261123);
  int loaded = 0, faults = 0;
  for (int i = 0; i < count; ++i) {
    const std::string bytes = mutated(originals[i % 2], random);
    std::filesystem::remove(file);
    write_file(file, bytes);
    const Outcome outcome = prefix.probe({"records", "-", "compute", "reference"}, {{"PLUGRAD_PROBE_SECONDS", "5"}});
    const auto records = outcome.all("record"), values = outcome.all("value");
    const bool well = outcome.status == 0 && records.size() == 2 && values.size() == 1 && values[0].at(1) == "3.500000";
    if (!well) {
      write_file(std::filesystem::temp_directory_path() / ("plugrad-mutant-" + std::to_string(i) + ".so"), bytes);
      ADD_FAILURE() << "mutant " << i << ", kept in the temporary directory: status " << outcome.status << ", "
                    << outcome.errors;
      continue;
    }
    const std::string stage = records[0].at(2), reason = records[0].size() > 3 ? records[0][3] : "";
    loaded += stage == "ready";
    faults += reason.find("quarantine") != std::string::npos;
    EXPECT_TRUE(stage == "ready" || !reason.empty()) << i;
  }
  std::printf("%d mutants: %d loaded, %d refused, %d of these after they had crashed, hung or ended the probe\n", count,
              loaded, count - loaded, faults);
  EXPECT_GT(faults, count / 50) << "the mutations are too harmless to show anything";
}

}  // namespace
}  // namespace plugrad::test
