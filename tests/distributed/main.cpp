// The main function of ranks: `distributed_ranks` runs the tests of collectives, and `distributed_ranks fail HOW PLACE` ends
// in a way of its own.
#include <tests/distributed/ranks.hpp>
#include <tests/paths.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace {
void choose_device() {
  using namespace plugrad;
  const char* named = std::getenv("PLUGRAD_TEST_DEVICE");
  const std::string device = named ? named : "cpu";
  if (device != "cpu") load_plugin(test::test_plugin_path("libplugrad-backend-" + device + ".so"));
  set_default_device(Device(device));
}
}  // namespace

int main(int argc, char** argv) {
  using namespace plugrad;
  ::testing::InitGoogleTest(&argc, argv);
  try {
    choose_device();
    if (argc == 4 && std::string(argv[1]) == "fail") return test::fail_somewhere(argv[2], std::atoi(argv[3]));
    distributed::init_process_group();
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return 3;
  }
  int status = RUN_ALL_TESTS();
  const distributed::Group all = distributed::world();
  const int rank = all.rank();
  distributed::destroy_process_group();
  try {
    distributed::all_reduce(zeros({1}), distributed::ReduceOp::sum, {.group = all});
    status = 4;
  } catch (const Error& error) {
    if (std::string(error.what()).find("this process has left the group") == std::string::npos) status = 5;
  }
  if (!status) std::printf("rank %d passed\n", rank);
  return status;
}
