// The output of plugrad-conform: its messages about faulty plugins and about files that are not plugins.
#include <sdk/conformance/sanitizer.hpp>
#include <tests/conformance/program.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

namespace {

namespace fs = std::filesystem;

const std::string kProgram = PLUGRAD_CONFORM, kFolder = PLUGRAD_FAULTY;

const std::string kFaulty = kFolder + "/libplugrad-backend-faulty.so";
const std::string kFaultyStreams = kFolder + "/libplugrad-backend-faulty-streams.so";

// Runs the program on the faulty plugin with one of its bugs.
Said with_bug(const std::string& bug, std::vector<std::string> arguments, const std::string& plugin = kFaulty) {
  std::vector<std::string> line = {"env", "PLUGRAD_BUG=" + bug, kProgram};
  line.insert(line.end(), arguments.begin(), arguments.end());
  line.push_back(plugin);
  return run_program(line);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Expects one line with the reason, and status 2.
void expect_refused(const std::vector<std::string>& arguments, const std::string& reason) {
  std::vector<std::string> line = {kProgram};
  line.insert(line.end(), arguments.begin(), arguments.end());
  const Said said = run_program(line);
  EXPECT_EQ(said.status, 2) << said.text;
  EXPECT_TRUE(contains(said.text, reason)) << "expected: " << reason << "\n" << said.text;
  EXPECT_EQ(std::count(said.text.begin(), said.text.end(), '\n'), 1) << said.text;
}

struct Planted {
  const char* bug;
  const char* only;  // the case that finds the bug, so that other cases need not run
  const char* line;
};

void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.bug; }

class PlantedBug : public testing::TestWithParam<Planted> {};

TEST_P(PlantedBug, IsFound) {
  if (plugrad::conformance::kSanitized &&
      (GetParam().bug == std::string("crashes") || GetParam().bug == std::string("reads_past") ||
       GetParam().only == std::string("memory.wide") || GetParam().only == std::string("memory.leaks")))
    GTEST_SKIP() << "sanitizers report crashes themselves";
  const Said said = with_bug(GetParam().bug, {"--only", GetParam().only});
  EXPECT_EQ(said.status, 1) << said.text;
  EXPECT_TRUE(contains(said.text, "FAIL")) << said.text;
  EXPECT_TRUE(contains(said.text, GetParam().line)) << "expected: " << GetParam().line << "\n" << said.text;
}

INSTANTIATE_TEST_SUITE_P(
    Conform, PlantedBug,
    testing::Values(
        Planted{"wrong_exp", "EXP", "EXP f32,f32 [dense]"}, Planted{"past_end", "EXP", "bytes past its end"},
        Planted{"ignores_negative", "ADD", "ADD f32,f32,f32 [negative]"}, Planted{"nan_in_max", "MAXIMUM", "expected=nan"},
        Planted{"wrong_philox", "UNIFORM", "UNIFORM f32,i64,i64 [dense]"},
        Planted{"no_report", "contract.unknown_option", "without host->report"},
        Planted{"null_alloc", "contract.entries", "one of alloc and free is null"},
        Planted{"changes_table", "contract.table", "the entry returns a different table"},
        Planted{"changes_input", "ADD", "input: "}, Planted{"unchecked_index", "failure.indices", "expected INDEX_ERROR"},
        Planted{"copy_declines", "COPY", "FILL, COPY and CAST must serve every class"},
        Planted{"subset_declined", "EXP", "declines its subset STRIDED"},
        Planted{"ignores_accumulate", "SUM", "SUM f32,f32 +accumulate [dense]"}, Planted{"loose_bool", "LT", "got=255"},
        Planted{"in_place", "EXP", "in place of input 0"}, Planted{"large_workspace", "SUM", "workspace: "},
        Planted{"unknown_dtype", "contract.unknown_questions", "resolve returned a kernel for dtype 200"},
        Planted{"keeps_attributes", "GATHER", "GATHER f32,f32,i64 [dense]"},
        Planted{"silent_no_device", "contract.table", "0 devices without a reason"},
        Planted{"equal_to_extent", "failure.indices", "[index of the extent]"},
        Planted{"reads_past", "memory.edges", "crashed with SIGSEGV in memory.edges COPY f32,f32 past its operands"},
        Planted{"narrow_offsets", "memory.wide", "FAIL memory.wide: "},
        Planted{"leaks", "memory.leaks", "each run of FILL leaves"},
        Planted{"writes_views", "ADD", "run wrote to the host's views or attributes"},
        Planted{"quiets_nan", "COPY", "bound=bits"}, Planted{"wrong_when_large", "ADD", "shape=(262147)x(262147)"},
        Planted{"swaps_fields", "contract.transcription",
                "the plugin has view.offset as 8 bytes at offset 16, expected 8 bytes at offset 8"},
        Planted{"forgets_a_field", "contract.transcription",
                "the plugin's list has backend.reserved 0 times, expected once"},
        Planted{"opens_all", "contract.open_beyond", "open of device 1 returned OK; count says 1"},
        Planted{"crashes", "EXP", "FAIL op.EXP: the process crashed with SIGSEGV in op.EXP f32,f32 [dense]"},
        Planted{"zero_halves", "MATMUL", "MATMUL bf16,bf16,bf16 [dense]"},
        Planted{"doubled_halves", "MATMUL", "MATMUL bf16,bf16,bf16 [dense]"},
        Planted{"rounds_each_half", "MATMUL", "MATMUL bf16,bf16,bf16 [dense]"},
        Planted{"rounds_the_mean", "LAYER_NORM", "LAYER_NORM bf16,f32,f32,bf16,bf16,bf16 [dense]"},
        Planted{"rounds_the_scale", "LAYER_NORM", "LAYER_NORM bf16,f32,f32,bf16,bf16,bf16 [dense]"},
        Planted{"bad_name", "contract.name", "the name 'Faulty One' does not match"}),
    [](const auto& row) { return std::string(row.param.bug); });

// --- Harm that the process that runs a plugin must survive.

struct Harm {
  const char* what;  // PLUGRAD_HOSTILE
  const char* only;
  const char* line;
};

void PrintTo(const Harm& harm, std::ostream* out) { *out << harm.what; }

class Hostile : public testing::TestWithParam<Harm> {};

TEST_P(Hostile, IsAFailureThatNamesTheCaseAndNeverTheEnd) {
  if (plugrad::conformance::kSanitized) GTEST_SKIP() << "sanitizers report crashes themselves";
  const Said said = run_program({"env", "PLUGRAD_HOSTILE=" + std::string(GetParam().what), kProgram, "--deadline", "2",
                                 "--only", GetParam().only, PLUGRAD_HOSTILE_PLUGIN});
  EXPECT_EQ(said.status, 1) << said.text;
  EXPECT_TRUE(contains(said.text, GetParam().line)) << "expected: " << GetParam().line << "\n" << said.text;
  EXPECT_TRUE(contains(said.text, " failures\n")) << said.text;
}

INSTANTIATE_TEST_SUITE_P(
    Conform, Hostile,
    testing::Values(Harm{"abort@constructor", "contract.table", "process crashed with SIGABRT in loading"},
                    Harm{"exit0@constructor", "contract.table", "process ended the process with status 0 in loading"},
                    Harm{"sleep@constructor", "contract.table", "gave no sign of life for 2 s in loading"},
                    Harm{"throw_int@entry", "contract.table", "the entry function threw a value of type int"},
                    Harm{"throw_error@entry", "contract.table", "the entry function threw an exception: the machine"},
                    Harm{"exit0@entry", "contract.table", "with status 0 in loading"},
                    Harm{"segfault@count", "contract.table", "crashed with SIGSEGV in count"},
                    Harm{"throw_error@count", "contract.table", "count threw an exception: the machine is on fire"},
                    Harm{"exit3@count", "contract.table", "with status 3 in count"},
                    Harm{"deaf_loop@count", "contract.table", "gave no sign of life for 2 s in count"},
                    Harm{"abort@open", "contract.table", "crashed with SIGABRT in open"},
                    Harm{"exit0@open", "contract.table", "with status 0 in open"},
                    Harm{"throw_int@open", "contract.table", "open threw a value of type int"},
                    Harm{"throw_error@alloc", "memory.alloc", "alloc threw an exception"},
                    Harm{"segfault@alloc", "memory.alloc", "FAIL memory.alloc: the process crashed with SIGSEGV"},
                    Harm{"exit0@run", "ADD", "FAIL op.ADD: the process ended the process with status 0 in op.ADD"},
                    Harm{"_exit0@run", "ADD", "FAIL op.ADD: the process ended the process with status 0 in op.ADD"},
                    Harm{"quick_exit@run", "ADD", "with status 0 in op.ADD"},
                    Harm{"abort@run", "ADD", "crashed with SIGABRT in op.ADD f32,f32,f32 [dense]"},
                    Harm{"overflow@run", "ADD", "crashed with SIGSEGV in op.ADD f32,f32,f32 [dense]"},
                    Harm{"kill@run", "ADD", "crashed with SIGKILL in op.ADD"},
                    Harm{"terminate@run", "ADD", "crashed with SIGTERM in op.ADD"},
                    Harm{"crash_later@run", "ADD", "crashed with SIGABRT"},
                    Harm{"throw_int@run", "ADD", "run threw a value of type int"},
                    Harm{"throw_error@run", "ADD", "run threw an exception: the machine is on fire"},
                    Harm{"throw_error@resolve", "ADD", "threw an exception: the machine is on fire"},
                    Harm{"throw_int@workspace", "ADD", "threw a value of type int"},
                    Harm{"sleep@run", "ADD", "FAIL op.ADD: the process gave no sign of life for 2 s in op.ADD"},
                    Harm{"loop@run", "ADD", "gave no sign of life for 2 s in op.ADD"},
                    Harm{"deaf_loop@run", "ADD", "gave no sign of life for 2 s in op.ADD"},
                    Harm{"stop@run", "ADD", "gave no sign of life for 2 s in op.ADD"},
                    Harm{"flood_stdout@run", "ADD", "FAIL process.output: op.ADD: the plugin printed 'xxxx"},
                    Harm{"flood_stderr@run", "ADD", "FAIL process.output: op.ADD: the plugin printed 'xxxx"},
                    Harm{"handler@run", "ADD", "FAIL process.state: op.ADD: the plugin changed the handler of SIGSEGV"},
                    Harm{"interrupt@run", "ADD", "the plugin changed the handler of SIGINT"},
                    Harm{"rounding@run", "ADD", "the plugin changed the rounding mode"},
                    Harm{"flush@run", "ADD", "the plugin changed the floating-point mode"},
                    Harm{"mask@run", "ADD", "the plugin changed the signal mask"},
                    Harm{"umask@run", "ADD", "the plugin changed the umask"},
                    Harm{"locale@run", "ADD", "the plugin changed the locale"},
                    Harm{"directory@run", "ADD", "the plugin changed the current directory"},
                    Harm{"abort@destructor", "contract.table", "FAIL process.end: the process crashed with SIGABRT in exit"},
                    Harm{"sleep@destructor", "contract.table", "FAIL process.end: the process gave no sign of life"}),
    [](const auto& row) {
      std::string name = row.param.what;
      std::ranges::replace(name, '@', '_');
      return name;
    });

TEST(Conform, GoesOnAfterACrash) {
  if (plugrad::conformance::kSanitized) GTEST_SKIP() << "sanitizers report crashes themselves";
  for (const char* jobs : {"1", "3"}) {
    const Said said = with_bug("crashes", {"--only", "EXP,ADD,MAXIMUM", "--json", "--jobs", jobs});
    EXPECT_EQ(said.status, 1) << said.text;
    EXPECT_TRUE(contains(said.text, R"("name": "op.EXP", "cases": 1, "failures": 1)")) << said.text;
    EXPECT_TRUE(contains(said.text, R"("op": "ADD")")) << said.text;
    EXPECT_TRUE(contains(said.text, R"("op": "MAXIMUM")")) << said.text;
  }
}

TEST(Conform, RunsCasesInSeveralProcesses) {
  const Said one = with_bug("sound", {}), three = with_bug("sound", {"--jobs", "3"});
  EXPECT_EQ(three.status, 0) << three.text;
  EXPECT_EQ(one.text, three.text);
}

TEST(Conform, RunsInItsOwnProcessForADebugger) {
  const Said said = with_bug("wrong_exp", {"--in-process", "--only", "EXP"});
  EXPECT_EQ(said.status, 1);
  EXPECT_TRUE(contains(said.text, "FAIL op.EXP: EXP f32,f32 [dense]")) << said.text;
}

TEST(Conform, PrintsTheCommandThatShowsAFailureAgain) {
  const Said said = with_bug("wrong_exp", {"--only", "EXP", "--seed", "7"});
  EXPECT_TRUE(contains(said.text, "again: plugrad-conform " + kFaulty + " --seed 7 --only op.EXP\n")) << said.text;
}

TEST(Conform, TakesCasesByDtype) {
  const Said said = with_bug("sound", {"--only", "EXP,ADD", "--dtype", "f64"});
  EXPECT_EQ(said.status, 0) << said.text;
  EXPECT_FALSE(contains(said.text, "f32,f32")) << said.text;
  expect_refused({"--dtype", "f33", kFaulty}, "--dtype f33: there is no such dtype");
}

TEST(Conform, WritesJUnit) {
  const std::string file = (fs::temp_directory_path() / ("conform-" + std::to_string(getpid()) + ".xml")).string();
  with_bug("wrong_exp", {"--only", "EXP,ADD,CUMSUM", "--junit", file});
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  fs::remove(file);
  EXPECT_TRUE(contains(text, "tests=\"6\" failures=\"1\" time=\"")) << text;
  const std::regex times(" time=\"([^\"]*)\"");
  const std::string without = std::regex_replace(text, times, "");
  EXPECT_TRUE(contains(without, "name=\"op.EXP\"><failure message=")) << text;
  EXPECT_TRUE(contains(without, "name=\"op.ADD\"></testcase>")) << text;
  EXPECT_TRUE(contains(without, "name=\"op.CUMSUM\"><skipped")) << text;
  double sum = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), times), end; at != end; ++at) sum += std::stod((*at)[1]);
  EXPECT_GT(sum, 0) << text;
}

