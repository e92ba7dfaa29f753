// The main function of ranks: `distributed_ranks` runs the tests of collectives, and `distributed_ranks fail HOW PLACE` ends
// in a way of its own.
#include <tests/distributed/ranks.hpp>
#include <tests/paths.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  using namespace plugrad;
  if (argc == 4 && std::string(argv[1]) == "fail") return test::fail_somewhere(argv[2], std::atoi(argv[3]));
  ::testing::InitGoogleTest(&argc, argv);
  const char* named = std::getenv("PLUGRAD_TEST_DEVICE");
  const std::string device = named ? named : "cpu";
  try {
    if (device == "sim") load_plugin(test::test_plugin_path("libplugrad-backend-sim.so"));
    set_default_device(Device(device));
    distributed::init_process_group();
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return 3;
  }
  const int status = RUN_ALL_TESTS();
  if (!status) std::printf("rank %d passed\n", distributed::get_rank());
  distributed::destroy_process_group();
  return status;
}
