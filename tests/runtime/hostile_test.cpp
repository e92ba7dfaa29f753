// Plugins that crash, hang, end the process, throw, change the process's state or break the contract: the program continues,
// reports the reason, and uses the healthy plugin in the same folder.
#include <sdk/conformance/sanitizer.hpp>
#include <tests/paths.hpp>
#include <tests/runtime/prefix.hpp>

#include <gtest/gtest.h>
#include <algorithm>

namespace plugrad::test {
namespace {

enum Record { kPath = 1, kStage, kReason, kName, kVersion, kRevision, kDevices, kNotes };

struct Case {
  std::string what;    // PLUGRAD_HOSTILE
  std::string stage;   // the stage that the plugin's record reaches
  std::string reason;  // part of the record's reason or, where the record is ready, of the error
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.what; }
std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.what;
  std::ranges::replace(name, '@', '_');
  return name;
}

// A tree with the hostile plugin, found first, and the healthy one.
class Tree {
 public:
  Tree() {
    add_plugin(variant("hostile"), prefix_.plugins(), "a");
    add_plugin(test::plugin_path("libplugrad-backend-reference.so"), prefix_.plugins(), "reference");
  }
  Outcome run(const std::string& what, std::vector<std::string> commands, Environment environment = {}) const {
    commands.insert(commands.end(), {"compute", "reference", "log", "warning"});
    environment.emplace("PLUGRAD_HOSTILE", what);
    return prefix_.probe(commands, environment);
  }
  std::string file() const { return prefix_.plugins() / "libplugrad-backend-a.so"; }

