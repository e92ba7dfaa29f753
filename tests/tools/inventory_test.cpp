#include <tests/paths.hpp>
#include <tests/tools/process.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace plugrad::test {
namespace {

using Json = nlohmann::json;

const std::string kFile = test::plugin_path("libplugrad-backend-reference.so");

TEST(Backends, EachViewNamesThePluginAndItsFile) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"backends"}, {"backends", "--verbose"}}) {
    const Outcome outcome = plugrad_run(words);
    EXPECT_EQ(outcome.status, 0);
    expect_mentions(outcome.out, kFile);
    expect_mentions(outcome.out, "reference");
  }
  const std::string verbose = plugrad_run({"backends", "--verbose"}).out;
  expect_mentions(verbose, "stage    ready");
  expect_mentions(verbose, "searched in this order:\n");
  expect_mentions(verbose, std::string("  ") + test::plugin_path() + "\n");
  const std::string absent = plugrad_run({"backends", "--verbose"}, {.plugin_path = "/no/such/folder"}).out;
  expect_mentions(absent, "  /no/such/folder  (there is no such directory)\n");
}

TEST(Backends, JsonHasEveryRecordAndDirectory) {
  const Json json = Json::parse(plugrad_run({"backends", "--json"}).out);
  EXPECT_NE(std::ranges::find(json.at("directories"), Json(test::plugin_path())), json.at("directories").end());
  const auto found = std::ranges::find_if(json.at("plugins"), [](const Json& record) { return record.at("path") == kFile; });
  ASSERT_NE(found, json.at("plugins").end());
  EXPECT_EQ(found->at("stage"), "ready");
  EXPECT_EQ(found->at("devices"), 1);
}

TEST(Devices, TextAndJsonNameTheDeviceAndItsPlugin) {
  const Outcome text = plugrad_run({"devices"});
  EXPECT_EQ(text.status, 0) << text.err;
  expect_mentions(text.out, "reference:0");
  expect_mentions(text.out, kFile);
  const Json json = Json::parse(plugrad_run({"devices", "--json"}).out);
  const auto found =
      std::ranges::find_if(json.at("devices"), [](const Json& device) { return device.at("name") == "reference:0"; });
  ASSERT_NE(found, json.at("devices").end());
  EXPECT_EQ(found->at("plugin"), kFile);
  EXPECT_EQ(found->at("capabilities").at(0), "host-memory");
}

// The CUDA plugin loads on every machine. If it finds no GPU, it states the reason in one line, and `train --device cuda:0`
// prints this line, too.
TEST(Devices, AskingForAGpuThatIsNotThereSaysWhyAndWhatThereIs) {
  const Json json = Json::parse(plugrad_run({"backends", "--json"}).out);
  const auto cuda = std::ranges::find_if(json.at("plugins"), [](const Json& record) {
    return record.at("path").get<std::string>().ends_with("/libplugrad-backend-cuda.so");
  });
  if (cuda != json.at("plugins").end() && cuda->at("devices") != 0) GTEST_SKIP() << "there is a GPU here";
  const Outcome asked = train({"--data", "fashion-mnist", "--device", "cuda:0"});
  expect_complaint(asked, 1, "no device 'cuda:0': ");
  expect_mentions(asked.err, ". Devices: ");
  expect_mentions(asked.err, "reference:0");
  if (cuda == json.at("plugins").end()) {
    expect_mentions(asked.err, std::string("no plugin has that name in ") + test::plugin_path());
    return;
  }
  EXPECT_EQ(cuda->at("stage"), "ready");
  const std::string reason = cuda->at("reason");
  EXPECT_TRUE(reason.starts_with("no NVIDIA driver") || reason.starts_with("the NVIDIA driver ")) << reason;
  EXPECT_EQ(reason.find('\n'), std::string::npos);
  expect_mentions(asked.err, " finds none: " + reason);
}

}  // namespace
}  // namespace plugrad::test
