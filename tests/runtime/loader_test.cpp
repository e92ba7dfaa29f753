// The search for plugins: the directories it searches, the files it finds, and its record of each file.
#include <tests/paths.hpp>
#include <tests/runtime/prefix.hpp>

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>

namespace plugrad::test {
namespace {
namespace fs = std::filesystem;
using ::testing::Test;

enum Record { kPath = 1, kStage, kReason, kName, kVersion, kRevision, kDevices };
using Line = std::vector<std::string>;

Line record_of(const Outcome& outcome, const fs::path& path) {
  for (const Line& line : outcome.all("record"))
    if (line.at(kPath) == path) return line;
  ADD_FAILURE() << "no record of " << path << "; " << outcome.errors;
  return Line(8);
}
#define EXPECT_CONTAINS(text, part) EXPECT_PRED2(contains, text, part)

TEST(Search, LooksFirstWhereTheProgramSaysThenWhereTheEnvironmentSaysThenBesideTheCore) {
  const Prefix prefix;
  const fs::path added = prefix.directory("added"), listed = prefix.directory("listed");
  const fs::path first = add_plugin(variant("tiny"), added, "tiny"), second = add_plugin(variant("tiny"), listed, "tiny"),
                 third = add_plugin(variant("tiny"), prefix.plugins(), "tiny");
  const Environment environment{{"PLUGRAD_PLUGIN_PATH", listed.string()}};
  const Outcome found = prefix.probe({"add", added, "directories", "-", "records", "-", "device", "tiny"}, environment);
  const std::vector<Line> directories = found.all("directory"), records = found.all("record");
  EXPECT_EQ(directories, (std::vector<Line>{{"directory", added}, {"directory", listed}, {"directory", prefix.plugins()}}));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].at(kPath), first);
  EXPECT_EQ(records[0].at(kStage), "ready");
  EXPECT_EQ(records[1].at(kPath), second);
  EXPECT_EQ(records[2].at(kPath), third);
  for (const Line* later : {&records[1], &records[2]}) {
    EXPECT_EQ(later->at(kStage), "shadowed");
    EXPECT_CONTAINS(later->at(kReason), first.string());
    EXPECT_EQ(later->at(kName), "tiny");
  }
  EXPECT_EQ(found.field("device", 3), first);
}

TEST(Search, GoesThroughADirectoryByNameAndTakesOnlyPluginFiles) {
  const Prefix prefix;
  add_plugin(variant("tiny"), prefix.plugins(), "b");
  add_plugin(variant("no_device"), prefix.plugins(), "a");
  fs::copy_file(variant("tiny"), prefix.plugins() / "libplugrad-backend-c.so.bak");
  fs::copy_file(variant("tiny"), prefix.plugins() / "libother.so");
  const std::vector<Line> records = prefix.probe({"records", "-"}).all("record");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].at(kPath), prefix.plugins() / "libplugrad-backend-a.so");
  EXPECT_EQ(records[1].at(kPath), prefix.plugins() / "libplugrad-backend-b.so");
}

TEST(Search, LeavesOutRelativeAndEmptyElementsAndSaysSo) {
  const Prefix prefix;
  const fs::path here = prefix.directory("here"), below = prefix.directory("here/below"), good = prefix.directory("good");
  add_plugin(variant("tiny"), here, "tiny");
  add_plugin(variant("tiny"), below, "tiny");
  const fs::path wanted = add_plugin(variant("tiny"), good, "tiny");
  for (const std::string odd : {"below:", "./below:", ".:", ":", "../here:"}) {
    const Outcome found =
        prefix.probe({"log", "info", "go", here, "records", "-"}, {{"PLUGRAD_PLUGIN_PATH", odd + good.string()}});
    const std::vector<Line> records = found.all("record"), log = found.all("log");
    ASSERT_FALSE(records.empty()) << odd;
    EXPECT_EQ(records.back().at(kPath), wanted);
    if (records.size() > 1) {  // an empty element has no record
      EXPECT_EQ(records[0].at(kPath), odd.substr(0, odd.size() - 1));
      EXPECT_EQ(records[0].at(kStage), "not searched");
    }
    ASSERT_GE(log.size(), 1u) << odd;
    EXPECT_CONTAINS(log[0].at(2), "not absolute");
    EXPECT_CONTAINS(log[0].at(2), "'" + odd.substr(0, odd.size() - 1) + "'");
  }
}

