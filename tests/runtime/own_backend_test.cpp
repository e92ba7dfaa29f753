// A backend that the program itself defines: a class here instead of a plugin file.
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <plugrad/sdk/fusion.hpp>
#include <plugrad/steps/compile.hpp>
#include <tests/error_message.hpp>

#include <gtest/gtest.h>
#include <algorithm>
#include <atomic>
#include <set>
#include <string>

namespace plugrad {
namespace {

using test::contains, test::message_of;

void fill(const Call& call) { std::fill_n(data<float>(call.out()), call.out().count, immediate<float>(call.in(0))); }
void multiply(const Call& call) {
  const float *a = data<float>(call.in(0)), *b = data<float>(call.in(1));
  std::transform(a, a + call.out().count, b, data<float>(call.out()), std::multiplies<float>());
}

// Allocates and counts its own memory.
class Abacus final : public Backend {
 public:
  explicit Abacus(const Opening& opening) { opening.options.allow({}); }
  static DeviceCount count() { return {2, ""}; }
  // The functions for fusions as an earlier version of the contract had them. It runs no fusion.
  static const void* extension(std::string_view name) noexcept {
    static constexpr plugrad_fusions kEarlier{offsetof(plugrad_fusions, reach), 0, 1, 0, asked_for_fusion, nullptr, 0};
    return name == PLUGRAD_FUSIONS ? &kEarlier : nullptr;
  }
  static const plugrad_kernel* asked_for_fusion(plugrad_device*, const plugrad_fusion*) {
    ++fusions;
    return nullptr;
  }
  plugrad_device_info info() const override { return host_info("wood"); }
  Rows kernels() const override {
    static constexpr KernelRow kRows[] = {kernel<fill>(PLUGRAD_OP_FILL, PLUGRAD_F32),
                                          kernel<multiply>(PLUGRAD_OP_MUL, PLUGRAD_F32, 0)};
    return kRows;
  }
  plugrad_buffer* alloc(uint64_t bytes) override {
    ++blocks;
    return static_cast<plugrad_buffer*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  }
  void free(plugrad_buffer* buffer) noexcept override {
    --blocks;
    std::free(buffer);
  }
  static inline std::atomic<int> blocks{0}, fusions{0};
};

constexpr plugrad_backend kAbacus = backend_table<Abacus>("abacus", "1");

// Registers the backend once, in the first test that needs it.
const PluginRecord& registered() {
  static const PluginRecord record = add_backend(&kAbacus, "the test itself");
  return record;
}

TEST(OwnBackend, IsADeviceLikeAnyOther) {
  const PluginRecord& record = registered();
  EXPECT_EQ(record.stage, Stage::ready);
  EXPECT_EQ(record.name, "abacus");
  EXPECT_EQ(record.devices, 2u);
  const Device device("abacus:1");
  EXPECT_EQ(device.plugin(), "the test itself");
  EXPECT_EQ(device.description(), "wood");
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3}, {3}, device);
  EXPECT_EQ(mul(x, full({3}, 4, DType::f32, device)).to_vector<float>(), (std::vector<float>{4, 8, 12}));
  EXPECT_EQ(device.counters().kernels, 2u);

  auto step = compile([](const Tensor& a) { return mul(mul(a, a), a); });  // asks for fusions
  const Tensor made = step(full({8}, 2, DType::f32, device));
  EXPECT_EQ(made.to_vector<float>(), std::vector<float>(8, 8));
  EXPECT_GT(Abacus::fusions, 0);
}

TEST(OwnBackend, IsAmongTheRecordsAndTheDevices) {
  registered();
  const auto names = device_names();
  for (const char* name : {"abacus:0", "abacus:1"}) EXPECT_EQ(std::ranges::count(names, name), 1) << name;
  const auto records = plugins();
  EXPECT_EQ(std::ranges::count(records, "the test itself", &PluginRecord::path), 1);
  EXPECT_TRUE(has_device("abacus:1"));
  EXPECT_FALSE(has_device("abacus:2"));
}

TEST(OwnBackend, ItsMemoryComesAndGoesThroughIt) {
  registered();
  const Device device("abacus:0");
  device.trim();
  const int before = Abacus::blocks;
  {
    const Tensor big = full({1 << 16}, 1, DType::f32, device);
    EXPECT_EQ(Abacus::blocks, before + 1);
  }
  EXPECT_EQ(Abacus::blocks, before + 1);
  EXPECT_EQ(device.trim(), uint64_t{2} << 20);  // a segment
  EXPECT_EQ(Abacus::blocks, before);
}