 private:
  const Prefix prefix_;
};

std::vector<std::string> hostile_record(const Outcome& outcome) {
  const auto records = outcome.all("record");
  EXPECT_EQ(records.size(), 2u) << outcome.errors;
  std::vector<std::string> record = records.empty() ? std::vector<std::string>() : records[0];
  record.resize(kNotes + 1);
  return record;
}
// The program ended well, and the healthy plugin worked.
void expect_healthy(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  const auto values = outcome.all("value");
  ASSERT_FALSE(values.empty());
  EXPECT_EQ(values.back().at(1), "3.500000");
}

// --- Plugins that end or stop a process.

std::vector<Case> fatal_cases() {
  const std::pair<const char*, const char*> kFatal[] = {
      {"abort", "SIGABRT"},           {"segfault", "SIGSEGV"},    {"null_call", "SIGSEGV"},
      {"illegal", "SIGILL"},          {"divide", "SIGFPE"},       {"kill", "SIGKILL"},
      {"terminate", "SIGTERM"},       {"pipe", "SIGPIPE"},        {"alarm", "SIGALRM"},
      {"overflow", "SIGSEGV"},        {"exit0", "status 0"},      {"exit3", "status 3"},
      {"_exit0", "status 0"},         {"quick_exit", "status 0"}, {"forge", "status 0"},
      {"throw_int", "SIGABRT"},       {"throw_error", "SIGABRT"}, {"crash_later", "SIGABRT"},
      {"stop", "did not finish"},     {"loop", "did not finish"}, {"sleep", "did not finish"},
      {"deaf_loop", "did not finish"}};
  std::vector<Case> all;
  for (const auto& [behaviour, reason] : kFatal) {
    all.push_back({behaviour + std::string("@constructor"), "file checked", reason});
    all.push_back({behaviour + std::string("@entry"), "symbol found", reason});
    all.push_back({behaviour + std::string("@count"), "contract agreed", reason});
    all.push_back({behaviour + std::string("@open"), "ready", reason});
  }
  all.insert(all.end(), {{"abort@get_extension", "symbol found", "SIGABRT"},
                         {"throw_error@get_extension", "symbol found", "SIGABRT"},
                         {"exit0@get_extension", "symbol found", "status 0"},
                         {"loop@get_extension", "symbol found", "did not finish"}});
  for (const char* behaviour : {"abort", "segfault", "illegal", "kill", "_exit0", "sleep", "deaf_loop"})
    all.push_back({behaviour + std::string("@destructor"), "file checked", "when the process ended"});
  all.push_back({"wild_table", "symbol found", "SIGSEGV"});
  return all;
}

class Fatal : public ::testing::TestWithParam<Case> {};

TEST_P(Fatal, IsFoundInAProcessOfItsOwnAndStaysInQuarantine) {
  const Case& c = GetParam();
  const std::vector<std::string> caught = {"SIGSEGV", "SIGILL", "SIGFPE"};
  if (conformance::kSanitized && std::ranges::count(caught, c.reason))
    GTEST_SKIP() << "sanitizers report such signals themselves";
  const Tree tree;
  const bool hangs = contains(c.reason, "finish") || c.what.starts_with("sleep") || c.what.starts_with("deaf");
  const Environment environment{{"PLUGRAD_PROBE_SECONDS", hangs ? "1" : "30"}};
  const Outcome first = tree.run(c.what, {"records", "-", "device", "tiny"}, environment);
  expect_healthy(first);
  const auto record = hostile_record(first);
  EXPECT_EQ(record[kStage], c.stage);
  const std::string why = c.what.ends_with("@open") ? first.field("error", 2) : record[kReason];
  EXPECT_PRED2(contains, why, c.reason);
  EXPECT_PRED2(contains, why, "plugrad backends --clear-quarantine");
  EXPECT_PRED2(contains, first.field("error", 2), c.reason);
  // A second process does not try it again, even if it would behave now.
  const Outcome second = tree.run("", {"records", "-"}, environment);
  expect_healthy(second);
  EXPECT_PRED2(contains, hostile_record(second)[kReason], c.reason);
}

INSTANTIATE_TEST_SUITE_P(Plugins, Fatal, ::testing::ValuesIn(fatal_cases()), name_of);

// --- Plugins that change the state of the process.

std::vector<Case> changing_cases() {
  const std::pair<const char*, const char*> kChanges[] = {{"rounding", "the rounding mode"},
                                                          {"flush", "the floating-point mode"},
                                                          {"handler", "the handler of SIGSEGV"},
                                                          {"interrupt", "the handler of SIGINT"},
                                                          {"mask", "the signal mask"},
                                                          {"umask", "the umask"},
                                                          {"locale", "the locale"},
                                                          {"directory", "the current directory"},
                                                          {"timer", "a timer"},
                                                          {"limit", "a limit of resources"},
                                                          {"input", "standard input"}};
  std::vector<Case> all;
  for (const auto& [behaviour, what] : kChanges)
    for (const char* place : {"constructor", "entry", "count", "open"})
      all.push_back({behaviour + std::string("@") + place, "ready", what});
  return all;
}

class Changing : public ::testing::TestWithParam<Case> {};

TEST_P(Changing, IsPutBackAndSaid) {
  const Tree tree;
  const Case& c = GetParam();
  const Outcome outcome =
      tree.run(c.what, {"log", "warning", "state", "-", "records", "-", "device", "tiny", "compute", "tiny", "state", "-"});
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  const auto states = outcome.all("state"), values = outcome.all("value"), log = outcome.all("log");
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0], states[1]);
  EXPECT_EQ(values.size(), 2u);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_PRED2(contains, log[0].at(2), c.reason);
  const std::string noted = c.what.ends_with("@open") ? "" : c.reason;
  EXPECT_PRED2(contains, hostile_record(outcome)[kNotes], noted);
}

INSTANTIATE_TEST_SUITE_P(Plugins, Changing, ::testing::ValuesIn(changing_cases()), name_of);

