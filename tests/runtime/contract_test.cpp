// Plugins that break the contract are refused with a reason; plugins that keep the contract work.
#include <tests/paths.hpp>
#include <tests/runtime/prefix.hpp>

#include <gtest/gtest.h>

namespace plugrad::test {
namespace {
namespace fs = std::filesystem;

struct Refusal {
  const char* variant;
  const char* stage;
  const char* reason;
};
std::ostream& operator<<(std::ostream& out, const Refusal& r) { return out << r.variant; }

class Refused : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refused, IsRecordedWithStageAndReasonAndNamedInTheError) {
  const Prefix prefix;
  const Refusal& wanted = GetParam();
  const fs::path file = add_plugin(variant(wanted.variant), prefix.plugins(), "odd");
  const Outcome outcome = prefix.probe({"records", "-", "names", "-", "device", "tiny"});
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(outcome.field("record", 1), file);
  EXPECT_EQ(outcome.field("record", 2), wanted.stage);
  EXPECT_PRED2(contains, outcome.field("record", 3), wanted.reason);
  EXPECT_TRUE(outcome.all("name").empty());
  EXPECT_PRED2(contains, outcome.field("error", 2), file.string());
  EXPECT_PRED2(contains, outcome.field("error", 2), wanted.reason);
}

TEST_P(Refused, IsAnErrorOfLoadPluginUnlessItOnlyLacksDevices) {
  const Prefix prefix;
  const Refusal& wanted = GetParam();
  const fs::path file = add_plugin(variant(wanted.variant), prefix.root(), "odd");
  const Outcome outcome = prefix.probe({"load", file, "records", "-"});
  if (std::string(wanted.stage) == "ready") {
    EXPECT_EQ(outcome.field("loaded", 2), "ready");
    EXPECT_PRED2(contains, outcome.field("loaded", 3), wanted.reason);
    return;
  }
  for (const std::string& part : {file.string(), std::string(wanted.stage), std::string(wanted.reason)})
    EXPECT_PRED2(contains, outcome.field("error", 2), part);
  EXPECT_EQ(outcome.field("record", 2), wanted.stage);
}

INSTANTIATE_TEST_SUITE_P(Plugins, Refused,
                         ::testing::Values(Refusal{"no_symbol", "loaded", "plugrad_backend_v0"},
                                           Refusal{"unresolved", "file checked", "plugrad_test_missing_function"},
                                           Refusal{"null_table", "symbol found", "null"},
                                           Refusal{"short_table", "symbol found", "shorter"},
                                           Refusal{"foreign_hash", "symbol found", "laid out differently"},
                                           Refusal{"next_foreign", "symbol found", "laid out differently"},
                                           Refusal{"no_hash", "symbol found", "laid out differently"},
                                           Refusal{"bad_name", "symbol found", "[a-z][a-z0-9_-]*"},
                                           Refusal{"null_name", "symbol found", "[a-z][a-z0-9_-]*"},
                                           Refusal{"null_open", "symbol found", "open"},
                                           Refusal{"count_fails", "contract agreed", "cannot count"},
                                           Refusal{"no_device", "ready", "no such hardware in this machine"},
                                           Refusal{"no_device_silent", "ready", "does not say why"}),
                         [](const auto& info) { return std::string(info.param.variant); });

struct AtOpen {
  const char* variant;
  const char* message;
};
class RefusedAtOpen : public ::testing::TestWithParam<AtOpen> {};

TEST_P(RefusedAtOpen, IsAnErrorEachTimeAndTheProcessGoesOn) {
  const Prefix prefix;
  add_plugin(variant(GetParam().variant), prefix.plugins(), "odd");
  add_plugin(test::plugin_path("libplugrad-backend-reference.so"), prefix.plugins(), "reference");
  const Outcome outcome = prefix.probe({"device", "tiny", "device", "tiny", "compute", "reference"});
  const auto errors = outcome.all("error");
  ASSERT_EQ(errors.size(), 2u);
  for (const auto& error : errors) EXPECT_PRED2(contains, error.at(2), GetParam().message);
  EXPECT_EQ(outcome.field("value", 1), "3.500000");
}

INSTANTIATE_TEST_SUITE_P(Plugins, RefusedAtOpen,
                         ::testing::Values(AtOpen{"half_memory", "one of alloc and free is null"},
                                           AtOpen{"bad_alignment", "alignment 48"},
                                           AtOpen{"throws_at_open", "the machine is on fire"}),
                         [](const auto& info) { return std::string(info.param.variant); });

TEST(Revisions, APluginOfTheNextOneLoadsAndWorks) {
  const Prefix prefix;
  add_plugin(variant("next_revision"), prefix.plugins(), "next");
  const Outcome outcome = prefix.probe({"records", "-", "compute", "tiny"});
  EXPECT_EQ(outcome.field("record", 2), "ready");
  EXPECT_EQ(outcome.field("record", 6), "1");
  EXPECT_EQ(outcome.field("value", 1), "3.500000");
}

TEST(Versions, OfAPluginThatGivesNoneAreEmpty) {
  const Prefix prefix;
  add_plugin(variant("null_version"), prefix.plugins(), "odd");
  const Outcome outcome = prefix.probe({"records", "-"});
  EXPECT_EQ(outcome.field("record", 2), "ready");
  EXPECT_EQ(outcome.field("record", 5), "");
}

}  // namespace
}  // namespace plugrad::test
