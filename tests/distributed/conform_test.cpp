// plugrad-conform on the communicators of this tree, and on a communicator with planted faults.
#include <tests/distributed/jobs.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <cstdlib>

namespace plugrad::test {
namespace {

struct Report {
  int status;
  std::string text;
};

Report conform(const std::string& words) {
  const Scratch scratch;
  const std::string command = "'" PLUGRAD_CONFORM "' " + words + " > " + scratch.path("out") + " 2>&1";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(scratch.path("out"))};
}
std::string sim_with(const std::string& options) { return "--option engine=" + gloo() + options + " " + sim(); }

TEST(Conform, Gloo) {
  const Report report = conform(gloo());
  EXPECT_EQ(report.status, 0) << report.text;
  expect_mentions(report.text, "0 failures");
  for (const char* each : {"collectives", "uneven_parts", "messages", "groups", "time_out", "abort", "death"})
    expect_mentions(report.text, std::string("communicator.") + each);
  expect_mentions(report.text, "declined, so a core composes them: all_reduce of bf16");
}

TEST(Conform, Nccl) {
  const OverNccl nccl;
  const Report report = conform(nccl_emu());
  EXPECT_EQ(report.status, 0) << report.text;
  expect_mentions(report.text, "declined, so a core composes them: all_reduce of i16, reduce_scatter of i16\n");
}

TEST(Conform, Mpi) {
  const std::string file = plugin_path("libplugrad-communicator-mpi.so");
  if (!has_mpi()) GTEST_SKIP() << "there is no MPI";
  const Variable root("OMPI_ALLOW_RUN_AS_ROOT", "1"), confirmed("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  const Report report = conform("--launcher 'mpirun.openmpi --oversubscribe --bind-to none -n 3' " + file);
  EXPECT_EQ(report.status, 0) << report.text;
  const Report alone = conform(file);
  EXPECT_EQ(alone.status, 2);
  expect_mentions(alone.text, "its engine has a launcher of its own: add, for example, --launcher 'mpirun -n 3'");
}

TEST(Conform, Mpich) {
  if (!has_mpich()) GTEST_SKIP() << "there is no MPICH";
  const Report report = conform("--launcher 'mpirun.mpich -n 3' " + plugin_path("libplugrad-communicator-mpich.so"));
  EXPECT_EQ(report.status, 0) << report.text;
}

TEST(Conform, AnEngineThatOnlyHasMessagesMayDeclineTheRest) {
  const std::string words = "--only communicator.collectives,communicator.messages ";
  const Report report = conform(words + sim_with(" --option decline=all"));
  EXPECT_EQ(report.status, 0) << report.text;
  expect_mentions(report.text, "all_to_all of f32");
}

TEST(Conform, FindsWrongResultsAndErrors) {
  const Report wrong = conform("--only communicator.collectives,communicator.messages " + sim_with(" --option wrong=1"));
  EXPECT_EQ(wrong.status, 1);
  expect_mentions(wrong.text, "all_reduce by sum of 1 f32: wrong elements");
  expect_mentions(wrong.text, "message 0: wrong elements");
  const Report fails = conform("--only communicator.uneven_parts " + sim_with(" --option fail=1"));
  EXPECT_EQ(fails.status, 1);
  expect_mentions(fails.text, "rank 0: all_to_all of uneven parts: PEER_LOST: sim fails at call 1");
}

TEST(Conform, RefusesOtherFilesAndChecks) {
  const Scratch scratch;
  const std::string file = scratch.write("libplugrad-communicator-none.so", "nothing");
  EXPECT_EQ(conform(file).status, 2);
  const Report report = conform("--only communicator.speed " + gloo());
  EXPECT_EQ(report.status, 2);
  expect_mentions(report.text, "a communicator has no such check; --list shows them");
  expect_mentions(conform("--list " + gloo()).text, "communicator.death\n");
}

}  // namespace
}  // namespace plugrad::test
