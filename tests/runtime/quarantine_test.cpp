// The core tries each plugin file once in a separate process. It does not try a file that did harm again until the user
// clears the quarantine.
#include <tests/paths.hpp>
#include <tests/runtime/prefix.hpp>

#include <gtest/gtest.h>
#include <chrono>

namespace plugrad::test {
namespace {
namespace fs = std::filesystem;

class Probing : public ::testing::Test {
 protected:
  // Replaces plugrad-probe by a script that shows whether the core starts it.
  void replace_probe(const std::string& script) {
    const fs::path program = prefix_.root() / "lib/plugrad/plugrad-probe";
    fs::remove(program);
    write_file(program, "#!/bin/sh\n" + script + "\n");
    fs::permissions(program, fs::perms::owner_all);
  }
  fs::path cache() const { return prefix_.root() / "cache/plugrad"; }
  std::vector<fs::path> verdicts() const {
    std::vector<fs::path> all;
    for (const auto& each : fs::directory_iterator(cache())) all.push_back(each.path());
    return all;
  }
  const Prefix prefix_;
};

TEST_F(Probing, HappensOnceForAFile) {
  add_plugin(variant("tiny"), prefix_.plugins(), "tiny");
  EXPECT_EQ(prefix_.probe({"compute", "tiny"}).field("value", 1), "3.500000");
  replace_probe("exit 7");
  EXPECT_EQ(prefix_.probe({"compute", "tiny"}).field("value", 1), "3.500000");
  const Outcome always = prefix_.probe({"records", "-"}, {{"PLUGRAD_PROBE", "always"}});
  EXPECT_PRED2(contains, always.field("record", 3), "ended the process with status 7");
}

TEST_F(Probing, HappensAgainWhenTheFileChanges) {
  const fs::path file = add_plugin(variant("tiny"), prefix_.plugins(), "tiny");
  EXPECT_EQ(prefix_.probe({"compute", "tiny"}).field("value", 1), "3.500000");
  replace_probe("exit 7");
  fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(1));
  EXPECT_PRED2(contains, prefix_.probe({"records", "-"}).field("record", 3), "ended the process with status 7");
}

TEST_F(Probing, CountsDevicesOnlyWhenAProgramAsks) {
  add_plugin(variant("count_aborts"), prefix_.plugins(), "first");
  add_plugin(test::plugin_path("libplugrad-backend-reference.so"), prefix_.plugins(), "reference");
  EXPECT_EQ(prefix_.probe({"compute", "reference"}).field("value", 1), "3.500000");
  EXPECT_TRUE(prefix_.probe({"quarantine", "-"}).all("quarantined").empty());
  const Outcome outcome = prefix_.probe({"names", "-", "quarantine", "-"});
  EXPECT_EQ(outcome.field("name", 1), "reference:0");
  EXPECT_PRED2(contains, outcome.field("quarantined", 2), "SIGABRT");
}

TEST_F(Probing, OpensEachDeviceOnce) {
  add_plugin(variant("two_devices"), prefix_.plugins(), "tiny");
  EXPECT_EQ(prefix_.probe({"compute", "tiny:0"}).field("value", 1), "3.500000");
  replace_probe("exit 7");
  const Outcome outcome = prefix_.probe({"compute", "tiny:0", "compute", "tiny:1"});
  EXPECT_EQ(outcome.field("value", 1), "3.500000");
  EXPECT_PRED2(contains, outcome.field("error", 2), "[tiny:1]");
  EXPECT_PRED2(contains, outcome.field("error", 2), "ended the process with status 7");
}

TEST_F(Probing, IsRepeatedAfterTheQuarantineIsCleared) {
  const fs::path file = add_plugin(variant("hostile"), prefix_.plugins(), "a");
  const Environment crash{{"PLUGRAD_HOSTILE", "abort@entry"}};
  EXPECT_PRED2(contains, prefix_.probe({"records", "-"}, crash).field("record", 3), "SIGABRT");
  EXPECT_EQ(prefix_.probe({"clear", "/another/file.so"}).field("cleared", 1), "0");
  EXPECT_PRED2(contains, prefix_.probe({"records", "-"}).field("record", 3), "quarantine");
  const Outcome cleared = prefix_.probe({"quarantine", "-", "clear", file, "quarantine", "-", "compute", "tiny"});
  EXPECT_EQ(cleared.field("quarantined", 1), file);
  EXPECT_EQ(cleared.field("cleared", 1), "1");
  EXPECT_EQ(cleared.field("value", 1), "3.500000");
}

TEST_F(Probing, LeavesAFileInQuarantineAlsoWhenTheProgramNamesIt) {
  const fs::path file = add_plugin(variant("hostile"), prefix_.root(), "a");
  const Environment crash{{"PLUGRAD_HOSTILE", "abort@constructor"}};
  EXPECT_PRED2(contains, prefix_.probe({"load", file}, crash).field("error", 2), "SIGABRT");
  EXPECT_PRED2(contains, prefix_.probe({"load", file}).field("error", 2), "quarantine");
}

TEST_F(Probing, CanBeTurnedOff) {
  add_plugin(variant("tiny"), prefix_.plugins(), "tiny");
  replace_probe("exit 7");
  EXPECT_EQ(prefix_.probe({"compute", "tiny"}, {{"PLUGRAD_PROBE", "off"}}).field("value", 1), "3.500000");
  EXPECT_FALSE(fs::exists(cache()));
}

TEST_F(Probing, OfAnUnknownKindIsSaidAndIsTheUsual) {
  add_plugin(variant("tiny"), prefix_.plugins(), "tiny");
  const Outcome outcome = prefix_.probe({"log", "warning", "compute", "tiny"}, {{"PLUGRAD_PROBE", "sometimes"}});
  EXPECT_EQ(outcome.field("value", 1), "3.500000");
  ASSERT_FALSE(outcome.all("log").empty());
  EXPECT_PRED2(contains, outcome.all("log")[0].at(2), "always, cached or off expected");
  for (const char* seconds : {"0", "-1", "ten", "1e9", "", "99999"}) {
    const Outcome odd = prefix_.probe({"log", "warning", "compute", "tiny"},
                                      {{"PLUGRAD_PROBE_SECONDS", seconds}, {"PLUGRAD_PROBE", "always"}});
    EXPECT_EQ(odd.field("value", 1), "3.500000") << seconds;
    ASSERT_FALSE(odd.all("log").empty()) << seconds;
    EXPECT_PRED2(contains, odd.all("log")[0].at(2), "1 to 3600") << seconds;
  }
}

TEST_F(Probing, ThatCannotStartIsAWarningOrWhereItIsDemandedARefusal) {
  add_plugin(variant("tiny"), prefix_.plugins(), "tiny");
  fs::remove(prefix_.root() / "lib/plugrad/plugrad-probe");
  const Outcome usual = prefix_.probe({"log", "warning", "compute", "tiny"});
  EXPECT_EQ(usual.field("value", 1), "3.500000");
  EXPECT_PRED2(contains, usual.field("log", 2), "No such file");
  EXPECT_PRED2(contains, usual.field("log", 2), "plugrad-probe");
  const Outcome always = prefix_.probe({"records", "-"}, {{"PLUGRAD_PROBE", "always"}});
  EXPECT_PRED2(contains, always.field("record", 3), "plugrad-probe: No such file");
}

TEST_F(Probing, WorksWhereNothingCanBeKept) {
  add_plugin(variant("tiny"), prefix_.plugins(), "tiny");
  add_plugin(variant("hostile"), prefix_.plugins(), "a");
  for (const std::string cache : {"/dev/null/cache", "relative", "/proc/cache"}) {
    const Outcome outcome = prefix_.probe({"records", "-", "compute", "tiny"},
                                          {{"XDG_CACHE_HOME", cache}, {"HOME", cache}, {"PLUGRAD_HOSTILE", "abort@entry"}});
    EXPECT_EQ(outcome.field("value", 1), "3.500000") << cache;
    EXPECT_PRED2(contains, outcome.all("record").at(0).at(3), "SIGABRT");
  }
}

TEST_F(Probing, TrustsNoVerdictThatIsDamagedOrThatOthersMayWrite) {
  add_plugin(variant("tiny"), prefix_.plugins(), "tiny");
  EXPECT_EQ(prefix_.probe({"compute", "tiny"}).field("value", 1), "3.500000");
  ASSERT_EQ(verdicts().size(), 1u);
  const fs::path file = verdicts()[0];
  const std::string good = read_file(file);
  const auto probed = [&] {  // returns whether the core starts the program
    replace_probe("touch " + (prefix_.root() / "started").string() + "; exit 7");
    fs::remove(prefix_.root() / "started");
    prefix_.probe({"records", "-"});
    return fs::exists(prefix_.root() / "started");
  };
  EXPECT_FALSE(probed());
  const std::string half = good.substr(0, good.size() / 2), loud = "x" + good, other = good + std::string(20'000, ' ');
  for (const std::string& text : {std::string(), std::string(100, '\xff'), half, loud, other}) {
    write_file(file, text);
    EXPECT_TRUE(probed()) << text;
  }
  write_file(file, good);
  EXPECT_FALSE(probed());
  fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
  EXPECT_TRUE(probed());
  fs::remove(file);
  write_file(prefix_.root() / "elsewhere", good);
  fs::create_symlink(prefix_.root() / "elsewhere", file);
  EXPECT_TRUE(probed());
}

TEST_F(Probing, ForgetsPluginsThatAreGoneOnceThereAreMany) {
  const fs::path file = add_plugin(variant("tiny"), prefix_.plugins(), "tiny");
  EXPECT_EQ(prefix_.probe({"compute", "tiny"}).field("value", 1), "3.500000");
  const std::string good = read_file(verdicts().at(0)), name = file.string();
  for (int i = 0; i < 300; ++i) {
    std::string gone = good;
    write_file(cache() / (std::to_string(i) + ".verdict"),
               gone.replace(gone.find(name), name.size(), "/gone/" + std::to_string(i)));
  }
  add_plugin(test::plugin_path("libplugrad-backend-reference.so"), prefix_.plugins(), "reference");
  EXPECT_EQ(prefix_.probe({"compute", "tiny"}).field("value", 1), "3.500000");
  EXPECT_EQ(verdicts().size(), 2u);
}

TEST_F(Probing, LeavesNoProcessAndNoDescriptorBehind) {
  for (int i = 0; i < 8; ++i) add_plugin(variant("hostile"), prefix_.plugins(), "a" + std::to_string(i));
  const Outcome outcome =
      prefix_.probe({"descriptors", "-", "records", "-", "descriptors", "-"}, {{"PLUGRAD_HOSTILE", "abort@entry"}});
  const auto counts = outcome.all("descriptors");
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0], counts[1]);
}

}  // namespace
}  // namespace plugrad::test
