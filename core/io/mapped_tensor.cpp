#include <core/io/mapped_tensor.hpp>

#include <core/runtime/memory/import.hpp>
#include <core/tensor/impl.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <memory>

namespace plugrad::io {
namespace {
constexpr uint64_t kLeast = 64 << 10;  // bytes: a mapping costs a system call, and pages of its own

class Mapping {
 public:
  Mapping(void* address, size_t bytes) : address_(address), bytes_(bytes) {}
  ~Mapping() { munmap(address_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

 private:
  void* const address_;
  const size_t bytes_;
};
}  // namespace

std::optional<Tensor> mapped_tensor(const OpenedFile& file, uint64_t begin, DType dtype, const Shape& shape, Device device) {
  DeviceState& state = device.state();
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), skipped = begin % page;
  const auto size = static_cast<uint64_t>(item_size(dtype)), bytes = static_cast<uint64_t>(shape.count()) * size;
  if (bytes < kLeast || begin % size || !state.host_memory() || state.info.alignment > page) return std::nullopt;
  void* const address = file.map(begin - skipped, bytes + skipped);
  if (!address) return std::nullopt;
  auto mapping = std::make_unique<Mapping>(address, bytes + skipped);
  const Ref<Storage> storage = import_memory(state, {reinterpret_cast<uintptr_t>(address), skipped, bytes}, std::nullopt);
  const auto unmap = [](void* context) { delete static_cast<Mapping*>(context); };
  own_memory(*storage, unmap, mapping.release());
  static_cast<Imported&>(*storage).own = true;
  plugrad_view v = dense_view(shape, static_cast<uint8_t>(dtype), state.info.alignment);
  v.buffer = storage->buffer;
  v.offset = storage->offset;
  set_layout(v, state.info.alignment);
  Ref<Impl> impl(new (local().objects.get()) Impl(state, storage));
  impl->view = v;
  return Tensor(std::move(impl));
}

}  // namespace plugrad::io