TEST(Forking, EndsTheCopyAlone) {
  const Tree tree;
  for (const char* place : {"constructor", "entry", "count", "open", "run"}) {
    const Outcome outcome = tree.run(std::string("fork@") + place, {"records", "-", "device", "tiny", "compute", "tiny"},
                                     {{"PLUGRAD_CHECK", "process"}});
    EXPECT_EQ(outcome.status, 0) << place << outcome.errors;
    EXPECT_EQ(hostile_record(outcome)[kStage], "ready") << place;
    EXPECT_EQ(outcome.all("value").size(), 2u) << place << ": of tiny and reference, from one process";
  }
}

// --- Faults that the core detects in its own process.

std::vector<Case> visible_cases() {
  std::vector<Case> all;
  for (const char* place : {"open", "resolve", "workspace", "run", "alloc", "get_extension", "memory_info", "stream_create",
                            "completed", "sync", "stream_run", "stream_copy"}) {
    all.push_back({std::string("throw_int@") + place, "ready", "it threw a value of type int"});
    all.push_back({std::string("throw_error@") + place, "ready", "it threw std::runtime_error (the machine is on fire)"});
    all.push_back({std::string("throw_memory@") + place, "ready", "it threw std::bad_alloc"});
  }
  const Case kBreaches[] = {{"null_device", "ready", "open returned OK and no device"},
                            {"open_status", "ready", "open] the plugin returned status -7"},
                            {"alignment_huge", "ready", "alignment 9223372036854775808"},
                            {"alignment_zero", "ready", "alignment 0"},
                            {"alignment_odd", "ready", "alignment 48"},
                            {"capabilities_async", "ready", "ASYNC"},
                            {"null_run", "ready", "has no function run"},
                            {"kernel_short", "ready", "shorter than this revision's"},
                            {"workspace_huge", "ready", "a workspace of 18446744073709551360 bytes"},
                            {"workspace_unknown", "ready", "has too little memory for"},
                            {"workspace_odd", "ready", "a workspace of 1152921504606846976 bytes"},
                            {"status_99", "ready", "status 99"},
                            {"null_buffer", "ready", "alloc returned OK and no buffer"},
                            {"misaligned", "ready", "not aligned to 64 bytes"},
                            {"overlap", "ready", "overlaps a buffer in use"},
                            {"alloc_status", "ready", "status 12345"},
                            {"ahead@completed", "ready", "counts as lost: completed stored 1001 after op"},
                            {"behind@completed", "ready", "counts as lost: completed returned status 5000"},
                            {"null_alloc", "ready", "one of alloc and free is null"}};
  all.insert(all.end(), std::begin(kBreaches), std::end(kBreaches));
  return all;
}

class Visible : public ::testing::TestWithParam<Case> {};

TEST_P(Visible, IsAnErrorThatNamesThePluginAndTheProcessGoesOn) {
  const Tree tree;
  const Case& c = GetParam();
  Environment environment{{"ASAN_OPTIONS", "detect_leaks=0"}};  // the plugin loses memory
  if (c.what.ends_with("@open") || c.what.ends_with("@get_extension"))
    environment.emplace("PLUGRAD_PROBE", "off");  // an exception would end the probe
  const Outcome outcome = tree.run(c.what,
                                   {"log", "warning", "records", "-", "memory", "tiny", "compute", "tiny", "exhaust", "tiny",
                                    "extension", "tiny", "sync", "tiny"},
                                   environment);
  expect_healthy(outcome);
  EXPECT_EQ(hostile_record(outcome)[kStage], "ready");
  auto errors = outcome.all("error");
  for (const auto& line : outcome.all("exhausted")) errors.push_back({"error", line.at(1), line.at(3)});
  for (const auto& line : outcome.all("log")) errors.push_back({"log", "", line.at(2)});
  const bool said = std::ranges::any_of(errors, [&](const auto& line) { return contains(line.at(2), c.reason); });
  EXPECT_TRUE(said) << ::testing::PrintToString(errors) << outcome.errors;
  for (const auto& line : errors) EXPECT_PRED2(contains, line.at(2), "tiny");
}

INSTANTIATE_TEST_SUITE_P(Plugins, Visible, ::testing::ValuesIn(visible_cases()), name_of);