TEST(Search, NeverLooksInTheCurrentDirectory) {
  const Prefix prefix;
  const fs::path here = prefix.directory("here");
  add_plugin(variant("tiny"), here, "tiny");
  fs::create_directories(here / "plugrad/plugins-v0");
  add_plugin(variant("tiny"), here / "plugrad/plugins-v0", "tiny");
  for (const Environment& environment :
       {Environment{}, Environment{{"PLUGRAD_PLUGIN_PATH", ""}}, Environment{{"PLUGRAD_PLUGIN_PATH", "::"}}}) {
    const Outcome found = prefix.probe({"go", here, "records", "-", "has", "tiny"}, environment);
    EXPECT_TRUE(found.all("record").empty());
    EXPECT_EQ(found.field("has", 1), "no");
  }
}

TEST(Search, FindsThePluginsBesideTheCoreWhereverTheTreeWasMoved) {
  const Prefix prefix;
  add_plugin(variant("tiny"), prefix.plugins(), "tiny");
  const fs::path moved = prefix.directory("a b") / "moved";
  fs::create_directories(moved);
  for (const char* part : {"bin", "lib"}) fs::copy(prefix.root() / part, moved / part, fs::copy_options::recursive);
  EXPECT_EQ(prefix.probe({"device", "tiny"}).field("device", 3), (prefix.plugins() / "libplugrad-backend-tiny.so").string());
  fs::remove_all(prefix.root() / "lib");
  fs::create_directory_symlink(moved / "lib", prefix.root() / "lib");
  EXPECT_EQ(prefix.probe({"device", "tiny"}).field("device", 3),
            (moved / "lib/plugrad/plugins-v0/libplugrad-backend-tiny.so").string());
}

TEST(Search, SkipsWhatIsDisabledByTheNameOfFileOrBackend) {
  const Prefix prefix;
  const fs::path plain = add_plugin(variant("no_device"), prefix.plugins(), "plain");
  const fs::path tiny = add_plugin(variant("two_devices"), prefix.plugins(), "renamed");
  for (const std::string list : {"renamed", "other,renamed", "tiny", "tiny,plainer"}) {
    const Outcome found = prefix.probe({"records", "-", "names", "-"}, {{"PLUGRAD_DISABLE", list}});
    EXPECT_EQ(record_of(found, tiny).at(kStage), "disabled") << list;
    EXPECT_CONTAINS(record_of(found, tiny).at(kReason), "PLUGRAD_DISABLE");
    EXPECT_TRUE(found.all("name").empty());
  }
  const Outcome found = prefix.probe({"records", "-"}, {{"PLUGRAD_DISABLE", "tin,tinyy,"}});
  EXPECT_NE(record_of(found, tiny).at(kStage), "disabled");
  EXPECT_NE(record_of(found, plain).at(kStage), "disabled");
}

TEST(Search, SaysWhereItLookedAndWhatItFoundWhenAllPluginFilesAreGone) {
  const Prefix prefix;
  const fs::path empty = prefix.directory("empty");
  write_file(prefix.plugins() / "libplugrad-backend-cpu.so",
             "no plugin at all, but long enough to be looked at as a file of its own");
  const Environment environment{{"PLUGRAD_PLUGIN_PATH", empty.string() + ":/nowhere/at/all"}};
  const std::string message = prefix.probe({"compute", "cpu"}, environment).field("error", 2);
  for (const std::string& part :
       {std::string("'cpu'"), std::string("none"), empty.string() + " (0 plugin files)",
        std::string("/nowhere/at/all (No such file or directory)"), prefix.plugins().string() + " (1 plugin files)",
        std::string("libplugrad-backend-cpu.so"), std::string("not an ELF file")})
    EXPECT_CONTAINS(message, part);
}

TEST(Search, NamesTheDevicesThereAreBesideAnUnknownOne) {
  const Prefix prefix;
  add_plugin(variant("two_devices"), prefix.plugins(), "tiny");
  for (const std::string name : {"cpu", "tiny:2", "tiny:", "tiny:x", "tiny:-1", "tiny:1x", "tiny:99999999999999999999", ":0",
                                 "", "Tiny", "tiny:0:0", "tiny "}) {
    const Outcome outcome = prefix.probe({"device", name, "has", name});
    EXPECT_EQ(outcome.field("error", 1), "1") << name;
    EXPECT_CONTAINS(outcome.field("error", 2), "'" + name + "'");
    EXPECT_CONTAINS(outcome.field("error", 2), "tiny:0 tiny:1");
    EXPECT_EQ(outcome.field("has", 1), "no");
  }
  EXPECT_EQ(prefix.probe({"device", "tiny:1"}).field("device", 1), "tiny:1");
  EXPECT_EQ(prefix.probe({"device", "tiny"}).field("device", 1), "tiny:0");
}

