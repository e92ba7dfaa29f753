#include <tests/streams/rig.hpp>

#include <core/runtime/plugins/registry.hpp>

#include <atomic>
#include <limits>
#include <memory>
#include <thread>

namespace plugrad::test {
namespace {
const plugrad_backend& table() { return *plugrad_sim_backend(host()); }
Pair devices_of(const std::string& name) { return {Device(name + ":0").state(), Device(name + ":1").state()}; }

float same(const float* values, uint64_t bytes) {
  for (uint64_t i = 1; i < bytes / sizeof(float); ++i)
    if (values[i] != values[0]) return std::numeric_limits<float>::quiet_NaN();
  return values[0];
}
}  // namespace

const plugrad_sim& sim() { return *static_cast<const plugrad_sim*>(table().get_extension("sim/0")); }
std::string last_hazard() {
  char text[512];
  sim().last_hazard(text, sizeof text);
  return text;
}

Pair shared_devices() {
  static const Pair pair = (add_backend(&table()), devices_of("sim"));
  return pair;
}

// For the core, the same plugin under another name is another device. Tables exist until the process ends.
Pair fresh_devices(const OptionList& options) {
  static std::atomic<int> made{0};
  const std::string& name = *new std::string("sim-" + std::to_string(++made));
  auto& copy = *new plugrad_backend(table());
  copy.name = name.c_str();
  add_backend(&copy);
  set_device_options(name, options);
  return devices_of(name);
}

Ref<Storage> make(DeviceState& device, uint64_t bytes, bool upload) { return allocate(device, bytes, 0, upload); }

plugrad_view view_of(const Storage& x) {
  plugrad_view view{};
  view.buffer = x.buffer;
  view.offset = x.offset;
  view.dtype = PLUGRAD_F32;
  view.rank = 1;
  view.shape[0] = static_cast<int64_t>(x.size / sizeof(float));
  set_dense(view, x.device->info.alignment);
  return view;
}

plugrad_view every_other(const Storage& x, uint64_t first) {
  plugrad_view view = view_of(x);
  view.offset += first * sizeof(float);
  view.count = view.shape[0] /= 2;
  view.strides[0] = 2;
  view.layout = static_cast<uint16_t>(PLUGRAD_STRIDED | (first ? PLUGRAD_UNALIGNED : 0));
  return view;
}

void fill(Storage& x, const plugrad_view& part, float value) {
  run(Op::FILL, {{part, &x}}, {immediate(PLUGRAD_F32, value, 0)});
}
void fill(Storage& x, float value) { fill(x, view_of(x), value); }

void add(Storage& out, const plugrad_view& out_view, Storage& a, const plugrad_view& a_view, Storage& b,
         const plugrad_view& b_view) {
  run(Op::ADD, {{out_view, &out}}, {{a_view, &a}, {b_view, &b}});
}
void add(Storage& out, Storage& a, Storage& b) { add(out, view_of(out), a, view_of(a), b, view_of(b)); }

void upload(Storage& to, float value) {
  const std::vector<float> values(to.size / sizeof(float), value);
  transfer::upload(to, 0, values.data(), to.size);
}

float get(Storage& x) {
  std::vector<float> values(x.size / sizeof(float));
  transfer::download(values.data(), x, 0, x.size);
  return same(values.data(), x.size);
}

float value_of(const Pinned& pinned) { return same(reinterpret_cast<const float*>(pinned.bytes), pinned.size); }
void set_value(Pinned& pinned, float value) {
  std::fill_n(reinterpret_cast<float*>(pinned.bytes), pinned.size / sizeof(float), value);
}

void await_failure(StreamState& stream) {
  uint64_t number = 0;
  while (stream.device->table.completed(stream.handle, &number) == PLUGRAD_OK) std::this_thread::yield();
}

void Timeline::SetUp() { hazards_ = sim().hazards(); }

// After every timeline: disarms faults; expects no pending failure, no hazard, and equal call counts in core and device.
void Timeline::TearDown() {
  sim().hold(nullptr, 0);
  sim().set_latency(nullptr, 0);
  for (uint32_t fault = 0; fault < PLUGRAD_SIM_FAULTS; ++fault) sim().arm(nullptr, fault, 0);
  for (DeviceState* device : {&d, &e}) {
    for (StreamState* stream : {device->compute, device->copies}) EXPECT_TRUE(outcome([&] { streams::sync(*stream); }).ok);
    EXPECT_EQ(sim().runs(device->handle, 0), kernels_called(device->ordinal));
    device->allocator.trim();
  }
  EXPECT_EQ(sim().hazards(), hazards_) << last_hazard();
}

void Timeline::expect_hazard() {
  EXPECT_GT(sim().hazards(), hazards_);
  hazards_ = sim().hazards();
}

}  // namespace plugrad::test
