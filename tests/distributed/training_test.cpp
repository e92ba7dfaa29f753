// `plugrad train` on several ranks.
#include <tests/distributed/jobs.hpp>
#include <tests/error_message.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <iterator>
#include <regex>
#include <sstream>
#include <thread>

namespace plugrad::test {
namespace {

const Words kTrain{"train", "--data", "moons", "--device", "cpu", "--deterministic", "--batch", "32"};

Words train(const Words& more) {
  Words words = kTrain;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}
Words program(const Words& words) {
  Words all{PLUGRAD_PROGRAM};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

// The digest of the parameters that a run has written.
std::string digest_in(const std::string& folder) {
  const std::string results = read_file(folder + "/results.json");
  std::smatch found;
  EXPECT_TRUE(std::regex_search(results, found, std::regex("\"digest\": \"([0-9a-f]{16})\""))) << folder;
  return found.empty() ? "" : found[1].str();
}

TEST(Training, SlicesGiveOneDigestOnAnyNumberOfRanks) {
  const Scratch scratch;
  const Words run = train({"--slices", "8", "--steps", "150", "--out"});
  const auto in = [&](const std::string& name) {
    Words words = run;
    words.push_back(scratch.path(name));
    return words;
  };
  ASSERT_EQ(plugrad_run(in("alone")).status, 0);
  const std::string digest = digest_in(scratch.path("alone"));
  for (const int ranks : {1, 2, 4, 8}) {
    const std::string name = "gloo" + std::to_string(ranks);
    const Outcome outcome = launch(ranks, program(in(name)));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(digest_in(scratch.path(name)), digest) << name;
    expect_mentions(outcome.err, "on " + std::to_string(ranks) + " ranks (Gloo");
  }
  for (const int ranks : {1, 4}) {
    const std::string name = "compiled" + std::to_string(ranks);
    Words compiled = in(name);
    compiled.push_back("--compile");
    const Outcome outcome = launch(ranks, program(compiled));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(digest_in(scratch.path(name)), digest) << name;
  }
  if (has_mpich()) {
    ASSERT_EQ(mpirun_of_mpich(4, program(in("mpich"))).status, 0);
    EXPECT_EQ(digest_in(scratch.path("mpich")), digest);
  }
  {
    const OverNccl nccl;
    ASSERT_EQ(launch(2, program(in("nccl"))).status, 0);
    EXPECT_EQ(digest_in(scratch.path("nccl")), digest);
  }
  for (const int ranks : {2, 4}) {
    if (!has_mpi()) break;
    const std::string name = "mpi" + std::to_string(ranks);
    const Outcome outcome = mpirun(ranks, program(in(name)));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(digest_in(scratch.path(name)), digest) << name;
  }
}

// Without slices the sums depend on the number of ranks. Adam makes much of gradients near 0, so the losses differ by more
// than a rounding.
TEST(Training, RanksTrainAsOneProcessDoes) {
  const Scratch scratch;
  ASSERT_EQ(plugrad_run(train({"--steps", "100", "--out", scratch.path("alone")})).status, 0);
  const Outcome outcome = plugrad_run(train({"--steps", "100", "--ranks", "3", "--out", scratch.path("three")}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  expect_mentions(outcome.err, "on 3 ranks (Gloo");
  const auto loss = [&](const char* name) {
    const std::string results = read_file(scratch.path(name) + "/results.json");
    std::smatch found;
    EXPECT_TRUE(std::regex_search(results, found, std::regex("\"train_loss\": ([0-9.e-]+)")));
    return std::stod(found[1].str());
  };
  EXPECT_NEAR(loss("three"), loss("alone"), 1e-2);
  expect_complaint(plugrad_run(train({"--ranks", "0"})), 2, "--ranks 0: 1 to 4096 expected");
  const Outcome twice = launch(2, program(train({"--ranks", "3"})));
  EXPECT_EQ(twice.status, 2);
  expect_mentions(twice.err, "--ranks 3, but the launcher started 2: leave out one of them");
}

TEST(Training, SlicesMustFitTheRanks) {
  const Scratch scratch;
  const Outcome outcome = plugrad_run(train({"--ranks", "3", "--slices", "8", "--out", scratch.path("run")}));
  EXPECT_EQ(outcome.status, 1);
  expect_mentions(outcome.err, "slices is 8 for 3 ranks: a multiple of their number expected");
}

TEST(Training, CtrlCSavesOnAllRanks) {
  const Scratch scratch;
  const std::string out = scratch.path("run");
  Process process(train({"--ranks", "2", "--epochs", "1000000", "--checkpoint-every", "20", "--out", out}));
  process.wait_until([&] { return std::filesystem::exists(out + "/checkpoint.safetensors"); });
  process.signal(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "interrupted after step "), 1u) << outcome.err;
  EXPECT_EQ(plugrad_run({"train", "--resume", out + "/checkpoint.safetensors", "--steps", "1"}).status, 0);
}

// The processes that a process has started.
std::vector<pid_t> children_of(pid_t process) {
  const std::string id = std::to_string(process);
  std::istringstream text(read_file("/proc/" + id + "/task/" + id + "/children"));
  return {std::istream_iterator<pid_t>(text), {}};
}

// A rank is killed at some step; the rest runs on another number of ranks and another engine.
void expect_resumed(int round, const std::string& digest) {
  const Scratch scratch;
  const std::string out = scratch.path("run"), checkpoint = out + "/checkpoint.safetensors";
  constexpr int kRanks[] = {1, 2, 4, 8};
  const int first = kRanks[1 + round % 3], second = kRanks[(round / 3) % 4];
  {
    Words words{"launch", "-n", std::to_string(first)};
    for (const std::string& each :
         program(train({"--slices", "8", "--steps", "400", "--checkpoint-every", "7", "--out", out})))
      words.push_back(each);
    Process process(words);
    process.wait_until([&] { return std::filesystem::exists(checkpoint); });
    std::this_thread::sleep_for(std::chrono::milliseconds(round * 13 % 97));
    const std::vector<pid_t> ranks = children_of(process.id());
    if (!ranks.empty()) kill(ranks[static_cast<size_t>(round) % ranks.size()], SIGKILL);
    process.wait();
  }
  const Words resume{"train", "--resume", checkpoint, "--steps", "400"};
  const bool by_mpi = has_mpi() && round % 2;
  const Outcome outcome = by_mpi ? mpirun(second, program(resume)) : launch(second, program(resume));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(digest_in(out), digest) << "round " << round << ": " << first << " ranks, then " << second;
}

std::string digest_of_400_steps() {
  const Scratch scratch;
  const Outcome outcome = plugrad_run(train({"--slices", "8", "--steps", "400", "--out", scratch.path("run")}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return digest_in(scratch.path("run"));
}

TEST(Training, IsResumedOnOtherRanksAndEngines) {
  const std::string digest = digest_of_400_steps();
  for (int round = 0; round < 4; ++round) expect_resumed(round, digest);
}

TEST(TrainingFull, IsResumedAHundredTimes) {
  const std::string digest = digest_of_400_steps();
  for (int round = 0; round < 100 && !HasFailure(); ++round) expect_resumed(round, digest);
}

}  // namespace
}  // namespace plugrad::test
