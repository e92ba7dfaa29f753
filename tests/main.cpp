// The main function of tests that run on any device. PLUGRAD_TEST_DEVICE names the device, by default the CPU. The exit
// status is 77 if the plugin finds no such device on this machine.
#include <plugrad/runtime/runtime.hpp>
#include <tests/paths.hpp>

#include <gtest/gtest.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  const char* named = std::getenv("PLUGRAD_TEST_DEVICE");
  const std::string device = named ? named : "cpu";
  const std::string file = plugrad::test::test_plugin_path("libplugrad-backend-" + device + ".so");
  if (!plugrad::has_device(device) && std::filesystem::exists(file)) plugrad::load_plugin(file);
  if (!plugrad::has_device(device))
    for (const plugrad::PluginRecord& record : plugrad::plugins())
      if (record.name == device && record.stage == plugrad::Stage::ready) {
        std::printf("skipped: no device %s: %s\n", device.c_str(), record.reason.c_str());
        return 77;
      }
  plugrad::set_default_device(plugrad::Device(device));
  return RUN_ALL_TESTS();
}
