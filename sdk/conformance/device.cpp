#include <sdk/conformance/device.hpp>

#include <cstdlib>
#include <cstring>

namespace plugrad::conformance {
namespace {

void require(const char* what, const Outcome& outcome) {
  if (!outcome.ok()) throw Breach(std::string(what) + " returned " + outcome.text());
}

}  // namespace

void keep(void* handle) {
  static std::mutex& mutex = *new std::mutex;
  static std::vector<void*>& handles = *new std::vector<void*>;
  const std::scoped_lock lock(mutex);
  handles.push_back(handle);
}

Device::Device(const plugrad_backend* table, const plugrad_host* host, uint32_t index, const OptionList& options)
    : table_(table) {
  std::vector<plugrad_option> items;
  for (const auto& [key, value] : options) items.push_back({sizeof(plugrad_option), 0, key.c_str(), value.c_str()});
  const plugrad_options given{sizeof given, static_cast<uint32_t>(items.size()), sizeof(plugrad_option), items.data()};
  info_.struct_size = sizeof info_;
  require("open", attempt("open", [&] { return table->open(host, index, &given, &handle_, &info_); }));
  if (!handle_) throw Breach("open returned OK but no device");
  keep(handle_);
}

plugrad_buffer* Device::alloc(uint64_t bytes) {
  if (!table_->alloc) {
    const uint64_t whole = (bytes + info_.alignment - 1) / info_.alignment * info_.alignment;
    return reinterpret_cast<plugrad_buffer*>(std::aligned_alloc(info_.alignment, whole));
  }
  plugrad_buffer* buffer = nullptr;
  const std::scoped_lock lock(serial_);
  const Outcome outcome = attempt("alloc", [&] { return table_->alloc(handle_, bytes, &buffer); });
  if (outcome.status == PLUGRAD_OUT_OF_MEMORY)
    throw NoRoom("alloc of " + std::to_string(bytes) + " bytes returned " + outcome.text());
  require("alloc", outcome);
  if (!buffer) throw Breach("alloc returned OK but no buffer");
  return buffer;
}

void Device::free(plugrad_buffer* buffer) {
  if (!table_->free) return std::free(buffer);
  const std::scoped_lock lock(serial_);
  table_->free(handle_, buffer);
}

Queue Device::make_queue(uint32_t role) {
  Queue queue;
  if (!async()) return queue;
  const std::scoped_lock lock(serial_);
  require("stream_create", attempt("stream_create", [&] { return table_->stream_create(handle_, role, &queue.stream); }));
  if (!queue.stream) throw Breach("stream_create returned OK but no stream");
  keep(queue.stream);
  return queue;
}

Outcome Device::run(Queue& queue, const plugrad_kernel* kernel, plugrad_op op) const {
  op.number = queue.stream ? queue.last + 1 : 0;
  Outcome outcome = attempt("run", [&] { return kernel->run(kernel, queue.stream, &op); });
  if (outcome.ok()) queue.last = op.number;
  return outcome;
}

Outcome Device::copy(Queue& queue, plugrad_copy copy) const {
  if (!table_->copy) {
    const auto address = [](const plugrad_place& place) { return reinterpret_cast<char*>(place.buffer) + place.offset; };
    std::memcpy(address(copy.to), address(copy.from), copy.bytes);
    return {};
  }
  copy.number = queue.stream ? queue.last + 1 : 0;
  Outcome outcome = attempt("copy", [&] { return table_->copy(queue.stream, &copy); });
  if (outcome.ok()) queue.last = copy.number;
  return outcome;
}

Outcome Device::sync(Queue& queue, plugrad_failure* failure) const {
  if (!queue.stream) return {};
  plugrad_failure unused{};
  plugrad_failure* filled = failure ? failure : &unused;
  *filled = {sizeof(plugrad_failure), PLUGRAD_OK, 0, 0};
  return attempt("sync", [&] { return table_->sync(queue.stream, filled); });
}

plugrad_place Device::place(plugrad_buffer* buffer, uint64_t offset) const {
  return {sizeof(plugrad_place), PLUGRAD_DEVICE, handle_, buffer, offset};
}

plugrad_place Device::host_place(const void* address) const {
  auto* buffer = reinterpret_cast<plugrad_buffer*>(const_cast<void*>(address));
  return {sizeof(plugrad_place), PLUGRAD_HOST, async() ? nullptr : handle_, buffer, 0};
}

void Device::upload(Queue& queue, plugrad_buffer* to, uint64_t offset, const void* from, uint64_t bytes) const {
  require("copy from the host", copy(queue, copy_of(place(to, offset), host_place(from), bytes)));
}

void Device::download(Queue& queue, void* to, plugrad_buffer* from, uint64_t offset, uint64_t bytes) const {
  require("copy to the host", copy(queue, copy_of(host_place(to), place(from, offset), bytes)));
}

plugrad_copy copy_of(const plugrad_place& to, const plugrad_place& from, uint64_t bytes) {
  return {sizeof(plugrad_copy), 0, 0, bytes, to, from};
}

}  // namespace plugrad::conformance
