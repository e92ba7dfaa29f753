// PLUGRAD_SHADOW, and plugrad-conform --replay of the cases that it writes.
#include <tests/conformance/program.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace {

namespace fs = std::filesystem;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Runs programs in a separate directory.
class Shadow : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("plugrad-shadow-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Said run(const std::string& op, const std::string& bug, const std::string& shadow) {
    return run_program({"env", "-C", folder_.string(), "PLUGRAD_BUG=" + bug, "PLUGRAD_SHADOW=" + shadow, PLUGRAD_SHADOWED,
                        PLUGRAD_FAULTY_PLUGIN, op});
  }
  std::vector<fs::path> cases() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path());
    return found;
  }
  Said replay(const fs::path& file, const std::string& bug) {
    return run_program({"env", "PLUGRAD_BUG=" + bug, PLUGRAD_CONFORM, "--replay", file.string(), PLUGRAD_FAULTY_PLUGIN});
  }

  fs::path folder_;
};

struct Divergence {
  const char* op;
  const char* bug;
  const char* error;
};

class Diverges : public Shadow, public testing::WithParamInterface<Divergence> {};

TEST_P(Diverges, IsNamedAndLeavesACaseThatFailsAlone) {
  const Divergence& d = GetParam();
  EXPECT_EQ(run(d.op, d.bug, "").status, 0);  // without the shadow there is no error
  const Said said = run(d.op, d.bug, "reference");
  EXPECT_EQ(said.status, 1);
  EXPECT_TRUE(contains(said.text, d.error)) << said.text;
  ASSERT_EQ(cases().size(), 1u) << said.text;
  EXPECT_TRUE(contains(said.text, "plugrad-conform --replay " + cases()[0].filename().string())) << said.text;
  const Said wrong = replay(cases()[0], d.bug), sound = replay(cases()[0], "sound");
  EXPECT_EQ(wrong.status, 1) << wrong.text;
  EXPECT_TRUE(contains(wrong.text, "FAIL replay: ")) << wrong.text;
  EXPECT_EQ(sound.status, 0) << sound.text;
  EXPECT_TRUE(contains(sound.text, "replay                             1 cases  ok")) << sound.text;
}

INSTANTIATE_TEST_SUITE_P(Ops, Diverges,
                         testing::Values(Divergence{"exp", "wrong_exp", "differ in output 0: element (0, 0) is 2.71830"},
                                         Divergence{"uniform", "wrong_philox",
                                                    "The call is f32 (7) <- i64 number, i64 number"}),
                         [](const auto& row) { return std::string(row.param.op); });

TEST_F(Shadow, OfASoundDeviceChangesNothing) {
  for (const char* op : {"exp", "add", "uniform", "gather"}) {
    const Said plain = run(op, "sound", ""), shadowed = run(op, "sound", "reference");
    EXPECT_EQ(shadowed.status, 0) << shadowed.text;
    EXPECT_EQ(shadowed.text, plain.text);
  }
  EXPECT_TRUE(cases().empty());
}

TEST_F(Shadow, NeedsADeviceInHostMemory) {
  EXPECT_TRUE(contains(run("exp", "sound", "sim").text, "PLUGRAD_SHADOW='sim': a device with memory of the host"));
  EXPECT_TRUE(contains(run("exp", "sound", "nothing").text, "no device 'nothing'"));
}

struct Broken {
  const char* name;
  const char* text;
  const char* reason;
};

class Replay : public Shadow, public testing::WithParamInterface<Broken> {};

TEST_P(Replay, OfABrokenFileIsRefusedWithTheLine) {
  const fs::path file = folder_ / "broken.case";
  std::ofstream(file) << GetParam().text;
  const Said said = replay(file, "sound");
  EXPECT_EQ(said.status, 1) << said.text;
  EXPECT_TRUE(contains(said.text, GetParam().reason)) << said.text;
}

#define HEAD "plugrad-case 0\nop EXP\nflags 0\nattributes\n"

INSTANTIATE_TEST_SUITE_P(
    Files, Replay,
    testing::Values(
        Broken{"empty", "", "line 1: the file ends; 'plugrad-case' expected"},
        Broken{"foreign",
               "\x7f"
               "ELF\n",
               "line 1: it begins with"},
        Broken{"later", "plugrad-case 1\n", "line 1: the file is of a later version"},
        Broken{"unknown_op", "plugrad-case 0\nop EXPLODE\n", "line 2: there is no op 'EXPLODE'"},
        Broken{"flags", "plugrad-case 0\nop EXP\nflags 99\n", "line 3: '99' is no valid flags"},
        Broken{"attributes", "plugrad-case 0\nop EXP\nflags 0\nattributes 0x\n", "line 4: '0x' is not hexadecimal"},
        Broken{"truncated", HEAD "operand f32 aligned 1 2 1\nvalues\n", "line 7: the file ends; 'operand' expected"},
        Broken{"dtype", HEAD "operand f33 aligned 1 2 1\nvalues\n", "line 5: there is no dtype 'f33'"},
        Broken{"rank", HEAD "operand f32 aligned 9\n", "line 5: '9' is no valid rank"},
        Broken{"huge", HEAD "operand f32 aligned 2 4000000000 4000000000 1 1\n", "is no valid extent"},
        Broken{"negative", HEAD "operand f32 aligned 1 -2 1\n", "line 5: '-2' is no valid extent"},
        Broken{"output_number", HEAD "immediate f32 0000000000000000\n", "line 5: an output cannot be a number"},
        Broken{"short_value", HEAD "operand f32 aligned 1 1 1\nvalues 00\n", "line 6: a value has 1 bytes, expected 4"},
        Broken{"other_shape",
               HEAD "operand f32 aligned 1 1 1\nvalues\noperand f32 aligned 1 2 1\nvalues 00000000 00000000\n",
               "an input has the shape (2)"},
        Broken{"odd_attributes",
               "plugrad-case 0\nop EXP\nflags 0\nattributes 0800\n"
               "operand f32 aligned 1 1 1\nvalues\noperand f32 aligned 1 1 1\nvalues 00000000\n",
               "the attributes have 2 bytes, 0 expected"},
        Broken{"few_values", HEAD "operand f32 aligned 1 2 1\nvalues 00000000\n", "line 6: there is no value"},
        Broken{"other_signature",
               HEAD "operand f32 aligned 1 1 1\nvalues\noperand i64 aligned 1 1 1\nvalues 0000000000000000\n",
               "EXP f32,i64 is not defined"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST_F(Shadow, AReplayNeedsItsFile) {
  const Said said = replay(folder_ / "nothing.case", "sound");
  EXPECT_EQ(said.status, 1);
  EXPECT_TRUE(contains(said.text, "nothing.case: cannot be read")) << said.text;
}

}  // namespace
