// Two devices of sim, called through the C table, and the hazards that sim counts.
#pragma once
#include <tests/streams/raw_device.hpp>

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace plugrad::test {

inline constexpr uint64_t kBytes = RawDevice::kBytes;
inline constexpr uint32_t kComputeRole = 1u << PLUGRAD_COMPUTE_STREAM;
inline const plugrad_sim& sim() { return RawDevice::sim(); }
inline std::string last_hazard() {
  char text[512];
  sim().last_hazard(text, sizeof text);
  return text;
}

// Has two streams on the first device and one stream on the second. Opens the devices once, because a process keeps them
// open.
class Sim : public testing::Test {
 protected:
  void SetUp() override { hazards_ = sim().hazards(); }
  void TearDown() override {
    sim().hold(nullptr, 0);
    sim().set_latency(nullptr, 0);
    EXPECT_EQ(sim().hazards(), hazards_) << last_hazard();
  }
  void expect_hazard() {
    EXPECT_GT(sim().hazards(), hazards_);
    hazards_ = sim().hazards();
  }
  plugrad_buffer* make() { return device.alloc(kBytes); }
  void release(std::initializer_list<plugrad_buffer*> buffers) {
    plugrad_failure failure{sizeof failure, 0, 0, 0};
    for (RawStream* s : {&compute, &copies, &distant}) RawDevice::table().sync(s->handle, &failure);
    for (plugrad_buffer* b : buffers) RawDevice::table().free(device.handle(), b);
  }
  plugrad_status sync(RawStream& stream, plugrad_failure& failure) {
    failure = {sizeof failure, 0, 0, 0};
    return RawDevice::table().sync(stream.handle, &failure);
  }

  static RawDevice& first() {
    static RawDevice& d = *new RawDevice(0);
    return d;
  }
  static RawDevice& second() {
    static RawDevice& d = *new RawDevice(1);
    return d;
  }
  RawDevice& device = first();
  RawDevice& other = second();
  RawStream compute = device.stream(), copies = device.stream(PLUGRAD_COPY_STREAM), distant = other.stream();
  uint64_t hazards_ = 0;
};

}  // namespace plugrad::test
