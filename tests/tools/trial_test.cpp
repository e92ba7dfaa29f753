// plugrad trial: three models on a device, or on the device of a plugin's file.
#include <tests/tools/process.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace plugrad::test {
namespace {

TEST(Trial, TrainsOnADeviceAndOnTheDeviceOfAFile) {
  for (const char* target : {"cpu", PLUGRAD_SIM_PLUGIN}) {
    const Outcome outcome = plugrad_run({"trial", target, "--json"});
    ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    const nlohmann::json said = nlohmann::json::parse(outcome.out);
    ASSERT_EQ(said.at("models").size(), 3u);
    for (const auto& model : said["models"]) {
      EXPECT_TRUE(model.at("trains").get<bool>()) << model;
      EXPECT_LT(model.at("last_loss").get<double>(), 0.1 * model.at("first_loss").get<double>()) << model;
    }
  }
}

TEST(Trial, NamesTheOpThatADeviceLacks) {
  const Outcome outcome = plugrad_run({"trial", PLUGRAD_C11_PLUGIN});
  EXPECT_EQ(outcome.status, 1);
  expect_mentions(outcome.out, "mlp         FAIL  [uniform] c11:0 has no kernel for f32 <- i64, i64");
}

TEST(Trial, PassesOptionsToTheDevice) {
  const Outcome outcome = plugrad_run({"trial", "cpu", "--option", "threads=1"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_mentions(outcome.out, "1 thread");
  expect_complaint(plugrad_run({"trial", "cpu", "--option", "colour=red"}), 1, "colour");
  expect_complaint(plugrad_run({"trial", "cpu", "--option", "threads"}), 2, "expected KEY=VALUE");
}

TEST(Trial, MisuseIsOneLineThatHelps) {
  expect_complaint(plugrad_run({"trial"}), 2, "a device or a plugin's file is missing");
  expect_complaint(plugrad_run({"trial", "npu:0"}), 1, "no device 'npu:0'");
  expect_complaint(plugrad_run({"trial", "./nothing.so"}), 1, "nothing.so");
}

}  // namespace
}  // namespace plugrad::test
