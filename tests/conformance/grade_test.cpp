// The levels of a plugin: computed from results, and printed by plugrad-conform.
#include <sdk/conformance/grade.hpp>
#include <sdk/conformance/session.hpp>
#include <tests/conformance/program.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

namespace plugrad::conformance {
namespace {

namespace fs = std::filesystem;

Found passed(const std::string& name) { return {name, {1, 0, 0, {}, {}, {}}, false}; }
Found failed(const std::string& name) { return {name, {1, 1, 0, {"why"}, {}, {}}, false}; }

// A run without failures, training included.
Summary sound() {
  Summary summary;
  for (const Case& each : all_cases()) summary.found.push_back(passed(each.name));
  for (const char* name : {"process.output", "train.mlp", "train.cnn"}) summary.found.push_back(passed(name));
  return summary;
}

TEST(Grades, ASoundPluginHasThemAll) {
  const Grade grade = grade_of(sound(), kLevels - 1);
  EXPECT_EQ(grade.level, 5);
  EXPECT_EQ(grade.next, "");
  EXPECT_GT(grade.tier1_ops, 40);
  EXPECT_EQ(grade.tier1, grade.tier1_ops);
  EXPECT_EQ(text_of(grade), "level: L5 asynchronous; tier 1: " + std::to_string(grade.tier1) + " of " +
                                std::to_string(grade.tier1_ops) + " ops (100%)\n");
}

struct Lack {
  const char* failing;
  int level;
  const char* next;
};

class OneFailure : public testing::TestWithParam<Lack> {};

TEST_P(OneFailure, EndsTheGradeBelowItsLevel) {
  Summary summary = sound();
  for (Found& found : summary.found)
    if (found.name == GetParam().failing) found = failed(found.name);
  const Grade grade = grade_of(summary, kLevels - 1);
  EXPECT_EQ(grade.level, GetParam().level);
  EXPECT_EQ(grade.next, GetParam().next);
}

INSTANTIATE_TEST_SUITE_P(Grades, OneFailure,
                         testing::Values(Lack{"contract.table", -1, "L0 loads: contract.table fails"},
                                         Lack{"process.output", -1, "L0 loads: process.output fails"},
                                         Lack{"memory.alloc", 0, "L1 memory: memory.alloc fails"},
                                         Lack{"op.MATMUL", 1, "L2 tier 0: op.MATMUL fails"},
                                         Lack{"failure.indices", 1, "L2 tier 0: failure.indices fails"},
                                         Lack{"train.cnn", 2, "L3 trains: train.cnn fails"},
                                         Lack{"stream.order", 4, "L5 asynchronous: stream.order fails"},
                                         Lack{"thread.kernels", 3, "L4 under stress: thread.kernels fails"}),
                         [](const auto& row) {
                           std::string name = row.param.failing;
                           name[name.find('.')] = '_';
                           return name;
                         });

TEST(Grades, EveryCaseBelongsToALevelOrIsAnOpOfTier1) {
  for (const Case& each : all_cases()) {
    if (each.name.starts_with("op.") || each.name == "replay") continue;
    EXPECT_GE(level_of(each.name), 0) << each.name;
  }
  EXPECT_EQ(level_of("op.GELU"), -1);
}

TEST(Grades, MissingKernelsAndTrainingThatWasNotTriedEndTheGrade) {
  Summary summary = sound();
  std::erase_if(summary.found, [](const Found& found) { return found.name.starts_with("train."); });
  EXPECT_EQ(grade_of(summary, kLevels - 1).next, "L3 trains: training was not tried (--train)");
  summary.missing_of_tier0 = {"ADD f32,f32,f32", "EXP f32,f32"};
  EXPECT_EQ(grade_of(summary, kLevels - 1).next, "L2 tier 0: 2 kernels of tier 0 are missing");
}

TEST(Grades, ACaseThatDidNotBeginEndsTheGrade) {
  Summary summary = sound();
  std::erase_if(summary.found, [](const Found& found) { return found.name == "memory.alloc"; });
  summary.not_begun = {"memory.alloc"};
  EXPECT_EQ(grade_of(summary, kLevels - 1).level, 0);
  EXPECT_EQ(grade_of(summary, kLevels - 1).next, "L1 memory: memory.alloc did not begin within the time of --budget");
}

TEST(Grades, AnOpOfTier1ThatFailsCostsPercents) {
  Summary summary = sound();
  for (Found& found : summary.found)
    if (found.name == "op.GELU" || found.name == "op.SOFTMAX") found = failed(found.name);
  const Grade grade = grade_of(summary, kLevels - 1);
  EXPECT_EQ(grade.level, 5);
  EXPECT_EQ(grade.tier1, grade.tier1_ops - 2);
}

TEST(Grades, ADeviceWithoutStreamsIsNotAsynchronous) {
  Summary summary = sound();
  for (Found& found : summary.found)
    if (found.name.starts_with("stream.")) found.result = {0, 0, 0, {}, {}, {}};
  const Grade grade = grade_of(summary, kLevels - 1);
  EXPECT_EQ(grade.level, 4);
  EXPECT_EQ(grade.next, "L5 asynchronous: the device has no streams");
}

TEST(Grades, CasesThatDidNotRunCountForNothing) {
  const Grade grade = grade_of(sound(), 1);
  EXPECT_EQ(grade.level, 1);
  EXPECT_EQ(text_of(grade), "level: L1 memory\n");
  EXPECT_NE(badge_of(grade, "npu & co").find("<title>plugrad: L1 memory</title>\n<desc>npu &amp; co</desc>"),
            std::string::npos);
}

TEST(Levels, OfAPluginThatTrains) {
  const fs::path badge = fs::temp_directory_path() / ("plugrad-badge-" + std::to_string(getpid()) + ".svg");
  const Said said = run_program({PLUGRAD_CONFORM, "--level", "3", "--badge", badge.string(), "--jobs", "2", PLUGRAD_TRAINS});
  EXPECT_EQ(said.status, 0) << said.text;
  EXPECT_NE(said.text.find("\nlevel: L3 trains\n"), std::string::npos) << said.text;
  EXPECT_NE(said.text.find("train.transformer "), std::string::npos) << said.text;
  std::ifstream file(badge);
  const std::string drawn{std::istreambuf_iterator<char>(file), {}};
  fs::remove(badge);
  EXPECT_TRUE(drawn.starts_with("<svg ") && drawn.find("L3 trains") != std::string::npos) << drawn;
  EXPECT_NE(drawn.find(" cases of plugrad-conform 0."), std::string::npos) << drawn;
  EXPECT_NE(drawn.find(", contract 0 revision 0, seed 1, 20"), std::string::npos) << drawn;
}

TEST(Levels, Tier0SufficesForTraining) {
  const Said said = run_program({PLUGRAD_CONFORM, "--level", "3", "--jobs", "2", PLUGRAD_TIER0});
  EXPECT_EQ(said.status, 0) << said.text;
  EXPECT_NE(said.text.find("\nlevel: L3 trains\n"), std::string::npos) << said.text;
}

TEST(Levels, OfAPluginThatLacksOpsOfTier0) {
  const Said said = run_program({PLUGRAD_CONFORM, "--level", "3", PLUGRAD_LACKS});
  EXPECT_EQ(said.status, 1) << said.text;
  EXPECT_NE(said.text.find("\nlevel: L1 memory\nnext:  L2 tier 0: "), std::string::npos) << said.text;
  EXPECT_NE(said.text.find("FAIL train.mlp: [uniform] c11:0 has no kernel"), std::string::npos) << said.text;
  EXPECT_NE(said.text.find("again: plugrad trial "), std::string::npos) << said.text;
  EXPECT_EQ(run_program({PLUGRAD_CONFORM, "--level", "1", PLUGRAD_LACKS}).status, 0);
}

TEST(Levels, TrainingNeedsTheProgramThatTrains) {
  const fs::path folder = fs::temp_directory_path() / ("plugrad-alone-" + std::to_string(getpid()));
  fs::create_directories(folder);
  fs::copy_file(PLUGRAD_CONFORM, folder / "plugrad-conform");
  const Said said = run_program({(folder / "plugrad-conform").string(), "--level", "3", PLUGRAD_LACKS});
  fs::remove_all(folder);
  EXPECT_EQ(said.status, 2) << said.text;
  EXPECT_NE(said.text.find("--train needs the program plugrad beside plugrad-conform; there is no "), std::string::npos);
}

TEST(Budget, EndsTheRunAndNamesWhatDidNotBegin) {
  const Said said = run_program({PLUGRAD_CONFORM, "--budget", "1", PLUGRAD_TRAINS});
  EXPECT_EQ(said.status, 0) << said.text;
  EXPECT_NE(said.text.find("contract.table"), std::string::npos);
  EXPECT_NE(said.text.find("not begun within the time of --budget: op.MATMUL\n"), std::string::npos) << said.text;
  EXPECT_NE(said.text.find("did not begin within the time of --budget\n"), std::string::npos) << said.text;
}

TEST(Perf, TimesTheKernelsThatThePluginHas) {
  const Said said = run_program({PLUGRAD_CONFORM, "--perf", PLUGRAD_LACKS});
  EXPECT_EQ(said.status, 0) << said.text;
  std::istringstream lines(said.text);
  std::map<std::string, std::pair<double, double>> times;  // times of a small call and of a large call
  std::string line, op;
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("copies of 64 MB: ")) << line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string dtype;
    words >> op >> dtype;
    words >> times[op].first >> times[op].second;
  }
  ASSERT_TRUE(times.contains("COPY") && times.contains("MATMUL")) << said.text;
  EXPECT_FALSE(times.contains("GELU")) << said.text;  // c11 has no kernel
  for (const auto& [name, each] : times) {
    EXPECT_GT(each.first, 0) << name;
    EXPECT_GT(each.second, 0) << name;
  }
}

