// plugrad advise: the ops of a trace for which a device has no kernel.
#include <tests/tools/process.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace plugrad::test {
namespace {

// Two matmuls of 3 ms together, an attention, a cast of a dtype, and events that are not ops.
constexpr const char* kTrace = R"([
{"name":"process_name","ph":"M","pid":1,"args":{"name":"cpu:0"}},
{"name":"matmul","cat":"forward","ph":"X","ts":1,"dur":1000,"args":{"how":"native","bytes":100,
 "outputs":[{"dtype":"f32","shape":[2,2]}],"inputs":[{"dtype":"f32","shape":[2,2]},{"dtype":"f32","shape":[2,2]}]}},
{"name":"matmul","cat":"backward","ph":"X","ts":2,"dur":2000,"args":{"how":"native","bytes":100,
 "outputs":[{"dtype":"f32","shape":[2,2]}],"inputs":[{"dtype":"f32","shape":[2,2]},{"dtype":"f32","shape":[2,2]}]}},
{"name":"gelu","cat":"forward","ph":"X","ts":3,"dur":4000,"args":{"how":"native","bytes":500,
 "outputs":[{"dtype":"f32","shape":[4]}],"inputs":[{"dtype":"f32","shape":[4]}]}},
{"name":"exp","cat":"forward","ph":"X","ts":3,"dur":1000,"args":{"how":"native","bytes":20,
 "outputs":[{"dtype":"bf16","shape":[4]}],"inputs":[{"dtype":"bf16","shape":[4]}]}},
{"name":"uniform","cat":"forward","ph":"X","ts":4,"dur":2000,"args":{"how":"native","bytes":16,
 "outputs":[{"dtype":"f32","shape":[4]}],"inputs":[{"dtype":"i64","number":true},{"dtype":"i64","number":true}]}},
{"name":"upload","cat":"copy","ph":"X","ts":5,"dur":9000,"args":{"bytes":16}}
])";

TEST(Advise, RanksWhatADeviceLacksByTime) {
  const Scratch scratch;
  scratch.write("trace.json", kTrace);
  const Outcome outcome = plugrad_run({"advise", scratch.path("trace.json"), PLUGRAD_C11_PLUGIN, "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const nlohmann::json said = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(said.at("device"), "c11:0");
  EXPECT_EQ(said.at("kinds"), 4);
  EXPECT_NEAR(said.at("seconds").get<double>(), 0.01, 1e-9);
  ASSERT_EQ(said.at("missing").size(), 3u) << outcome.out;
  const auto& missing = said["missing"];
  EXPECT_EQ(missing[0].at("op"), "gelu");
  EXPECT_EQ(missing[0].at("instead"), "composed of other ops");
  EXPECT_EQ(missing[0].at("bytes"), 500);
  EXPECT_EQ(missing[1].at("op"), "uniform");
  EXPECT_EQ(missing[1].at("dtypes"), "f32 <- i64 number, i64 number");
  EXPECT_EQ(missing[1].at("instead"), "in host memory if PLUGRAD_FALLBACK allows it, else an error");
  EXPECT_EQ(missing[2].at("op"), "exp");
  EXPECT_EQ(missing[2].at("instead"), "in a wider dtype, with conversions");
}

// A product of 1 ms, then an add of 3 ms and a gelu of 2 ms over 1 MiB each.
constexpr const char* kNeighbours = R"([
{"name":"matmul","cat":"forward","dur":1000,"args":{"bytes":2097152,"outputs":[{"dtype":"f32","shape":[512,512]}],
 "inputs":[{"dtype":"f32","shape":[512,512]},{"dtype":"f32","shape":[512,512]}]}},
{"name":"add","cat":"forward","dur":3000,"args":{"bytes":3145728,"outputs":[{"dtype":"f32","shape":[512,512]}],
 "inputs":[{"dtype":"f32","shape":[512,512]},{"dtype":"f32","shape":[512,512]}]}},
{"name":"gelu","cat":"forward","dur":2000,"args":{"bytes":2097152,"outputs":[{"dtype":"f32","shape":[512,512]}],
 "inputs":[{"dtype":"f32","shape":[512,512]}]}}])";

TEST(Advise, SaysInWordsHowMuchIsThereAndWhatIsToGain) {
  const Scratch scratch;
  scratch.write("trace.json", kTrace);
  const Outcome outcome = plugrad_run({"advise", scratch.path("trace.json"), PLUGRAD_C11_PLUGIN});
  expect_mentions(outcome.out, "c11:0 has kernels for 1 of the 4 kinds of ops that ran, which took 30.0% of the time");
  expect_mentions(outcome.out, "gelu");

  scratch.write("neighbours.json", kNeighbours);
  const nlohmann::json said =
      nlohmann::json::parse(plugrad_run({"advise", scratch.path("neighbours.json"), PLUGRAD_C11_PLUGIN, "--json"}).out);
  EXPECT_NEAR(said.at("missing").at(0).at("least_seconds").get<double>(), 0.002, 1e-9) << said;  // add and gelu: 1 MiB a ms
  const nlohmann::json& group = said.at("fusions").at(0);
  EXPECT_EQ(group.at("ops"), "matmul, add, gelu over 512 x 512");
  // Of the 5 MiB that add and gelu read and write, a fusion leaves out the add's result twice, and a read of the product.
  EXPECT_NEAR(group.at("saved_seconds").get<double>(), 0.005 * 3 / 5, 1e-9) << said;
}

TEST(Advise, KnowsTheModelsOfTheTrial) {
  const Outcome outcome = plugrad_run({"advise", "mlp", "cpu"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_mentions(outcome.out, "100.0% of the time");
  EXPECT_EQ(outcome.out.find("missing"), std::string::npos) << outcome.out;
}

TEST(Advise, MisuseIsOneLineThatHelps) {
  const Scratch scratch;
  scratch.write("empty.json", "[]");
  scratch.write("text.json", "no trace");
  scratch.write("shape.json", R"([{"name":"exp","cat":"forward","args":{"outputs":[{"kind":1}]}}])");
  scratch.write("op.json", R"([{"name":"explode","cat":"forward","args":{"outputs":[{"dtype":"f32"}],"inputs":[]}}])");
  expect_complaint(plugrad_run({"advise"}), 2, "a trace or model, and a device or a plugin's file expected");
  expect_complaint(plugrad_run({"advise", scratch.path("nothing.json"), "cpu"}), 1, "cannot be read");
  expect_complaint(plugrad_run({"advise", scratch.path("empty.json"), "cpu"}), 1, "contains no op");
  expect_complaint(plugrad_run({"advise", scratch.path("text.json"), "cpu"}), 1, "is not a profiler's trace");
  expect_complaint(plugrad_run({"advise", scratch.path("shape.json"), "cpu"}), 1, "is not a profiler's trace");
  expect_complaint(plugrad_run({"advise", scratch.path("."), "cpu"}), 1, "cannot be read: expected a trace");
  expect_complaint(plugrad_run({"advise", scratch.path("op.json"), "cpu"}), 1, "there is no op 'explode'");
  expect_complaint(plugrad_run({"advise", "mlp", "npu:0"}), 1, "no device 'npu:0'");
}

}  // namespace
}  // namespace plugrad::test
