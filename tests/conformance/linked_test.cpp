// Runs every conformance case as a separate test on each linked backend.
#include <sdk/conformance/session.hpp>

#include <gtest/gtest.h>

#include <plugrad/backends/reference.hpp>
#ifdef PLUGRAD_WITH_CPU
#include <plugrad/backends/cpu.hpp>
#endif
#ifdef PLUGRAD_WITH_SIM
#include <plugrad/sim.hpp>
#endif
#ifdef PLUGRAD_WITH_CUDA_EMU
#include <plugrad/backends/cuda.hpp>
#endif

#include <memory>

namespace plugrad::conformance {
namespace {

struct Linked {
  const char* name;
  plugrad_backend_entry entry;
};

constexpr Linked kLinked[] = {
    {"reference", plugrad_reference_backend},
#ifdef PLUGRAD_WITH_CPU
    {"cpu", plugrad_cpu_backend},
#endif
#ifdef PLUGRAD_WITH_SIM
    {"sim", plugrad_sim_backend},
#endif
#ifdef PLUGRAD_WITH_CUDA_EMU
    {"cuda_emu", plugrad_cuda_backend},
#endif
};

class LinkedCase : public testing::Test {
 public:
  LinkedCase(const Linked& linked, const Case& one) : linked_(linked), case_(one) {}

  void TestBody() override {
    const plugrad_host* host = make_host();
    const Plugin plugin = linked_plugin(linked_.entry, linked_.name, host);
    const Counted counted = count_devices(plugin, host);
    ASSERT_TRUE(counted.outcome.ok()) << counted.outcome.text();
    if (counted.devices == 0) GTEST_SKIP() << "no device: " << counted.reason;
    const Settings settings;
    Device device(plugin.table, host, settings.device, settings.options);
    Session session{plugin, host, settings, counted.devices, device};
    Tally tally;
    run_case(case_, session, tally);
    for (const std::string& line : tally.lines()) ADD_FAILURE() << line;
    EXPECT_EQ(tally.failures(), 0u);
    if (tally.cases() == 0 && !tally.failures())
      GTEST_SKIP() << (tally.skips().empty() ? "the backend does not claim the op" : tally.skips()[0]);
  }

 private:
  const Linked& linked_;
  const Case& case_;
};

void register_cases() {
  for (const Linked& linked : kLinked)
    for (const Case& one : all_cases())
      testing::RegisterTest((std::string("Conformance.") + linked.name).c_str(), one.name.c_str(), nullptr, nullptr,
                            __FILE__, __LINE__, [&linked, &one]() -> testing::Test* { return new LinkedCase(linked, one); });
}

}  // namespace
}  // namespace plugrad::conformance

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  plugrad::conformance::register_cases();
  return RUN_ALL_TESTS();
}