TEST(Conform, KnowsFailuresThatAreExpected) {
  const std::string file = (fs::temp_directory_path() / ("conform-" + std::to_string(getpid()) + ".txt")).string();
  std::ofstream(file) << "# known\nop.EXP   # wrong in the last bits\n";
  const Said known = with_bug("wrong_exp", {"--only", "EXP,ADD", "--skip", file});
  EXPECT_EQ(known.status, 0) << known.text;
  EXPECT_TRUE(contains(known.text, "fails as expected")) << known.text;
  const Said stale = with_bug("sound", {"--only", "EXP,ADD", "--skip", file});
  EXPECT_EQ(stale.status, 1) << stale.text;
  EXPECT_TRUE(contains(stale.text, "op.EXP does not fail any more")) << stale.text;
  fs::remove(file);
  expect_refused({"--skip", file, kFaulty}, "cannot be read");
}

TEST(Conform, FindsAKernelThatDeclinesAll) {
  const Said said = with_bug("declines", {"--only", "ADD"});
  EXPECT_EQ(said.status, 1) << said.text;
  EXPECT_TRUE(contains(said.text, "resolve returns a kernel, but run declines all")) << said.text;
}

class PlantedStreamBug : public testing::TestWithParam<Planted> {};

TEST_P(PlantedStreamBug, IsFound) {
  if (!fs::exists(kFaultyStreams)) GTEST_SKIP() << "sim, which has the bugs, is not built";
  const Said said = with_bug(GetParam().bug, {"--only", GetParam().only}, kFaultyStreams);
  EXPECT_EQ(said.status, 1) << said.text;
  EXPECT_TRUE(contains(said.text, GetParam().line)) << "expected: " << GetParam().line << "\n" << said.text;
}

