// Backends that call the core while it waits for them, and kernels that change the process.
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/log.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <plugrad/sdk/backend.hpp>
#include <plugrad/steps/compile.hpp>
#include <tests/error_message.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cfenv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

namespace plugrad {
namespace {

using test::contains, test::message_of;

// Must run before the first device opens: the core reads the environment once.
const bool prepared = [] {
  setenv("PLUGRAD_CHECK", "process", 1);
  setenv("PLUGRAD_PROBE_SECONDS", "1", 1);
  return true;
}();

class AsksInOpen final : public Backend {
 public:
  explicit AsksInOpen(const Opening&) { Device{wanted}; }
  static DeviceCount count() { return {2, ""}; }
  plugrad_device_info info() const override { return host_info("asks"); }
  static inline std::string wanted = "asks-in-open";
};

TEST(AskingBackend, AnOpenThatOpensDevicesIsNamed) {
  static constexpr plugrad_backend kTable = backend_table<AsksInOpen>("asks-in-open");
  add_backend(&kTable);
  for (const char* wanted : {"asks-in-open", "asks-in-open:1"}) {
    AsksInOpen::wanted = wanted;
    const std::string said = message_of([] { Device("asks-in-open"); });
    EXPECT_PRED2(contains, said, "the open of asks-in-open:0 asks the core for the device asks-in-open");
  }
}

class AsksInAThread final : public Backend {
 public:
  explicit AsksInAThread(const Opening&) {}
  static DeviceCount count() {
    std::thread([] { said = message_of([] { device_names(); }); }).join();
    return {1, ""};
  }
  plugrad_device_info info() const override { return host_info("asks"); }
  static inline std::string said;
};

TEST(AskingBackend, ACountThatWaitsForAThreadThatAsksIsNamed) {
  static constexpr plugrad_backend kTable = backend_table<AsksInAThread>("asks-in-a-thread");
  add_backend(&kTable);
  EXPECT_TRUE(has_device("asks-in-a-thread"));
  EXPECT_PRED2(contains, AsksInAThread::said, "count of the plugin asks-in-a-thread has not returned for 1 s");
}

void change_process(const Call& call) {
  std::fesetround(FE_UPWARD);
  umask(0);
  static_cast<void>(chdir("/"));
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  std::fill_n(data<float>(call.out()), call.out().count, 2.f);
}

class Changes final : public Backend {
 public:
  explicit Changes(const Opening&) {}
  plugrad_device_info info() const override { return host_info("changes"); }
  Rows kernels() const override {
    static constexpr KernelRow kRows[] = {kernel<change_process>(PLUGRAD_OP_FILL, PLUGRAD_F32)};
    return kRows;
  }
};

TEST(AskingBackend, WhatAKernelChangesInTheProcessIsPutBackAndNamed) {
  static constexpr plugrad_backend kTable = backend_table<Changes>("changes");
  add_backend(&kTable);
  const Device device("changes");
  const std::filesystem::path before = std::filesystem::current_path();
  static std::string said;
  set_log_sink([](LogLevel, std::string_view line) { said += std::string(line) + "\n"; });
  EXPECT_EQ(full({3}, 1, DType::f32, device).to_vector<float>(), (std::vector<float>{2, 2, 2}));
  set_log_sink({});
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  EXPECT_EQ(before, std::filesystem::current_path());
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  EXPECT_FALSE(sigismember(&now, SIGINT));
  EXPECT_NE(umask(022), 0u);
  for (const char* part : {"[changes:0] the kernel of fill changed", "the rounding mode", "the signal mask", "the umask",
                           "the current directory"})
    EXPECT_PRED2(contains, said, part);
}

TEST(AskingBackend, WhatAKernelOfACompiledFunctionChangesIsPutBackAndNamed) {
  static constexpr plugrad_backend kTable = backend_table<Changes>("changes-too");
  add_backend(&kTable);
  const Tensor x = full({3}, 1, DType::f32, Device("changes-too"));
  auto filled = compile([](const Tensor& given) { return full({3}, 5, DType::f32, given.device()); });
  static std::string said;
  for (int i = 0; i < 4; ++i) {
    said.clear();
    set_log_sink([](LogLevel, std::string_view line) { said += std::string(line) + "\n"; });
    EXPECT_EQ(filled(x).to_vector<float>(), (std::vector<float>{2, 2, 2}));
    set_log_sink({});
    EXPECT_PRED2(contains, said, "[changes-too:0] the kernel of fill changed") << "call " << i;
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  }
}

}  // namespace
}  // namespace plugrad
