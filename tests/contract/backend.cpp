// Uses the C++ headers as a plugin author would: overrides every virtual function and makes each kind of row.
#include <plugrad/sdk/list.hpp>
#include <plugrad/sdk/native.hpp>
#include <plugrad/sdk/rows.hpp>

namespace {

using namespace plugrad;

void negate(const Call& call) {
  for (int64_t i = 0; i < call.out().count; ++i) data<float>(call.out())[i] = -data<float>(call.in(0))[i];
}
uint64_t bytes(const Call& call) { return static_cast<uint64_t>(call.out().count); }

constexpr KernelRow kRows[] = {kernel<negate>(PLUGRAD_OP_NEG, PLUGRAD_F32, 0),
                               kernel<negate>(PLUGRAD_OP_CAST, {PLUGRAD_F32, PLUGRAD_I64}),
                               with_workspace<bytes>(kernel<negate>(PLUGRAD_OP_ABS, PLUGRAD_F32, PLUGRAD_STRIDED))};

template <class F, class Out, class... In> void map(const Call& call) {
  *data<Out>(call.out()) = static_cast<Out>(F()(widened(In{})...));
}
struct Maker {
  static constexpr bool makes(const OpInfo&) { return true; }
  template <class F, class Out, class... In> static constexpr KernelRow row(const OpInfo& op, uint8_t dtype) {
    return kernel<map<F, Out, In...>>(op.opcode, dtype);
  }
};
constexpr auto kMade = elementwise_rows<Maker>(kAny);
static_assert(kMade.size() > 100);

class Again final : public CallList {
  void run(uint64_t, Changes) override {}
};

class Whole final : public Backend, public NativeStreams, public CallLists {
 public:
  explicit Whole(const Opening& opening) { opening.options.allow({"threads"}); }
  static DeviceCount count() { return {0, "no hardware"}; }
  plugrad_device_info info() const override { return host_info("whole", PLUGRAD_HOST_MEM | PLUGRAD_ASYNC); }
  Rows kernels() const override { return kRows; }
  plugrad_buffer* alloc(uint64_t) override { throw std::bad_alloc(); }
  void free(plugrad_buffer*) noexcept override {}
  void memory_info(uint64_t& free_bytes, uint64_t& total) override { free_bytes = total = 1; }
  void* pin(uint64_t) override { return nullptr; }
  void unpin(void*) noexcept override {}
  void copy(Stream*, const plugrad_copy&) override {}
  std::unique_ptr<Stream> stream_create(uint32_t) override { return std::make_unique<Stream>(); }
  plugrad_status completed(Stream&, uint64_t&) noexcept override { return PLUGRAD_OK; }
  void wait(Stream&, Stream&, uint64_t&) override { throw BackendError(PLUGRAD_INVALID, "not yet submitted"); }
  void sync(Stream&, plugrad_failure&) override {}
  static const void* extension(std::string_view name) noexcept {
    if (name == PLUGRAD_LISTS) return &kLists<Whole, 4>;
    return name == "whole/0" ? "its own" : nullptr;
  }
  std::unique_ptr<CallList> make_list(Stream&, std::span<const plugrad_list_call>, uint32_t) override {
    return std::make_unique<Again>();
  }
  bool batches(const plugrad_kernel&) const noexcept override { return true; }
  void* native_handle(Stream& stream) override { return &stream; }
  void wait_native(Stream&, uint64_t, void*) override {}
  void signal_native(Stream&, uint64_t, void*) override {}
  void notify(Stream&, uint64_t, Notice notice) override { notice(); }
};

}  // namespace

PLUGRAD_EXPORT_BACKEND(Whole, "whole", "1.0")