TEST(Search, AsksOnlyThePluginOfTheNameForItsDevices) {
  const Prefix prefix;
  add_plugin(variant("count_aborts"), prefix.plugins(), "first");  // backend "tiny", found before "reference"
  add_plugin(test::plugin_path("libplugrad-backend-reference.so"), prefix.plugins(), "reference");
  const Outcome outcome =
      prefix.probe({"compute", "reference", "has", "reference:0", "options", "tiny mood=odd", "fork", "reference"});
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(outcome.field("value", 1), "3.500000");
  EXPECT_EQ(outcome.field("has", 1), "yes");
  EXPECT_EQ(outcome.field("forked", 1), "0");
  EXPECT_TRUE(prefix.probe({"quarantine", "-"}).all("quarantined").empty());
  for (const char* command : {"names", "records", "device"}) {  // these commands ask all plugins, or "tiny" alone
    const Outcome asked = prefix.probe({command, "tiny", "quarantine", "-", "clear", "-"});
    EXPECT_CONTAINS(asked.field("quarantined", 2), "SIGABRT");
  }
}

TEST(Search, TheDefaultIsThePluginThatOffersItself) {
  const std::filesystem::path cpu = test::plugin_path("libplugrad-backend-cpu.so");
  if (!std::filesystem::exists(cpu)) GTEST_SKIP() << "the plugin cpu is not built";
  const Prefix prefix;
  add_plugin(variant("count_aborts"), prefix.plugins(), "a");
  add_plugin(test::plugin_path("libplugrad-backend-reference.so"), prefix.plugins(), "b");
  add_plugin(cpu, prefix.plugins(), "c");
  EXPECT_EQ(prefix.probe({"default", "-"}).field("device", 1), "cpu:0");
}

TEST(Search, ThereIsNoDefaultWhereNoPluginOffersItself) {
  const Prefix prefix;
  add_plugin(variant("tiny"), prefix.plugins(), "tiny");
  add_plugin(test::plugin_path("libplugrad-backend-reference.so"), prefix.plugins(), "reference");
  const std::string message = prefix.probe({"default", "-"}).field("error", 2);
  for (const std::string& part : {std::string("no default device"), prefix.plugins().string(), std::string("tiny:0"),
                                  std::string("reference:0"), std::string("set_default_device")})
    EXPECT_CONTAINS(message, part);
}

TEST(Search, SearchesBeforeItCallsADeviceOfALoadedPluginUnknown) {
  const Prefix prefix;
  const fs::path elsewhere = add_plugin(variant("tiny"), prefix.directory("elsewhere"), "tiny");
  add_plugin(test::plugin_path("libplugrad-backend-reference.so"), prefix.plugins(), "reference");
  const Outcome outcome = prefix.probe({"load", elsewhere, "device", "tiny:5"});
  EXPECT_CONTAINS(outcome.field("error", 2), "tiny:0");
  EXPECT_CONTAINS(outcome.field("error", 2), "reference:0");
}

TEST(Search, TakesDirectoriesOfTheProgramOnlyWhileItMatters) {
  const Prefix prefix;
  const Outcome relative = prefix.probe({"add", "here", "directories", "-"});
  EXPECT_CONTAINS(relative.field("error", 2), "'here'");
  EXPECT_CONTAINS(relative.field("error", 2), "absolute");
  EXPECT_EQ(relative.all("directory").size(), 1u);
  EXPECT_CONTAINS(prefix.probe({"names", "-", "add", "/late"}).field("error", 2), "load_plugin");
}

TEST(Load, TakesAnAbsolutePathAtAnyTime) {
  const Prefix prefix;
  const fs::path file = add_plugin(variant("tiny"), prefix.directory("elsewhere"), "tiny");
  const Outcome outcome = prefix.probe({"names", "-", "load", file, "compute", "tiny", "records", "-"});
  EXPECT_EQ(outcome.field("loaded", kStage), "ready");
  EXPECT_EQ(outcome.field("loaded", kVersion), "7.1");
  EXPECT_EQ(outcome.field("value", 1), "3.500000");
  EXPECT_EQ(record_of(outcome, file).at(kStage), "ready");
}

TEST(Load, RefusesRelativePathsAndWhatIsNotThere) {
  const Prefix prefix;
  const fs::path file = add_plugin(variant("tiny"), prefix.root(), "tiny");
  for (const std::string path : {"libplugrad-backend-tiny.so", "./libplugrad-backend-tiny.so", ""}) {
    const Outcome outcome = prefix.probe({"go", prefix.root(), "load", path});
    EXPECT_EQ(outcome.field("error", 1), "1") << path;
    EXPECT_CONTAINS(outcome.field("error", 2), "absolute");
  }
  const std::string missing = (prefix.root() / "missing.so").string();
  EXPECT_CONTAINS(prefix.probe({"load", missing}).field("error", 2), missing);
  EXPECT_CONTAINS(prefix.probe({"load", missing}).field("error", 2), "No such file");
}