INSTANTIATE_TEST_SUITE_P(
    Conform, PlantedStreamBug,
    testing::Values(Planted{"null_function", "native.table", "a function of the extension is null"},
                    Planted{"one_handle", "native.handle", "two streams have the same native handle"},
                    Planted{"unordered_wait", "native.wait", "work after a wait started before"},
                    Planted{"unordered_signal", "native.signal", "work after a signal started before"},
                    Planted{"unordered_signal", "native.number", "started before the work that the native wait covers"},
                    Planted{"notice_early", "native.notice", "notify called back before the number was done"},
                    Planted{"notice_twice", "native.notice", "times for 3 calls that returned OK"},
                    Planted{"notice_lost", "native.notice", "notify does not call back for a number that is done"},
                    Planted{"notice_of_future", "native.notice", "expected INVALID"},
                    Planted{"list_without_drop", "list.table", "a function of the extension is null"},
                    Planted{"list_frozen", "list.changes", "whose numbers and places change made"},
                    Planted{"list_frozen", "list.long", "three runs of 200 additions made"},
                    Planted{"list_without_last", "list.changes", "run 1 returned INVALID"},
                    Planted{"list_without_last", "list.batches", "on a stream whose next number is"},
                    Planted{"list_of_other_numbers", "list.order", "run fails"}),
    [](const auto& row) {
      const std::string_view only = row.param.only;
      return std::string(row.param.bug) + "_in_" + std::string(only.substr(only.find('.') + 1));
    });