// Also beside an earlier report, and with the shapes of a trace.
TEST(Perf, TimesTheChosenOpsInTheChosenDtypes) {
  const Said said = run_program({PLUGRAD_CONFORM, "--perf", "--only", "COPY,op.ADD", "--dtype", "f32,i64", PLUGRAD_LACKS});
  EXPECT_EQ(said.status, 0) << said.text;
  for (const char* row : {"COPY                    f32 ", "COPY                    i64 ", "ADD                     f32 "})
    EXPECT_NE(said.text.find(row), std::string::npos) << row << "\n" << said.text;
  EXPECT_EQ(said.text.find("\nMATMUL"), std::string::npos) << said.text;

  const std::string folder = ::testing::TempDir(), report = folder + "/report.json", trace = folder + "/trace.json";
  std::ofstream(report)
      << R"json({"rows": [{"op": "ADD", "dtype": "f32", "shape": "(3, 5) <- (3, 5), (3, 5)", "seconds": 3600}]})json";
  std::ofstream(trace) << R"json([
    {"name": "add", "cat": "forward", "dur": 7, "args": {"outputs": [{"dtype": "f32", "shape": [3, 5]}],
     "inputs": [{"dtype": "f32", "shape": [3, 5]}, {"dtype": "f32", "shape": [3, 5]}]}},
    {"name": "gather", "cat": "forward", "dur": 9, "args": {"outputs": [{"dtype": "f32", "shape": [3, 5]}],
     "inputs": [{"dtype": "f32", "shape": [3, 5]}, {"dtype": "i64", "shape": [3, 5]}]}}])json";
  const Said traced = run_program({PLUGRAD_CONFORM, "--perf", "--trace", trace, "--baseline", report, PLUGRAD_LACKS});
  EXPECT_EQ(traced.status, 0) << traced.text;
  EXPECT_NE(traced.text.find("a trace does not say its attributes: (3, 5) <- (3, 5), (3, 5), 1 calls"), std::string::npos)
      << traced.text;
  EXPECT_NE(traced.text.find("geometric mean of 1 rows"), std::string::npos) << traced.text;
  const Said wrong = run_program({PLUGRAD_CONFORM, "--perf", "--trace", report, PLUGRAD_LACKS});
  EXPECT_EQ(wrong.status, 2) << wrong.text;
  EXPECT_NE(wrong.text.find("is not a trace that a profiler wrote"), std::string::npos) << wrong.text;
  for (const char* option : {"--trace", "--baseline"}) {
    const Said unread = run_program({PLUGRAD_CONFORM, "--perf", option, folder, PLUGRAD_LACKS});
    EXPECT_EQ(unread.status, 2) << unread.text;
    EXPECT_NE(unread.text.find(folder + ": cannot be read"), std::string::npos) << unread.text;
  }
}

TEST(Levels, MisuseIsOneLine) {
  for (const auto& [arguments, reason] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--level", "6"}, "--level 6: a number from 0 to 5 expected"},
           {{"--level", "2", "--only", "EXP"}, "leave out --only and --dtype"},
           {{"--badge", "x.svg", "--only", "EXP"}, "--badge needs all cases"},
           {{"--perf", "--only", "memory.alloc"}, "--perf times ops: name ops with --only, such as EXP"},
           {{"--trace", "x.json"}, "--trace and --baseline need --perf"},
           {{"--budget", "0"}, "--budget: at least 1 second expected"}}) {
    std::vector<std::string> line = {PLUGRAD_CONFORM};
    line.insert(line.end(), arguments.begin(), arguments.end());
    line.push_back(PLUGRAD_LACKS);
    const Said said = run_program(line);
    EXPECT_EQ(said.status, 2);
    EXPECT_NE(said.text.find(reason), std::string::npos) << said.text;
  }
}

}  // namespace
}  // namespace plugrad::conformance
