// The project that plugrad new-plugin writes. tests/install builds the project against the installed SDK.
#include <tests/tools/process.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace plugrad::test {
namespace {
namespace fs = std::filesystem;

TEST(NewPlugin, WritesAProjectWithItsName) {
  const Scratch scratch;
  const std::string folder = scratch.path("my plugin");
  const Outcome outcome = plugrad_run({"new-plugin", "my-npu2", "--directory", folder});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  expect_mentions(outcome.out, folder + "/ci.sh");
  const std::string source = read_file(folder + "/my-npu2.cpp");
  expect_mentions(source, "class MyNpu2 final : public plugrad::Backend");
  expect_mentions(source, "PLUGRAD_EXPORT_BACKEND(MyNpu2, \"my-npu2\", \"0.1\")");
  EXPECT_LT(std::count(source.begin(), source.end(), '\n'), 120);
  expect_mentions(read_file(folder + "/CMakeLists.txt"), "plugrad_add_plugin(my-npu2 my-npu2.cpp)");
  EXPECT_EQ(fs::status(folder + "/ci.sh").permissions() & fs::perms::owner_exec, fs::perms::owner_exec);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string text = read_file(entry.path().string());
    EXPECT_EQ(text.find("@NAME@"), std::string::npos) << entry.path();
    EXPECT_EQ(text.find("@CLASS@"), std::string::npos) << entry.path();
  }
}

TEST(NewPlugin, WritesADeviceWithMemoryOfItsOwn) {
  struct Template {
    std::string language, source, mentions, project;
  };
  for (const Template& each :
       {Template{"c++", "npu.cpp", "class Npu final : public plugrad::QueuedBackend", "CMakeLists.txt"},
        Template{"c", "npu.c", ".stream_create = plugrad_queues_stream_create", "CMakeLists.txt"},
        Template{"rust", "src/lib.rs", "impl Queue for MyQueue", "Cargo.toml"}}) {
    const Scratch scratch;
    const std::string folder = scratch.path("npu");
    const Outcome outcome = plugrad_run(
        {"new-plugin", "npu", "--lang", each.language, "--memory", "device", "--streams", "--directory", folder});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::string source = read_file(folder + "/" + each.source);
    expect_mentions(source, each.mentions);
    EXPECT_LT(std::count(source.begin(), source.end(), '\n'), 180);
    EXPECT_TRUE(fs::exists(folder + "/ci.sh") && fs::exists(folder + "/" + each.project));
  }
}

TEST(NewPlugin, RefusesWhatTheTemplatesLack) {
  expect_complaint(plugrad_run({"new-plugin", "npu", "--memory", "shared"}), 2,
                   "--memory shared is unknown: give host or device");
  expect_complaint(plugrad_run({"new-plugin", "npu", "--streams"}), 2, "--streams: give --memory device as well");
  expect_complaint(plugrad_run({"new-plugin", "npu", "--memory", "device", "--lang", "go"}), 2,
                   "--lang go is unknown: give c++, c or rust");
}

TEST(NewPlugin, JsonReplacesBytesThatAreNotUtf8) {
  const Scratch scratch;
  const Outcome outcome = plugrad_run({"new-plugin", "npu", "--directory", scratch.path("a\xff"), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("directory"), scratch.path("a\uFFFD"));
}

TEST(NewPlugin, OverwritesNothing) {
  const Scratch scratch;
  scratch.write("kept", "mine");
  const Outcome outcome = plugrad_run({"new-plugin", "npu", "--directory", scratch.folder()});
  expect_complaint(outcome, 1, "exists already and is not empty");
  EXPECT_EQ(read_file(scratch.path("kept")), "mine");
  EXPECT_FALSE(fs::exists(scratch.path("npu.cpp")));
}

}  // namespace
}  // namespace plugrad::test
