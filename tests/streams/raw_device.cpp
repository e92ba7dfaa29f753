#include <tests/streams/raw_device.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <thread>
#include <utility>

namespace plugrad::test {
namespace {
thread_local std::string reported;

void report(const plugrad_host*, plugrad_status, const char* message) { reported = message; }
void log(const plugrad_host*, uint32_t, const char*) {}
const void* nothing(const plugrad_host*, const char*) { return nullptr; }
constexpr plugrad_host kHost = {sizeof(plugrad_host), PLUGRAD_REVISION, plugrad_layouts, report, log, nothing};

plugrad_view dense(plugrad_buffer* buffer) {
  plugrad_view view{};
  view.buffer = buffer;
  view.count = RawDevice::kCount;
  view.dtype = PLUGRAD_F32;
  view.rank = 1;
  view.shape[0] = RawDevice::kCount;
  view.strides[0] = 1;
  return view;
}
plugrad_view immediate(double value) {
  plugrad_view view{};
  view.offset = __builtin_bit_cast(uint64_t, value);
  view.count = 1;
  view.dtype = PLUGRAD_F32;
  view.layout = PLUGRAD_IMMEDIATE;
  return view;
}

plugrad_status open(uint32_t index, const RawOptions& options, plugrad_device** handle, plugrad_device_info& info) {
  std::vector<plugrad_option> items;
  for (const auto& [key, value] : options) items.push_back({sizeof(plugrad_option), 0, key.c_str(), value.c_str()});
  const plugrad_options given{sizeof given, static_cast<uint32_t>(items.size()), sizeof(plugrad_option), items.data()};
  info.struct_size = sizeof info;
  return RawDevice::table().open(&kHost, index, &given, handle, &info);
}
}  // namespace

const plugrad_backend& RawDevice::table() { return *plugrad_sim_backend(&kHost); }
const plugrad_sim& RawDevice::sim() { return *static_cast<const plugrad_sim*>(table().get_extension("sim/0")); }
std::string RawDevice::last_report() { return std::exchange(reported, {}); }

plugrad_status RawDevice::try_open(uint32_t index, const RawOptions& options) {
  plugrad_device* handle = nullptr;
  plugrad_device_info info{};
  return open(index, options, &handle, info);
}

RawDevice::RawDevice(uint32_t index, const RawOptions& options) {
  if (open(index, options, &handle_, info_) != PLUGRAD_OK) throw std::runtime_error("open: " + last_report());
}

RawStream RawDevice::stream(uint32_t role) const {
  RawStream made;
  if (table().stream_create(handle_, role, &made.handle) != PLUGRAD_OK)
    throw std::runtime_error("stream_create: " + last_report());
  return made;
}

plugrad_buffer* RawDevice::alloc(uint64_t bytes) const {
  plugrad_buffer* buffer = nullptr;
  if (table().alloc(handle_, bytes, &buffer) != PLUGRAD_OK) throw std::runtime_error("alloc: " + last_report());
  return buffer;
}

const plugrad_kernel* RawDevice::kernel(uint32_t opcode, std::vector<uint8_t> dtypes, uint16_t layout,
                                        uint32_t outputs) const {
  plugrad_signature question{};
  question.struct_size = sizeof question;
  question.opcode = opcode;
  question.layout = layout;
  question.outputs = static_cast<uint8_t>(outputs);
  question.inputs = static_cast<uint8_t>(dtypes.size() - outputs);
  std::copy(dtypes.begin(), dtypes.end(), question.dtypes);
  return table().resolve(handle_, &question);
}

plugrad_status RawDevice::run(RawStream& on, uint32_t opcode, plugrad_buffer* out, std::vector<plugrad_buffer*> inputs,
                              double value) const {
  plugrad_view views[PLUGRAD_MAX_OPERANDS] = {dense(out)};
  const plugrad_view* pointers[PLUGRAD_MAX_OPERANDS] = {&views[0]};
  uint16_t layout = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    views[i + 1] = inputs[i] ? dense(inputs[i]) : immediate(value);
    pointers[i + 1] = &views[i + 1];
    layout |= views[i + 1].layout;
  }
  const plugrad_kernel* k = kernel(opcode, std::vector<uint8_t>(inputs.size() + 1, PLUGRAD_F32), layout);
  if (!k) return PLUGRAD_UNSUPPORTED;
  const plugrad_op op{
      sizeof op, opcode, on.number + 1, pointers, nullptr, 1, static_cast<uint16_t>(inputs.size()), 0, nullptr, 0, 0};
  const plugrad_status status = k->run(k, on.handle, &op);
  if (status == PLUGRAD_OK) ++on.number;
  return status;
}

plugrad_status RawDevice::copy(RawStream& on, const plugrad_place& to, const plugrad_place& from, uint64_t bytes) {
  const plugrad_copy c{sizeof c, 0, on.number + 1, bytes, to, from};
  const plugrad_status status = table().copy(on.handle, &c);
  if (status == PLUGRAD_OK) ++on.number;
  return status;
}

float RawDevice::read(RawStream& on, plugrad_buffer* buffer) const {
  std::vector<float> values(kCount, 0.0f);
  if (copy(on, host(values.data()), place(buffer), kBytes) != PLUGRAD_OK) throw std::runtime_error("copy: " + last_report());
  for (float value : values)
    if (value != values[0]) return std::numeric_limits<float>::quiet_NaN();
  return values[0];
}

plugrad_status wait(RawStream& on, const RawStream& other, uint64_t number) {
  return RawDevice::table().wait(on.handle, other.handle, &number);
}

plugrad_status complete(const RawStream& stream, uint64_t number) {
  for (uint64_t done = 0;;) {
    const plugrad_status status = RawDevice::table().completed(stream.handle, &done);
    if (done >= number) return status;
    std::this_thread::yield();
  }
}

}  // namespace plugrad::test