TEST(Load, AFileThatTheSearchFoundStaysAsItIs) {
  const Prefix prefix;
  const fs::path file = add_plugin(variant("tiny"), prefix.plugins(), "tiny"), link = prefix.root() / "link.so";
  fs::create_symlink(file, link);
  const Outcome outcome = prefix.probe({"names", "-", "load", file, "load", link, "records", "-", "device", "tiny"});
  ASSERT_EQ(outcome.all("loaded").size(), 2u);
  for (const Line& each : outcome.all("loaded")) EXPECT_EQ(each.at(kPath), file);
  EXPECT_EQ(outcome.all("record").size(), 1u);
  EXPECT_EQ(outcome.field("device", 3), file);
}

TEST(Load, ASecondOneOfThatNameIsShadowed) {
  const Prefix prefix;
  const fs::path first = add_plugin(variant("tiny"), prefix.root(), "one"),
                 second = add_plugin(variant("tiny"), prefix.root(), "two");
  const Outcome outcome = prefix.probe({"load", first, "load", second, "records", "-", "device", "tiny"});
  EXPECT_CONTAINS(outcome.field("error", 2), first.string());
  EXPECT_CONTAINS(outcome.field("error", 2), "shadowed");
  EXPECT_EQ(record_of(outcome, second).at(kStage), "shadowed");
  EXPECT_EQ(outcome.field("device", 3), first);
}

// Files that have the name of a plugin but are not plugins.
struct Odd {
  const char* name;
  void (*make)(const fs::path& file);
  const char* reason;
};
void patch(const fs::path& file, size_t at, const std::string& bytes) {
  std::string all = read_file(variant("tiny"));
  write_file(file, all.replace(at, bytes.size(), bytes));
}
const Odd kOdd[] = {
    {"empty", [](const fs::path& f) { write_file(f, ""); }, "too short"},
    {"short",
     [](const fs::path& f) {
       write_file(f,
                  "\x7f"
                  "ELF");
     },
     "too short"},
    {"text", [](const fs::path& f) { write_file(f, std::string(5000, 'x')); }, "not an ELF file"},
    {"directory", [](const fs::path& f) { fs::create_directory(f); }, "not a regular file"},
    {"pipe", [](const fs::path& f) { ASSERT_EQ(mkfifo(f.c_str(), 0600), 0); }, "not a regular file"},
    {"dangling", [](const fs::path& f) { fs::create_symlink("/nowhere/at/all", f); }, "No such file"},
    {"machine", [](const fs::path& f) { patch(f, offsetof(Elf64_Ehdr, e_machine), std::string("\x16\0", 2)); },
     "another machine"},
    {"class", [](const fs::path& f) { patch(f, EI_CLASS, std::string(1, ELFCLASS32)); }, "64-bit"},
    {"endian", [](const fs::path& f) { patch(f, EI_DATA, std::string(1, ELFDATA2MSB)); }, "little-endian"},
    {"type", [](const fs::path& f) { patch(f, offsetof(Elf64_Ehdr, e_type), std::string("\x01\0", 2)); },
     "not a shared object"},
    {"half", [](const fs::path& f) { write_file(f, read_file(variant("tiny")).substr(0, 4000)); }, "truncated"},
};

TEST(Files, ThatAreNoPluginsAreRecordedWithTheReasonAndDoNoHarm) {
  const Prefix prefix;
  for (const Odd& odd : kOdd) odd.make(prefix.plugins() / ("libplugrad-backend-" + std::string(odd.name) + ".so"));
  add_plugin(variant("tiny"), prefix.plugins(), "tiny");
  const Outcome outcome = prefix.probe({"records", "-", "compute", "tiny"});
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(outcome.field("value", 1), "3.500000");
  for (const Odd& odd : kOdd) {
    const Line record = record_of(outcome, prefix.plugins() / ("libplugrad-backend-" + std::string(odd.name) + ".so"));
    EXPECT_EQ(record.at(kStage), "found") << odd.name;
    EXPECT_CONTAINS(record.at(kReason), odd.reason);
  }
}

TEST(Files, ThatNobodyMayReadAreRecorded) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads every file";
  const Prefix prefix;
  const fs::path file = add_plugin(variant("tiny"), prefix.plugins(), "tiny");
  fs::permissions(file, fs::perms::none);
  EXPECT_CONTAINS(record_of(prefix.probe({"records", "-"}), file).at(kReason), "Permission denied");
}

TEST(Log, HasALineForEachRefusedFile) {
  const Prefix prefix;
  const fs::path file = add_plugin(variant("null_table"), prefix.plugins(), "null");
  const Outcome outcome = prefix.probe({"log", "info", "records", "-"});
  EXPECT_CONTAINS(outcome.field("log", 2), file.string());
  EXPECT_CONTAINS(outcome.field("log", 2), "null");
}

}  // namespace
}  // namespace plugrad::test
