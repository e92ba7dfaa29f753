#include <tests/tools/process.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace plugrad::test {
namespace {

using Words = std::vector<std::string>;

// The arguments of a run that is so long that only a signal ends it.
Words endless_moons(const std::string& out) {
  return {"train", "--data", "moons", "--device", "reference", "--epochs", "1000000", "--checkpoint-every",
          "10",    "--out",  out};
}

TEST(Interrupt, CtrlCSavesAndSaysHowToGoOn) {
  const Scratch scratch;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    const std::string out = scratch.path("my run " + std::to_string(signal)), checkpoint = out + "/checkpoint.safetensors";
    Process process(endless_moons(out));
    process.wait_until([&] { return std::filesystem::exists(checkpoint); });
    process.signal(signal);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.status, 128 + signal) << outcome.err;
    expect_mentions(outcome.err, "interrupted after step ");
    expect_mentions(outcome.err, "plugrad train --resume '" + checkpoint + "' --checkpoint-every 10\n");
    const auto results = nlohmann::json::parse(read_file(out + "/results.json"));
    EXPECT_EQ(results.at("interrupted"), true);
    const auto steps = results.at("steps").get<int64_t>();
    const Outcome resumed = train({"--resume", checkpoint, "--steps", std::to_string(steps + 5)});
    EXPECT_EQ(resumed.status, 0) << resumed.err;
    expect_mentions(resumed.err, "resumed after step " + std::to_string(steps) + " of ");
  }
}

TEST(Interrupt, TheInterruptedRunGoesOnAsIfNothingHadHappened) {
  const Scratch scratch;
  const std::string out = scratch.path("run"), checkpoint = out + "/checkpoint.safetensors";
  Process process(endless_moons(out));
  process.wait_until([&] { return std::filesystem::exists(checkpoint); });
  process.signal(SIGINT);
  ASSERT_EQ(process.wait().status, 130);
  const auto steps = nlohmann::json::parse(read_file(out + "/results.json")).at("steps").get<int64_t>();
  const std::string last = std::to_string(steps + 40);
  ASSERT_EQ(train({"--resume", checkpoint, "--steps", last}).status, 0);
  ASSERT_EQ(train({"--data", "moons", "--epochs", "1000000", "--steps", last, "--out", scratch.path("whole")}).status, 0);
  EXPECT_EQ(read_file(checkpoint), read_file(scratch.path("whole/checkpoint.safetensors")));
}

// The program prints one line for each hundred epochs; head closes the pipe after the third line.
TEST(Interrupt, AClosedPipeSaves) {
  const Scratch scratch;
  const std::string out = scratch.path("run");
  const std::string command = "'" PLUGRAD_PROGRAM "' train --data moons --device reference --epochs 2000 --out '" + out +
                              "' 2>&1 | head -n 3 >'" + scratch.path("head") + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string results = out + "/results.json";
  for (int i = 0; i < 600 && !std::filesystem::exists(results); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(nlohmann::json::parse(read_file(results)).at("interrupted"), true);
  EXPECT_TRUE(std::filesystem::exists(out + "/checkpoint.safetensors"));
}

TEST(Interrupt, ASignalThatTheProcessIgnoresStaysIgnored) {
  const Scratch scratch;
  std::signal(SIGHUP, SIG_IGN);  // as nohup does
  Process process(endless_moons(scratch.path("run")));
  std::signal(SIGHUP, SIG_DFL);
  process.wait_until([&] { return std::filesystem::exists(scratch.path("run/checkpoint.safetensors")); });
  process.signal(SIGHUP);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_TRUE(process.running());
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().status, 128 + SIGTERM);
}

// With plain loops a step of this network takes many seconds, so the signals arrive during a step.
TEST(Interrupt, ASecondCtrlCEndsAtOnce) {
  const Scratch scratch;
  Process process({"train", "--data", "moons", "--device", "reference", "--hidden", "4096,4096", "--batch", "1000", "--out",
                   scratch.path("run")});
  process.wait_until([&] { return process.err().find("parameters\n") != std::string::npos; });
  process.signal(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ASSERT_TRUE(process.running()) << "the first signal ended it, inside a step";
  process.signal(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.signal, SIGINT) << outcome.err;
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path("run")));
}

}  // namespace
}  // namespace plugrad::test