// --- Tables that no core can use, and impossible counts.

class Refused : public ::testing::TestWithParam<Case> {};

TEST_P(Refused, IsRecordedWithItsReason) {
  const Tree tree;
  const Case& c = GetParam();
  const Outcome outcome = tree.run(c.what, {"records", "-", "names", "-"});
  expect_healthy(outcome);
  const auto record = hostile_record(outcome);
  EXPECT_EQ(record[kStage], c.stage);
  EXPECT_PRED2(contains, record[kReason], c.reason);
  EXPECT_EQ(outcome.all("name").size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Plugins, Refused,
                         ::testing::Values(Case{"count_huge", "contract agreed", "counts 4294967295 devices"},
                                           Case{"count_million", "contract agreed", "counts 1000000 devices"},
                                           Case{"count_status", "contract agreed", "status 99"},
                                           Case{"null_count", "symbol found", "count, open or resolve is null"},
                                           Case{"null_resolve", "symbol found", "count, open or resolve is null"},
                                           Case{"name_empty", "symbol found", "[a-z]"},
                                           Case{"name_path", "symbol found", "[a-z]"},
                                           Case{"name_long", "symbol found", "[a-z]"},
                                           Case{"null_table", "symbol found", "null"}),
                         name_of);

// --- Plugins that the core loads without a probe process.

class Unprobed : public ::testing::TestWithParam<Case> {};

TEST_P(Unprobed, IsAReasonAndNoException) {
  const Tree tree;
  const Case& c = GetParam();
  const Outcome outcome = tree.run(c.what, {"records", "-"}, {{"PLUGRAD_PROBE", "off"}});
  expect_healthy(outcome);
  EXPECT_EQ(hostile_record(outcome)[kStage], c.stage);
  EXPECT_PRED2(contains, hostile_record(outcome)[kReason], c.reason);
}

INSTANTIATE_TEST_SUITE_P(Plugins, Unprobed,
                         ::testing::Values(Case{"throw_int@entry", "symbol found", "a value of type int"},
                                           Case{"throw_error@entry", "symbol found", "the machine is on fire"},
                                           Case{"throw_memory@entry", "symbol found", "std::bad_alloc"},
                                           Case{"throw_int@count", "contract agreed", "a value of type int"},
                                           Case{"throw_error@count", "contract agreed", "the machine is on fire"},
                                           Case{"throw_memory@count", "contract agreed", "std::bad_alloc"}),
                         name_of);

// --- Plugins that misbehave without harm.

class Rude : public ::testing::TestWithParam<Case> {};

TEST_P(Rude, LoadsAndWorks) {
  const Tree tree;
  const Outcome outcome = tree.run(GetParam().what, {"records", "-", "compute", "tiny", "trim", "tiny"});
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(outcome.all("value").size(), 2u);
  EXPECT_EQ(hostile_record(outcome)[kStage], "ready");
}

INSTANTIATE_TEST_SUITE_P(Plugins, Rude,
                         ::testing::Values(Case{"flood_stderr@constructor", "", ""}, Case{"flood_stderr@entry", "", ""},
                                           Case{"flood_stderr@count", "", ""}, Case{"flood_pipe@constructor", "", ""},
                                           Case{"orphan@constructor", "", ""}, Case{"orphan@entry", "", ""},
                                           Case{"orphan@count", "", ""}, Case{"name_endless", "", ""},
                                           Case{"throw_int@free", "", ""}, Case{"throw_error@free", "", ""}),
                         name_of);

TEST(Escapes, OfVersionsAndNamesDoNotReachATerminal) {
  const Tree tree;
  EXPECT_EQ(hostile_record(tree.run("version_escape", {"records", "-"}))[kVersion], "?[2J1.0");
  EXPECT_EQ(tree.run("name_escape", {"device", "tiny"}).field("device", 2), "?[31mred?[0m");
}

}  // namespace
}  // namespace plugrad::test
