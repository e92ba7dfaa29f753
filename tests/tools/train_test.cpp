#include <tests/io/idx_bytes.hpp>
#include <tests/tools/process.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace plugrad::test {
namespace {

using Json = nlohmann::json;
using Names = std::set<std::string>;
using Words = std::vector<std::string>;

const Names kOutputs = {"checkpoint.safetensors", "loss.svg", "losses.csv", "results.json"};

TEST(Train, MoonsLeavesACheckpointAPictureATableAndResults) {
  const Scratch scratch;
  const Outcome outcome = train({"--data", "moons", "--out", scratch.path("run/a"), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  Names names;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path("run/a"))) names.insert(entry.path().filename());
  EXPECT_EQ(names, kOutputs);
  const Json results = Json::parse(read_file(scratch.path("run/a/results.json")));
  EXPECT_EQ(results, Json::parse(outcome.out));
  EXPECT_GE(results.at("test_accuracy").get<double>(), 0.97);
  EXPECT_LT(results.at("train_loss").get<double>(), 0.1);
  EXPECT_EQ(results.at("epochs"), 100);
  EXPECT_EQ(results.at("steps"), 3200);
  EXPECT_EQ(results.at("parameters"), 337);
  EXPECT_EQ(results.at("device"), "reference:0");
  EXPECT_EQ(results.at("config").at("batch"), 32);
  EXPECT_GT(results.at("images_per_second").get<double>(), 0);
  const std::string plugin = results.at("plugin");
  EXPECT_EQ(results.at("plugin_mapped"), std::filesystem::canonical(plugin).string());
  expect_mentions(results.at("plugin_mapping").get<std::string>(), " r-xp ");
  const std::string csv = read_file(scratch.path("run/a/losses.csv"));
  EXPECT_TRUE(csv.starts_with("step,loss,test_loss,test_accuracy\n1,")) << csv.substr(0, 80);
  EXPECT_EQ(std::ranges::count(csv, '\n'), 3201);
  EXPECT_TRUE(read_file(scratch.path("run/a/loss.svg")).starts_with("<svg "));
}

TEST(Train, PlainLinesWhereThereIsNoTerminal) {
  const Scratch scratch;
  const Outcome outcome = train({"--data", "moons", "--epochs", "2", "--out", scratch.path("run")});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find_first_of("\r\x1b"), std::string::npos);
  expect_mentions(outcome.err, "epoch 1/2  loss ");
  expect_mentions(outcome.err, "epoch 2/2  loss ");
  expect_mentions(outcome.out, "test accuracy ");
}