TEST(Conform, FindsNothingInSoundStreams) {
  if (!fs::exists(kFaultyStreams)) GTEST_SKIP() << "sim is not built";
  for (const char* only : {"native.table", "native.handle", "native.wait", "native.signal", "native.number", "native.notice",
                           "native.notices", "native.failed_notice", "list.table", "list.changes", "list.long", "list.order",
                           "list.failure", "list.drop", "list.batches"}) {
    const Said said = with_bug("sound", {"--only", only}, kFaultyStreams);
    EXPECT_EQ(said.status, 0) << said.text;
    EXPECT_FALSE(contains(said.text, "skipped")) << said.text;
  }
}

TEST(Conform, FindsExportsBesidesTheEntry) {
  const Said said = run_program({kProgram, "--only", "contract.exports", kFolder + "/libplugrad-exports-more.so"});
  EXPECT_EQ(said.status, 1) << said.text;
  EXPECT_TRUE(contains(said.text, "exports plugrad_left_visible besides plugrad_backend_v0")) << said.text;
}

TEST(Conform, FindsNothingInASoundPlugin) {
  const Said said = with_bug("sound", {});
  EXPECT_EQ(said.status, 0) << said.text;
  EXPECT_TRUE(contains(said.text, " 0 failures")) << said.text;
  EXPECT_TRUE(contains(said.text, "missing:")) << "a plugin with few ops does not complete tier 0\n" << said.text;
}

