// Small plugins that keep the contract or break it in one place; PLUGRAD_VARIANT selects the plugin.
#include <plugrad/sdk/backend.hpp>

#include <cstdlib>
#include <string_view>

using plugrad::Backend, plugrad::Call, plugrad::DeviceCount, plugrad::KernelRow, plugrad::Opening, plugrad::Rows;

#ifdef PLUGRAD_CALLS_MISSING
extern "C" int plugrad_test_missing_function();
#endif

namespace {
constexpr std::string_view kVariant = PLUGRAD_VARIANT;

void fill(const Call& call) {
  float* out = plugrad::data<float>(call.out());
  std::fill_n(out, call.out().count, plugrad::immediate<float>(call.in(0)));
}
void add(const Call& call) {
  const float *a = plugrad::data<float>(call.in(0)), *b = plugrad::data<float>(call.in(1));
  std::transform(a, a + call.out().count, b, plugrad::data<float>(call.out()), [](float x, float y) { return x + y; });
}

class Tiny final : public Backend {
 public:
  explicit Tiny(const Opening& opening) {
    opening.options.allow({"mood", "memory"});
    if (const char* mood = opening.options.find("mood")) mood_ = mood;
    if (kVariant == "throws_at_open") throw std::runtime_error("the machine is on fire");
  }
  static DeviceCount count() {
    if (kVariant == "no_device") return {0, "no such hardware in this machine"};
    if (kVariant == "no_device_silent") return {0, ""};
    if (kVariant == "count_fails") throw std::runtime_error("cannot count");
    if (kVariant == "count_aborts") std::abort();  // as a driver that crashes at startup
#ifdef PLUGRAD_CALLS_MISSING
    return {static_cast<uint32_t>(plugrad_test_missing_function()), ""};
#endif
    return {kVariant == "two_devices" ? 2u : 1u, ""};
  }
  plugrad_device_info info() const override {
    plugrad_device_info known = host_info("tiny, " + mood_);
    if (kVariant == "bad_alignment") known.alignment = 48;
    return known;
  }
  Rows kernels() const override {
    static constexpr KernelRow kRows[] = {plugrad::kernel<fill>(PLUGRAD_OP_FILL, PLUGRAD_F32),
                                          plugrad::kernel<add>(PLUGRAD_OP_ADD, PLUGRAD_F32, 0)};
    return kRows;
  }

 private:
  std::string mood_ = "calm";
};

// A table of the next revision: one more field and one more hash.
struct NextBackend {
  plugrad_backend known;
  void (*appended)();
};
constexpr uint64_t kForeign[] = {0x1234567812345678};
constexpr uint64_t kNext[] = {PLUGRAD_LAYOUT_0, 0x8765432187654321};

plugrad_status alloc_only(plugrad_device*, uint64_t, plugrad_buffer**) { return PLUGRAD_OUT_OF_MEMORY; }

constexpr NextBackend table() {
  NextBackend t{plugrad::backend_table<Tiny>("tiny", "7.1"), nullptr};
  plugrad_backend& b = t.known;
  if (kVariant == "short_table") b.struct_size = 100;
  if (kVariant == "foreign_hash") b.layouts = kForeign;
  if (kVariant == "no_hash") b.layouts = nullptr;
  if (kVariant == "bad_name") b.name = "Tiny!";
  if (kVariant == "null_name") b.name = nullptr;
  if (kVariant == "null_open") b.open = nullptr;
  if (kVariant == "null_version") b.version = nullptr;
  if (kVariant == "half_memory") b.alloc = alloc_only;
  if (kVariant == "next_revision" || kVariant == "next_foreign") {
    b.struct_size = sizeof(NextBackend);
    b.revision = 1;
    b.layouts = kVariant == "next_foreign" ? kForeign : kNext;
  }
  return t;
}
constexpr NextBackend kTable = table();
}  // namespace

#ifdef PLUGRAD_OTHER_SYMBOL
extern "C" PLUGRAD_EXPORT int plugrad_something_else() { return static_cast<int>(kTable.known.revision); }
#else
extern "C" PLUGRAD_EXPORT const plugrad_backend* plugrad_backend_v0(const plugrad_host*) {
  return kVariant == "null_table" ? nullptr : &kTable.known;
}
#endif
