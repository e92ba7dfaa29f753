// Jobs of several processes, started by `plugrad launch` and by mpirun.
#include <tests/distributed/jobs.hpp>
#include <tests/error_message.hpp>

#include <plugrad/io/file.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <regex>
#include <thread>

namespace plugrad::test {
namespace {
void expect_passed(const Outcome& outcome, int ranks) {
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_EQ(count_of(outcome.out, " passed\n"), static_cast<size_t>(ranks)) << outcome.out << outcome.err;
}

const Words kTests{PLUGRAD_RANKS, "--gtest_brief=1"};

TEST(Collectives, OverGloo) {
  for (const int ranks : {1, 2, 3, 4}) expect_passed(launch(ranks, kTests), ranks);
}

TEST(Collectives, OverMpi) {
  if (!has_mpi()) GTEST_SKIP() << "there is no MPI";
  for (const int ranks : {1, 2, 3}) expect_passed(mpirun(ranks, kTests), ranks);
}

TEST(Collectives, OverMpich) {
  if (!has_mpich()) GTEST_SKIP() << "there is no MPICH";
  for (const int ranks : {1, 2, 3}) expect_passed(mpirun_of_mpich(ranks, kTests), ranks);
}

// Host memory by staging, and device memory in the order of the device's streams.
TEST(Collectives, OverNccl) {
  const OverNccl nccl;
  expect_passed(launch(3, kTests), 3);
  const Variable device("PLUGRAD_TEST_DEVICE", "cuda-emu");
  expect_passed(launch(2, kTests), 2);
}

TEST(Collectives, OverNcclWithChecks) {
  const OverNccl nccl;
  const Variable device("PLUGRAD_TEST_DEVICE", "cuda-emu"), check("PLUGRAD_CAPTURE", "check"),
      checks("PLUGRAD_DISTRIBUTED_CHECK", "1");
  expect_passed(launch(2, {PLUGRAD_RANKS, "--gtest_brief=1", "--gtest_filter=CompiledSteps.*:DataParallel.ACompiledStep*"}),
                2);
}

// An engine that has only messages: the core composes everything else of them.
TEST(Collectives, ComposedOfMessages) {
  const Variable engine("PLUGRAD_COMMUNICATOR", sim()), options("PLUGRAD_SIM_OPTIONS", "engine=" + gloo() + ",decline=all");
  for (const int ranks : {2, 3}) expect_passed(launch(ranks, kTests), ranks);
}

TEST(Collectives, OfALateEngine) {
  const Variable engine("PLUGRAD_COMMUNICATOR", sim()), options("PLUGRAD_SIM_OPTIONS", "engine=" + gloo() + ",delay=1");
  expect_passed(launch(3, kTests), 3);
}

TEST(Collectives, OfADeviceThatTheEngineCannotReach) {
  const Variable device("PLUGRAD_TEST_DEVICE", "sim");
  expect_passed(launch(2, kTests), 2);
}

TEST(Collectives, WithChecksOfEachCall) {
  const Variable checks("PLUGRAD_DISTRIBUTED_CHECK", "1");
  expect_passed(launch(2, kTests), 2);
}

// The ranks do not check the same calls.
TEST(Collectives, InCompiledStepsThatAreChecked) {
  const Variable check("PLUGRAD_CAPTURE", "check");
  for (const char* device : {"cpu", "sim"}) {
    const Variable on("PLUGRAD_TEST_DEVICE", device);
    expect_passed(
        launch(2, {PLUGRAD_RANKS, "--gtest_brief=1", "--gtest_filter=CompiledSteps.*:DataParallel.ACompiledStep*"}), 2);
  }
}

// Another server has the port, and says nothing.
TEST(Collectives, ByTcpBesideAnotherServer) {
  const Variable host("MASTER_ADDR", "127.0.0.1"), port("MASTER_PORT", "29617");
  const std::string server = "import socket, time; s = socket.socket(); s.bind((\"\", 29617)); s.listen(); time.sleep(100)";
  const std::string script = "unset PLUGRAD_STORE; if [ $RANK = 0 ]; then python3 -c '" + server +
                             "' 2> /dev/null & sleep 1; fi; '" PLUGRAD_RANKS
                             "' --gtest_brief=1 --gtest_filter=Collectives.All*";
  expect_passed(launch(3, {"bash", "-c", script}), 3);
}

// --- Failures.

struct Failure {
  std::string how, named;  // a part of each survivor's error
};
const Failure kFailures[] = {{"kill", "rank 2 \\(process [0-9]+[^)]*\\) (is dead|was ended by signal 9)"},
                             {"exit", "rank 2 \\(process [0-9]+ on [^ ]+\\) is dead"},
                             {"throw", "rank 2 \\(process [0-9]+\\) failed: the disk is full"}};
// Places: before init_process_group, then four in each of five steps.
constexpr int kPlaces = 21;

// Whether a process runs this program.
bool runs(const std::string& program) {
  std::error_code error;
  for (const auto& each : std::filesystem::directory_iterator("/proc", error)) {
    const auto target = std::filesystem::read_symlink(each.path() / "exe", error);
    if (!error && target == std::filesystem::weakly_canonical(program)) return true;
  }
  return false;
}

// Each survivor's error names the last rank; no process is left, and the last saved files are whole. A rank that left too
// early may learn of the failure while it waits for the others.
void expect_named(const Outcome& outcome, const std::string& named, int survivors, const std::string& folder) {
  const std::regex pattern("survivor: [^\n]*(?:" + named + ")");
  const std::sregex_iterator first(outcome.out.begin(), outcome.out.end(), pattern), end;
  EXPECT_GE(std::distance(first, end), survivors) << named << "\n" << outcome.out << outcome.err;
  EXPECT_NE(outcome.status, 0);
  EXPECT_FALSE(runs(PLUGRAD_RANKS));
  for (const auto& each : std::filesystem::directory_iterator(folder))
    EXPECT_EQ(std::filesystem::file_size(each), 100000u) << each.path();
}

void expect_failures(const std::vector<int>& places) {
  const Variable timeout("PLUGRAD_DISTRIBUTED_TIMEOUT", "20");
  for (const Failure& failure : kFailures)
    for (const int place : places) {
      // A rank that ends in this way before it is in the group has not begun.
      if (place == 0 && failure.how != "kill") continue;
      SCOPED_TRACE(failure.how + " at place " + std::to_string(place));
      const Scratch scratch;
      const Variable folder("PLUGRAD_TEST_FOLDER", scratch.folder());
      expect_named(launch(3, {PLUGRAD_RANKS, "fail", failure.how, std::to_string(place)}), failure.named, 2,
                   scratch.folder());
    }
}

TEST(Failures, NameTheRank) { expect_failures({0, 3, 8, 20}); }

TEST(FailuresFull, AtEachPlace) {
  std::vector<int> places(kPlaces);
  for (int i = 0; i < kPlaces; ++i) places[static_cast<size_t>(i)] = i;
  expect_failures(places);
}

TEST(Failures, OfRanksThatDoSomethingElse) {
  const Variable timeout("PLUGRAD_DISTRIBUTED_TIMEOUT", "2");
  const Failure failures[] = {{"stop", "rank 2 \\(process [0-9]+ on [^ ]+\\) gives no sign"},
                              {"less", "rank 2 has left the group after collective 4"},
                              {"differ",
                               "calls all_reduce of 1000 f32[^\n]*but rank 2 calls barrier|"
                               "rank 2 calls barrier[^\n]*but rank [01] calls all_reduce of 1000 f32"}};
  for (const Failure& failure : failures) {
    SCOPED_TRACE(failure.how);
    const Scratch scratch;
    const Variable folder("PLUGRAD_TEST_FOLDER", scratch.folder());
    const Outcome outcome = launch(3, {PLUGRAD_RANKS, "fail", failure.how, "6"});
    expect_named(outcome, failure.named, failure.how == "differ" ? 3 : 2, scratch.folder());
  }
}

// The store is in the process that fails: it stays until the other ranks know why. `launch` would end ranks that pause, so
// a shell starts them.
TEST(Failures, OfTheRankThatHasTheStore) {
  for (const std::string place : {"3", "8", "20"}) {
    const std::string script =
        "unset PLUGRAD_STORE; export MASTER_ADDR=127.0.0.1 MASTER_PORT=29633 WORLD_SIZE=3; "
        "for r in 0 1 2; do RANK=$r '" PLUGRAD_RANKS "' fail first " +
        place + " & done; wait";
    const Outcome outcome = launch(1, {"bash", "-c", script});
    const std::regex named("survivor: [^\n]*rank 0 \\(process [0-9]+\\) failed: the disk is full");
    const std::sregex_iterator first(outcome.out.begin(), outcome.out.end(), named), end;
    EXPECT_EQ(std::distance(first, end), 2) << outcome.out << outcome.err;
  }
}

TEST(Failures, OverMpi) {
  if (!has_mpi()) GTEST_SKIP() << "there is no MPI";
  for (const Failure& failure : kFailures) {
    const Outcome outcome = mpirun(3, {PLUGRAD_RANKS, "fail", failure.how, "6"});
    // mpirun may end the survivors before they speak, and names the rank itself.
    const std::regex named("survivor: [^\n]*rank 2 |process rank 2 |Process name: [^\n]*,2\\]");
    EXPECT_TRUE(std::regex_search(outcome.out + outcome.err, named)) << outcome.out << outcome.err;
    EXPECT_NE(outcome.status, 0);
  }
}

TEST(Failures, OverMpich) {
  if (!has_mpich()) GTEST_SKIP() << "there is no MPICH";
  // MPICH's mpirun ends all ranks at once when one dies.
  for (const char* how : {"kill", "throw"})
    EXPECT_NE(mpirun_of_mpich(3, {PLUGRAD_RANKS, "fail", how, "6"}).status, 0) << how;
  const Variable timeout("PLUGRAD_DISTRIBUTED_TIMEOUT", "2");
  expect_mentions(mpirun_of_mpich(3, {PLUGRAD_RANKS, "fail", "stop", "6"}).out, "rank 2 (process ");
  expect_mentions(mpirun_of_mpich(3, {PLUGRAD_RANKS, "fail", "less", "6"}).out,
                  "rank 2 has left the group after collective 4");
}

TEST(Failures, OverNccl) {
  const OverNccl nccl;
  const Variable device("PLUGRAD_TEST_DEVICE", "cuda-emu"), timeout("PLUGRAD_DISTRIBUTED_TIMEOUT", "2");
  std::vector<Failure> failures(std::begin(kFailures), std::end(kFailures));
  failures.push_back({"stop", "rank 2 \\(process [0-9]+ on [^ ]+\\) gives no sign"});
  for (const Failure& failure : failures) {
    SCOPED_TRACE(failure.how);
    const Scratch scratch;
    const Variable folder("PLUGRAD_TEST_FOLDER", scratch.folder());
    expect_named(launch(3, {PLUGRAD_RANKS, "fail", failure.how, "6"}), failure.named, 2, scratch.folder());
  }
}

TEST(Failures, OfNcclsDevice) {
  const OverNccl nccl;
  const Variable two("PLUGRAD_SIMT", "devices=2"), device("PLUGRAD_TEST_DEVICE", "cuda-emu");
  const Words program{PLUGRAD_RANKS, "fail", "nothing", "0"};
  {
    const Variable option("PLUGRAD_NCCL_EMU_OPTIONS", "device=1");
    const Outcome outcome = launch(2, program);
    expect_mentions(outcome.out,
                    "memory of CUDA device 0, but this process uses device 1 for NCCL: use one device for each "
                    "rank, or set PLUGRAD_NCCL_OPTIONS=device=0");
    EXPECT_EQ(count_of(outcome.out, "survivor: "), 2u) << outcome.out;
  }
  const Variable option("PLUGRAD_NCCL_EMU_OPTIONS", "device=first");
  expect_mentions(launch(1, program).out, "option device='first' is not an integer from 0 to 4095");
}

TEST(Failures, OfTheEngine) {
  const Variable engine("PLUGRAD_COMMUNICATOR", sim()), timeout("PLUGRAD_DISTRIBUTED_TIMEOUT", "2"),
      options("PLUGRAD_SIM_OPTIONS", "engine=" + gloo() + ",fail=3,fail_rank=1");
  const Outcome outcome = launch(2, {PLUGRAD_RANKS, "fail", "nothing", "0"});
  expect_mentions(outcome.out, "sim fails at call 3");
  EXPECT_EQ(count_of(outcome.out, "survivor: "), 2u) << outcome.out;
}

TEST(Failures, ADifferenceIsAnErrorOfAllAtOnceWithChecks) {
  const Variable checks("PLUGRAD_DISTRIBUTED_CHECK", "1");
  const Outcome outcome = launch(2, {PLUGRAD_RANKS, "fail", "differ", "2"});
  // A slow rank may learn of the other rank's end before its own error.
  EXPECT_TRUE(contains(outcome.out, "rank 0 calls all_reduce of 1000 f32, but rank 1 calls barrier") ||
              contains(outcome.out, "rank 1 calls barrier, but rank 0 calls all_reduce of 1000 f32"))
      << outcome.out;
  EXPECT_EQ(count_of(outcome.out, "survivor: "), 2u) << outcome.out;
}

// --- Machines that share neither memory nor a loopback: namespaces.

// Runs the program on each machine; launch ends what runs too long. part: a file.
Outcome on_machines(int count, const std::string& part, const Words& program) {
  Words words{"env", "-u", "PLUGRAD_CPU_OPTIONS", PLUGRAD_NETWORK, std::to_string(count), part};
  words.insert(words.end(), program.begin(), program.end());
  return launch(1, words);
}
constexpr int kNotAllowed = 77;

TEST(Network, TwoMachinesTrainAsOneDoes) {
  const Scratch scratch;
  const Words passed{PLUGRAD_RANKS, "--gtest_brief=1", "--gtest_filter=Collectives.*:DataParallel.*"};
  const Outcome tests = on_machines(2, scratch.path("part"), passed);
  if (tests.status == kNotAllowed) GTEST_SKIP() << "network namespaces with TUN devices are not allowed: " << tests.err;
  expect_passed(tests, 2);
}

// The link to rank 2 breaks: all three ranks report an error.
TEST(Network, APartitionIsAnErrorOfAllRanks) {
  const Scratch scratch;
  const Variable folder("PLUGRAD_TEST_FOLDER", scratch.folder()), timeout("PLUGRAD_DISTRIBUTED_TIMEOUT", "2");
  const Outcome outcome = on_machines(3, scratch.path("part"), {PLUGRAD_RANKS, "fail", "part", "7"});
  if (outcome.status == kNotAllowed) GTEST_SKIP() << "network namespaces with TUN devices are not allowed: " << outcome.err;
  EXPECT_EQ(count_of(outcome.out, "survivor: "), 3u) << outcome.out << outcome.err;
  EXPECT_GE(count_of(outcome.out, "rank 2"), 2u) << outcome.out;
}

// --- Starting.

TEST(Start, WithoutALauncherIsAnErrorThatSaysHow) {
  const Outcome outcome = launch(1, {"env", "-u", "RANK", "-u", "WORLD_SIZE", PLUGRAD_RANKS});
  EXPECT_EQ(outcome.status, 3);
  expect_mentions(outcome.out, "nothing tells this process its rank: start it by `plugrad launch -n N PROGRAM`");
}

// Otherwise each of the processes would train alone.
TEST(Start, ByTheWrongLauncherNamesBothSizes) {
  if (!has_mpi()) GTEST_SKIP() << "there is no MPI";
  const Variable engine("PLUGRAD_COMMUNICATOR", "mpi"), root("OMPI_ALLOW_RUN_AS_ROOT", "1"),
      confirmed("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  const Outcome outcome = launch(2, {PLUGRAD_RANKS});
  expect_mentions(outcome.out, "the launcher started 2 ranks (this is rank 1), but Open MPI");
  expect_mentions(outcome.out, "sees 1 rank (this is rank 0): start the program by the launcher of this library");
}

TEST(Start, WithoutNcclSaysWhatToInstall) {
  const Variable engine("PLUGRAD_COMMUNICATOR", nccl_emu()), file("PLUGRAD_NCCL", "/nowhere/libnccl.so.2");
  expect_mentions(launch(1, {PLUGRAD_RANKS}).out,
                  "no NCCL; looked for /nowhere/libnccl.so.2. Install NCCL with `pip install "
                  "nvidia-nccl-cu13`, or -cu12, or set PLUGRAD_NCCL to the absolute path");
}

TEST(Start, RefusesUnknownCommunicatorsAndOptions) {
  {
    const Variable engine("PLUGRAD_COMMUNICATOR", "carrier-pigeon");
    expect_mentions(launch(1, {PLUGRAD_RANKS}).out, "there is no communicator 'carrier-pigeon': expected one of gloo");
  }
  {
    const Variable options("PLUGRAD_GLOO_OPTIONS", "speed=high");
    expect_mentions(launch(1, {PLUGRAD_RANKS}).out, "unknown option 'speed'; known: interface address");
  }
  const Variable engine("PLUGRAD_COMMUNICATOR", plugin_path("libplugrad-backend-cpu.so"));
  expect_mentions(launch(1, {PLUGRAD_RANKS}).out, "it does not export plugrad_communicator_v0: not a communicator");
}

TEST(Start, ARankThatDoesNotComeIsNamed) {
  const Variable timeout("PLUGRAD_DISTRIBUTED_TIMEOUT", "2");
  const Outcome outcome = launch(3, {"sh", "-c", "test $RANK = 1 || exec \"$0\"", PLUGRAD_RANKS});
  expect_mentions(outcome.out, "[init_process_group] rank 1 did not come to ");
}

// A directory in which earlier jobs met, with what they left there.
TEST(Start, TheDirectoryMayHaveBeenUsed) {
  const Scratch scratch;
  const Words program{"env", "PLUGRAD_STORE=file://" + scratch.folder(), PLUGRAD_RANKS, "--gtest_brief=1",
                      "--gtest_filter=Collectives.Broadcast"};
  for (int i = 0; i < 3; ++i) expect_passed(launch(2, program), 2);
}

// Gloo's processes under Open MPI's launcher, whose PMIx tells them where rank 0 listens.
TEST(Start, ByPmix) {
  if (!has_mpi()) GTEST_SKIP() << "there is no MPI";
  const Variable engine("PLUGRAD_COMMUNICATOR", "gloo");
  expect_passed(mpirun(3, {PLUGRAD_RANKS, "--gtest_brief=1", "--gtest_filter=Collectives.A*"}), 3);
}

TEST(Start, TwoJobsAtOnce) {
  Process first({"launch", "-n", "2", PLUGRAD_RANKS, "--gtest_brief=1", "--gtest_filter=Collectives.A*"});
  expect_passed(launch(2, {PLUGRAD_RANKS, "--gtest_brief=1", "--gtest_filter=Collectives.A*"}), 2);
  expect_passed(first.wait(), 2);
}

TEST(Launch, TellsRanksApartAndSharesTheCores) {
  const Outcome outcome = launch(3, {"sh", "-c", "echo \"$RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE\""});
  EXPECT_EQ(outcome.status, 0);
  for (const char* each : {"0 of 3, 0 of 3\n", "1 of 3, 1 of 3\n", "2 of 3, 2 of 3\n"}) expect_mentions(outcome.out, each);
}

TEST(Launch, PassesOnTheFirstFailure) {
  const Outcome outcome = launch(3, {"sh", "-c", "test $RANK = 1 && exit 9; exec sleep 1000"}, {"--grace", "0"});
  EXPECT_EQ(outcome.status, 9);
  expect_mentions(outcome.err, "plugrad launch: rank 1 (process ");
  expect_mentions(outcome.err, "ended with status 9; the others have 0 s to end");
  EXPECT_EQ(launch(2, {"sh", "-c", "kill -SEGV $$"}, {"--grace", "0"}).status, 128 + SIGSEGV);
}

TEST(Launch, PassesOnSignals) {
  const Scratch scratch;
  const std::string script = "trap 'echo asked >> " + scratch.path("asked") + "; exit 7' TERM; touch " +
                             scratch.path("ready") + ".$RANK; while :; do sleep 0.1; done";
  Process process({"launch", "-n", "2", "sh", "-c", script});
  process.wait_until([&] { return scratch.names().contains("ready.0") && scratch.names().contains("ready.1"); });
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().status, 7);
  EXPECT_EQ(read_file(scratch.path("asked")), "asked\nasked\n");
}

TEST(Launch, ItsProcessesEndWithIt) {
  const Scratch scratch;
  const std::string program = scratch.path("waits");  // a name of its own
  std::filesystem::copy_file("/bin/sleep", program);
  {
    Process process(
        {"launch", "-n", "2", "sh", "-c", "touch " + scratch.path("ready") + ".$RANK; exec " + program + " 4242"});
    process.wait_until([&] { return scratch.names().contains("ready.0") && scratch.names().contains("ready.1"); });
    process.signal(SIGKILL);
    process.wait();
  }
  for (int i = 0; i < 100 && runs(program); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(runs(program));
}

TEST(Launch, ComplainsOfWhatIsMissing) {
  expect_complaint(launch(2, {}), 2, "the program is missing: plugrad launch -n N PROGRAM");
  expect_complaint(plugrad_run({"launch", "true"}), 2, "--ranks is missing");
  expect_complaint(launch(0, {"true"}), 2, "--ranks 0: 1 to 4096 expected");
  EXPECT_EQ(launch(1, {"/no/such/program"}).status, 127);
}

}  // namespace
}  // namespace plugrad::test