TEST(Train, EvalAgreesWithTheResults) {
  const Scratch scratch;
  const Outcome outcome = train({"--data", "moons", "--epochs", "3", "--out", scratch.path("run"), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Outcome judged = plugrad_run({"eval", "--checkpoint", scratch.path("run/checkpoint.safetensors"), "--json"});
  ASSERT_EQ(judged.status, 0) << judged.err;
  const Json results = Json::parse(outcome.out), verdict = Json::parse(judged.out);
  EXPECT_EQ(verdict.at("accuracy"), results.at("test_accuracy"));
  EXPECT_EQ(verdict.at("loss"), results.at("test_loss"));
  EXPECT_EQ(verdict.at("count"), 500);
  const Outcome text = plugrad_run({"eval", "--checkpoint", scratch.path("run/checkpoint.safetensors")});
  EXPECT_TRUE(text.out.starts_with("loss ")) << text.out;
}

// Images of ten classes. Each class has a different bright row.
struct Stripes {
  explicit Stripes(const Scratch& scratch) {
    constexpr uint32_t kCount = 200, kSide = 10;
    std::string pixels = idx_header({kCount, kSide, kSide}), classes = idx_header({kCount});
    for (uint32_t i = 0; i < kCount; ++i) {
      for (uint32_t k = 0; k < kSide * kSide; ++k) {
        pixels += static_cast<char>(k / kSide == i % kSide ? 250 : (i * 7 + k * 13) % 60);
      }
      classes += static_cast<char>(i % kSide);
    }
    images = scratch.write("images", pixels);
    labels = scratch.write("labels.gz", gzip(classes));
  }
  Words options() const { return {"--data", "idx", "--images", images, "--labels", labels}; }
  std::string images, labels;
};

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Train, ALossThatIsNotFiniteIsNullInJson) {
  const Scratch scratch;
  const std::string run = scratch.path("run");
  const Outcome outcome = train({"--data", "moons", "--rate", "1e30", "--steps", "5", "--out", run, "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* loss : {"train_loss", "test_loss"}) EXPECT_EQ(Json::parse(outcome.out).at(loss), nullptr) << loss;
  const Outcome judged = plugrad_run({"eval", "--checkpoint", run + "/checkpoint.safetensors", "--json"});
  EXPECT_EQ(Json::parse(judged.out).at("loss"), nullptr) << judged.out;
}

TEST(Train, FilesOfOnesOwnAreLearned) {
  const Scratch scratch;
  const Stripes stripes(scratch);
  const Words options = stripes.options() + Words{"--hidden", "24", "--batch", "20", "--rate", "1e-2", "--json"};
  const Outcome alone = train(options + Words{"--out", scratch.path("alone")});
  ASSERT_EQ(alone.status, 0) << alone.err;
  EXPECT_EQ(Json::parse(alone.out).at("train_accuracy"), 1.0);
  EXPECT_FALSE(Json::parse(alone.out).contains("test_accuracy"));
  const Words test = {"--test-images", stripes.images, "--test-labels", stripes.labels};
  const Outcome both = train(options + test + Words{"--out", scratch.path("both")});
  ASSERT_EQ(both.status, 0) << both.err;
  EXPECT_EQ(Json::parse(both.out).at("test_accuracy"), 1.0);
  // The same network evaluates a file that contains only the first classes.
  const std::string few = scratch.write("few", idx_header({2, 10, 10}) + read_file(stripes.images).substr(16, 200));
  const std::string few_labels = scratch.write("few-labels", idx_header({2}) + std::string("\0\1", 2));
  const Outcome judged = plugrad_run({"eval", "--checkpoint", scratch.path("both/checkpoint.safetensors"), "--images", few,
                                      "--labels", few_labels, "--json"});
  ASSERT_EQ(judged.status, 0) << judged.err;
  EXPECT_EQ(Json::parse(judged.out).at("accuracy"), 1.0);
  EXPECT_EQ(Json::parse(judged.out).at("count"), 2);
}

struct Broken {
  const char* name;
  int first, last;  // the steps after which the first and the second part stop
  Words more;
};

// 1000 samples in batches of 32 are 32 steps per epoch. The run stops inside an epoch, at its end, or just after it.
TEST(Train, AResumedRunEndsInTheSameBytesAsAnUnbrokenOne) {
  const Broken rows[] = {{"inside an epoch", 20, 30, {}},
                         {"across an epoch", 20, 75, {}},
                         {"at an epoch's end", 32, 70, {}},
                         {"right after an epoch's end", 33, 96, {}},
                         {"with checkpoints on the way", 50, 90, {"--checkpoint-every", "7"}}};
  for (const Broken& row : rows) {
    SCOPED_TRACE(row.name);
    const Scratch scratch;
    const Words moons = Words{"--data", "moons", "--epochs", "4", "--seed", "5"} + row.more;
    const std::string first = std::to_string(row.first), last = std::to_string(row.last);
    const std::string checkpoint = scratch.path("broken/checkpoint.safetensors");
    ASSERT_EQ(train(moons + Words{"--steps", last, "--out", scratch.path("whole")}).status, 0);
    ASSERT_EQ(train(moons + Words{"--steps", first, "--out", scratch.path("broken")}).status, 0);
    EXPECT_NE(read_file(checkpoint), read_file(scratch.path("whole/checkpoint.safetensors")));
    const Outcome resumed = train(row.more + Words{"--resume", checkpoint, "--steps", last});
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    for (const char* name : {"checkpoint.safetensors", "losses.csv"}) {
      EXPECT_EQ(read_file(scratch.path(std::string("broken/") + name)),
                read_file(scratch.path(std::string("whole/") + name)))
          << name;
    }
  }
}

TEST(Train, AnotherResumeChangesNothingOnceAllIsDone) {
  const Scratch scratch;
  ASSERT_EQ(train({"--data", "moons", "--epochs", "2", "--out", scratch.path("run")}).status, 0);
  const std::string checkpoint = scratch.path("run/checkpoint.safetensors"), before = read_file(checkpoint);
  const Outcome resumed = train({"--resume", checkpoint});
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(read_file(checkpoint), before);
  EXPECT_EQ(Json::parse(read_file(scratch.path("run/results.json"))).at("resumed_from"), 64);
}

TEST(Train, TheSeedDecides) {
  const Scratch scratch;
  const auto bytes = [&](const std::string& seed, const std::string& name) {
    EXPECT_EQ(train({"--data", "moons", "--steps", "10", "--seed", seed, "--out", scratch.path(name)}).status, 0);
    return read_file(scratch.path(name + "/checkpoint.safetensors"));
  };
  const std::string one = bytes("1", "a");
  EXPECT_EQ(one, bytes("1", "b"));
  EXPECT_NE(one, bytes("2", "c"));
}

}  // namespace
}  // namespace plugrad::test
