// Options of devices, and settings from environment variables.
#include <tests/paths.hpp>
#include <tests/runtime/prefix.hpp>

#include <gtest/gtest.h>

namespace plugrad::test {
namespace {

class Settings : public ::testing::Test {
 protected:
  void SetUp() override { add_plugin(variant("two_devices"), prefix_.plugins(), "tiny"); }
  Prefix prefix_;
};

TEST_F(Settings, AnUnknownKeyIsAnErrorThatNamesTheKnownOnes) {
  const Outcome outcome = prefix_.probe({"options", "tiny colour=red", "device", "tiny"});
  for (const char* part : {"'colour'", "mood", "memory", "tiny:0"}) EXPECT_PRED2(contains, outcome.field("error", 2), part);
}

TEST_F(Settings, LaterOnesWinEnvironmentThenBackendThenDevice) {
  const Environment environment{{"PLUGRAD_TINY_OPTIONS", "mood=glum,memory=100000000"}};
  EXPECT_EQ(prefix_.probe({"device", "tiny"}, environment).field("device", 2), "tiny, glum");
  EXPECT_EQ(prefix_.probe({"options", "tiny mood=merry", "device", "tiny"}, environment).field("device", 2), "tiny, merry");
  const Outcome both =
      prefix_.probe({"options", "tiny mood=merry", "options", "tiny:1 mood=odd", "device", "tiny:1"}, environment);
  EXPECT_EQ(both.field("device", 2), "tiny, odd");
  const Outcome other = prefix_.probe({"options", "tiny:1 mood=odd", "device", "tiny:0"});
  EXPECT_EQ(other.field("device", 2), "tiny, calm");
}

TEST_F(Settings, ACarelessVariableIsAnErrorThatShowsItsForm) {
  for (const char* text : {"mood", "=merry", "memory=1,mood"}) {
    const std::string message = prefix_.probe({"device", "tiny"}, {{"PLUGRAD_TINY_OPTIONS", text}}).field("error", 2);
    EXPECT_PRED2(contains, message, "PLUGRAD_TINY_OPTIONS") << text;
    EXPECT_PRED2(contains, message, "key=value");
  }
}

TEST_F(Settings, ComeTooLateOnceTheDeviceIsOpen) {
  const Outcome outcome = prefix_.probe({"device", "tiny:1", "options", "tiny:1 mood=odd", "options", "tiny mood=odd",
                                         "options", "tiny:0 mood=odd", "device", "tiny:0"});
  const auto errors = outcome.all("error");
  ASSERT_EQ(errors.size(), 2u);
  for (const auto& error : errors) EXPECT_PRED2(contains, error.at(2), "open already");
  EXPECT_EQ(outcome.all("device").back().at(2), "tiny, odd");
}

TEST_F(Settings, ForWhatIsNoNameOfADeviceAreAnError) {
  for (const char* name : {"tiny:x", "Tiny", "", "tiny:"}) {
    const Outcome outcome = prefix_.probe({"options", std::string(name) + " mood=odd"});
    EXPECT_PRED2(contains, outcome.field("error", 2), "'" + std::string(name) + "'");
  }
}

TEST_F(Settings, AMemoryLimitIsOutOfMemoryAndThenRoomAgain) {
  const Outcome outcome = prefix_.probe({"options", "tiny memory=10000000", "exhaust", "tiny"});
  EXPECT_EQ(outcome.field("exhausted", 1), "3");
  EXPECT_EQ(outcome.field("exhausted", 2), "9");
  EXPECT_PRED2(contains, outcome.field("exhausted", 3), "1048576 bytes wanted");
  EXPECT_EQ(outcome.field("again", 1), "7.000000");
}

TEST_F(Settings, AMemoryLimitIsANumberOfBytes) {
  for (const char* value : {"many", "", "-5", "1e9", "10MB", "99999999999999999999"}) {
    const Outcome outcome = prefix_.probe({"options", "tiny memory=" + std::string(value), "device", "tiny"});
    EXPECT_PRED2(contains, outcome.field("error", 2), "bytes expected") << value;
  }
}

TEST_F(Settings, TheCpuTakesOptionsFromItsVariable) {
  const std::filesystem::path cpu = test::plugin_path("libplugrad-backend-cpu.so");
  if (!std::filesystem::exists(cpu)) GTEST_SKIP() << "the plugin cpu is not built";
  add_plugin(cpu, prefix_.plugins(), "cpu");
  EXPECT_EQ(prefix_.probe({"compute", "cpu"}, {{"PLUGRAD_CPU_OPTIONS", "threads=1,"}}).field("value", 1), "3.500000");
  EXPECT_PRED2(contains, prefix_.probe({"compute", "cpu"}, {{"PLUGRAD_CPU_OPTIONS", "threads=none"}}).field("error", 2),
               "threads='none'");
  const std::string message = prefix_.probe({"compute", "cpu"}, {{"PLUGRAD_CPU_OPTIONS", "threadz=1"}}).field("error", 2);
  for (const char* part : {"'threadz'", "threads", "flush_to_zero"}) EXPECT_PRED2(contains, message, part);
}

TEST_F(Settings, TheFallbackIsOneOfThree) {
  EXPECT_EQ(prefix_.probe({"fallback", "-"}).field("fallback", 1), "0");
  EXPECT_EQ(prefix_.probe({"fallback", "-"}, {{"PLUGRAD_FALLBACK", "warn"}}).field("fallback", 1), "1");
  EXPECT_EQ(prefix_.probe({"fallback", "-"}, {{"PLUGRAD_FALLBACK", "allow"}}).field("fallback", 1), "2");
  const std::string message = prefix_.probe({"fallback", "-"}, {{"PLUGRAD_FALLBACK", "perhaps"}}).field("error", 2);
  for (const char* part : {"PLUGRAD_FALLBACK", "'perhaps'", "error, warn or allow"}) EXPECT_PRED2(contains, message, part);
}

TEST_F(Settings, OfTheEnvironmentAreCheckedWhenTheFirstDeviceOpens) {
  EXPECT_PRED2(contains, prefix_.probe({"device", "tiny"}, {{"PLUGRAD_FALLBACK", "perhaps"}}).field("error", 2),
               "PLUGRAD_FALLBACK='perhaps'");
  EXPECT_PRED2(contains, prefix_.probe({"device", "tiny"}, {{"PLUGRAD_SYNC", "yes"}}).field("error", 2),
               "PLUGRAD_SYNC='yes': 0 or 1 expected");
  EXPECT_EQ(prefix_.probe({"device", "tiny"}, {{"PLUGRAD_SYNC", "0"}}).field("device", 1), "tiny:0");
}

TEST_F(Settings, TheLogGoesToStandardErrorFromItsLevelOn) {
  const Outcome quiet = prefix_.probe({"say", "hello"});
  EXPECT_EQ(quiet.errors, "plugrad warning: hello\n");
  EXPECT_EQ(prefix_.probe({"say", "hello"}, {{"PLUGRAD_LOG", "info"}}).errors,
            "plugrad info: hello\nplugrad warning: hello\n");
  EXPECT_EQ(prefix_.probe({"say", "hello"}, {{"PLUGRAD_LOG", "off"}}).errors, "");
  EXPECT_PRED2(contains, prefix_.probe({"say", "hello"}, {{"PLUGRAD_LOG", "loud"}}).errors, "PLUGRAD_LOG='loud'");
}

}  // namespace
}  // namespace plugrad::test