TEST(OwnBackend, WhatItLacksIsAnErrorThatNamesOpDtypesAndDevice) {
  registered();
  const Tensor x = full({3}, 1, DType::f32, Device("abacus"));
  const std::string message = message_of([&] { exp(x); });
  for (const char* part : {"[exp]", "abacus:0", "f32", "PLUGRAD_FALLBACK"}) EXPECT_PRED2(contains, message, part);
}

TEST(OwnBackend, OfANameThatIsTakenIsRefusedAndRecorded) {
  registered();
  static constexpr plugrad_backend kSecond = backend_table<Abacus>("abacus");
  EXPECT_PRED2(contains, message_of([] { add_backend(&kSecond, "the second"); }), "the test itself");
  const auto records = plugins();
  const auto second = std::ranges::find(records, "the second", &PluginRecord::path);
  ASSERT_NE(second, records.end());
  EXPECT_EQ(second->stage, Stage::shadowed);
}

TEST(OwnBackend, ThatIsNoneIsRefused) {
  EXPECT_PRED2(contains, message_of([] { add_backend(nullptr); }), "null");
  static constexpr plugrad_backend kNameless = [] {
    plugrad_backend t = kAbacus;
    t.name = "0";
    return t;
  }();
  EXPECT_PRED2(contains, message_of([] { add_backend(&kNameless); }), "[a-z][a-z0-9_-]*");
}

TEST(OwnBackend, ADetachedDeviceTakesNoWorkButGivesItsTensorsBack) {
  static constexpr plugrad_backend kLeaving = backend_table<Abacus>("leaving");
  add_backend(&kLeaving);
  const Device device("leaving");
  const Tensor x = Tensor::from(std::vector<float>{1, 2}, {2}, device);
  mul(x, x);
  device.detach();
  device.detach();
  for (int i = 0; i < 2; ++i) EXPECT_PRED2(contains, message_of([&] { mul(x, x); }), "detached");
  EXPECT_PRED2(contains, message_of([&] { full({1 << 16}, 1, DType::f32, device); }), "detached");
  EXPECT_PRED2(contains, message_of([&] { Tensor::from(std::vector<float>{1}, {1}, device); }), "detached");
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2}));
}

// The creation of the second stream fails: the first stream must be destroyed.
class HalfDone final : public Backend {
 public:
  explicit HalfDone(const Opening&) {}
  plugrad_device_info info() const override { return host_info("half", PLUGRAD_HOST_MEM | PLUGRAD_ASYNC); }
  void copy(Stream*, const plugrad_copy&) override {}
  std::unique_ptr<Stream> stream_create(uint32_t role) override {
    if (role == PLUGRAD_COPY_STREAM) throw std::runtime_error("one stream is enough");
    return std::make_unique<Stream>();
  }
  plugrad_status completed(Stream&, uint64_t&) noexcept override { return PLUGRAD_OK; }
  void wait(Stream&, Stream&, uint64_t&) override {}
  void sync(Stream&, plugrad_failure&) override { ++syncs; }
  static inline std::atomic<int> syncs{0};
};

TEST(OwnBackend, AnOpenThatFailedHalfwayCanBeTriedAgain) {
  static constexpr plugrad_backend kHalf = backend_table<HalfDone>("half");
  add_backend(&kHalf);
  for (int i = 0; i < 40; ++i)  // more often than the limit on streams allows
    EXPECT_PRED2(contains, message_of([] { Device("half"); }), "one stream is enough");
}

// The core checks the properties that an opened device reports.
class Liar final : public Backend {
 public:
  explicit Liar(const Opening&) {}
  plugrad_device_info info() const override {
    plugrad_device_info known = host_info("liar", capabilities);
    known.alignment = alignment;
    std::fill(std::begin(known.name), std::end(known.name), 'x');  // no final 0
    return known;
  }
  static inline uint32_t capabilities = 0;
  static inline uint64_t alignment = 64;
};

TEST(OwnBackend, WhatBreaksTheContractAtOpenIsNamed) {
  static constexpr plugrad_backend kLiar = backend_table<Liar>("liar");
  add_backend(&kLiar);
  Liar::capabilities = 0;
  EXPECT_PRED2(contains, message_of([] { Device("liar"); }), "not HOST_MEM");
  Liar::capabilities = PLUGRAD_HOST_MEM | PLUGRAD_ASYNC;
  EXPECT_PRED2(contains, message_of([] { Device("liar"); }), "ASYNC");
  Liar::capabilities = PLUGRAD_HOST_MEM;
  for (const uint64_t alignment : {uint64_t(0), uint64_t(48)}) {
    Liar::alignment = alignment;
    EXPECT_PRED2(contains, message_of([] { Device("liar"); }), "alignment");
  }
  Liar::alignment = 64;
  EXPECT_EQ(Device("liar").description(), std::string(64, 'x'));
}

}  // namespace
}  // namespace plugrad