TEST(Conform, CountsWhatTier0LacksOnRequest) {
  const Said said = with_bug("sound", {"--require-tier0"});
  EXPECT_EQ(said.status, 1);
  EXPECT_TRUE(contains(said.text, "FAIL tier0: MATMUL f32,f32,f32 is missing")) << said.text;
}

TEST(Conform, TakesAPluginWithoutDeviceAndWithReason) {
  const Said said = with_bug("no_device", {});
  EXPECT_EQ(said.status, 0);
  EXPECT_TRUE(contains(said.text, "loads, but has no device: no accelerator on the bus")) << said.text;
}

TEST(Conform, RefusesAForeignTable) {
  const Said said = with_bug("foreign_hash", {});
  EXPECT_EQ(said.status, 2);
  EXPECT_TRUE(contains(said.text, "its layout hash of revision 0 is 0x0123456789abcdef, expected 0x")) << said.text;
}

TEST(Conform, WritesJson) {
  const Said said = with_bug("wrong_exp", {"--json", "--only", "EXP"});
  EXPECT_EQ(said.status, 1);
  EXPECT_EQ(said.text.front(), '{');
  EXPECT_TRUE(contains(said.text, "\"dense\": \"failed\"")) << said.text;
  EXPECT_TRUE(contains(said.text, "\"backend\": \"faulty\"")) << said.text;
}

TEST(Conform, ListsItsCases) {
  const Said said = run_program({kProgram, "--list"});
  EXPECT_EQ(said.status, 0);
  for (const char* name :
       {"contract.table\n", "memory.round_trip\n", "stream.wait\n", "native.wait\n", "op.EXP\n", "thread.kernels\n"})
    EXPECT_TRUE(contains(said.text, name)) << name;
}

TEST(Conform, ShowsHelpWithExamples) {
  const Said said = run_program({kProgram, "--help"});
  EXPECT_EQ(said.status, 0);
  EXPECT_TRUE(contains(said.text, "examples:") && contains(said.text, "--require-tier0")) << said.text;
}

TEST(Conform, RefusesBadUsage) {
  expect_refused({}, "expected the path of a plugin's file");
  expect_refused({"--no-such-option", kFaulty}, "--no-such-option");
  expect_refused({"--only", "NOSUCHOP", kFaulty}, "no case has that name");
  expect_refused({"--option", "threads", kFaulty}, "expected key=value");
  expect_refused({"--device", "7", kFaulty}, "the plugin has 1 devices");
}

TEST(Conform, RefusesFilesThatAreNoPlugin) {
  const fs::path folder = fs::temp_directory_path() / ("plugrad-conform-" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::ifstream whole(kFaulty, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  std::ofstream(folder / "text.so") << "not a shared object, but text that is longer than a header: 0123456789";
  std::ofstream(folder / "cut.so", std::ios::binary) << bytes.substr(0, bytes.size() / 3);
  std::string foreign = bytes;
  foreign[18] = 0x28;  // e_machine: 32-bit ARM
  std::ofstream(folder / "foreign.so", std::ios::binary) << foreign;
  ASSERT_EQ(mkfifo((folder / "fifo.so").c_str(), 0600), 0);
  expect_refused({(folder / "missing.so").string()}, "no such file");
  expect_refused({(folder / "text.so").string()}, "no ELF header");
  expect_refused({(folder / "cut.so").string()}, "cut short");
  expect_refused({(folder / "foreign.so").string()}, "for a different machine");
  expect_refused({(folder / "fifo.so").string()}, "not a regular file");
  expect_refused({folder.string()}, "not a regular file");
  expect_refused({kFolder + "/libplugrad-no-entry.so"}, "exports no plugrad_backend_v0");
  fs::remove_all(folder);
}

}  // namespace
