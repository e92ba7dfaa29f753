// Timelines test the work that the core's runtime submits to sim. They do not read a clock: work that completes while a
// stream is held did not wait for that stream; values, hazards and counts show the rest.
#pragma once
#include <core/runtime/dispatch/dispatch.hpp>
#include <core/runtime/memory/transfer.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <plugrad/sim.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plugrad::test {

inline constexpr uint32_t kCompute = 1u << PLUGRAD_COMPUTE_STREAM, kCopies = 1u << PLUGRAD_COPY_STREAM;
inline constexpr uint64_t kSmallBytes = 4096, kLargeBytes = 65536;  // allocated from a magazine; from the device's allocator

const plugrad_sim& sim();
std::string last_hazard();

struct Pair {
  DeviceState &first, &second;
};
// The two devices that all timelines of a process share.
Pair shared_devices();
// Two new devices, for timelines that leave them lost or full. A process can have only a few.
Pair fresh_devices(const OptionList& options = {});

// The Error that f threw, or ok.
struct Outcome {
  bool ok = true;
  Code code{};
  uint64_t first = 0, last = 0;
  std::string what;
};
template <class F> Outcome outcome(F f) {
  try {
    f();
    return {};
  } catch (const Error& error) {
    return {false, error.code(), error.first(), error.last(), error.what()};
  }
}

// The operands are f32.
Ref<Storage> make(DeviceState& device, uint64_t bytes, bool upload = false);
plugrad_view view_of(const Storage& x);
plugrad_view every_other(const Storage& x, uint64_t first);
void fill(Storage& x, float value);
void fill(Storage& x, const plugrad_view& part, float value);
void add(Storage& out, Storage& a, Storage& b);
void add(Storage& out, const plugrad_view& out_view, Storage& a, const plugrad_view& a_view, Storage& b,
         const plugrad_view& b_view);
void upload(Storage& to, float value);
// The value of all elements, or NaN if they differ. Throws as transfer::download does.
float get(Storage& x);
float value_of(const Pinned& pinned);
void set_value(Pinned& pinned, float value);
// Waits until the device has detected the failure of a submitted op.
void await_failure(StreamState& stream);

class Timeline : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override;
  void TearDown() override;
  Ref<Storage> make() { return test::make(d, bytes); }
  Ref<Storage> make(DeviceState& device) { return test::make(device, bytes); }
  Pinned pin() { return transfer::pin(d, bytes); }
  void hold(DeviceState& device, uint32_t roles) { sim().hold(device.handle, roles); }
  void expect_hazard();
  bool large() const { return bytes == kLargeBytes; }

  const uint64_t bytes = GetParam();
  DeviceState &d = shared_devices().first, &e = shared_devices().second;

 private:
  uint64_t hazards_ = 0;
};
inline std::string size_name(const testing::TestParamInfo<uint64_t>& size) {
  return size.param == kSmallBytes ? "small" : "large";
}

}  // namespace plugrad::test
