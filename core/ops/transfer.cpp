#include <plugrad/ops/transfer.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>
#include <core/ops/write.hpp>
#include <core/runtime/memory/transfer.hpp>
#include <core/tensor/checked.hpp>

#include <utility>

namespace plugrad {
namespace {
constexpr const char *kFrom = "copy_from_host", *kTo = "copy_to_host";

uint64_t bytes_of(const Tensor& x) { return static_cast<uint64_t>(x.count()) * dtype_size(dtype_of(x)); }
uint64_t place_within(const Tensor& x) { return view_of(x).offset - storage_of(x)->offset; }

// Calls copy(tensor) with a dense tensor of `to`'s form, which copy fills, and writes it to `to`.
template <class Copy> void write_from_host(const Tensor& to, Copy copy) {
  require_writable(to, kFrom);
  if (!to.count()) return;
  Tensor target = to;
  if (is_dense(view_of(to)) && !is_recorded(to, nullptr)) {
    raise_version(target);
    return copy(target);
  }
  const Tensor dense_one = empty(Op::COPY, device_of(to), to.shape(), dtype_of(to), true);
  copy(dense_one);
  target.copy_(dense_one);
}
}  // namespace

void copy_from_host(const Tensor& to, const void* elements) {
  write_from_host(to, [&](const Tensor& x) {
    const auto bools = dtype_of(x) == PLUGRAD_BOOL ? zeros_and_ones(elements, static_cast<size_t>(x.count()))
                                                   : std::vector<unsigned char>();
    transfer::upload(*storage_of(x), place_within(x), bools.empty() ? elements : bools.data(), bytes_of(x));
  });
}

PinnedMemory::PinnedMemory(Device device, uint64_t bytes)
    : pinned_(std::make_unique<Pinned>(transfer::pin(state_of(device), bytes ? bytes : 1))) {
  pinned_->size = bytes;
}
PinnedMemory::PinnedMemory(PinnedMemory&&) noexcept = default;
PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
  PinnedMemory(std::move(other)).pinned_.swap(pinned_);
  return *this;
}
PinnedMemory::~PinnedMemory() {
  if (!pinned_) return;
  try {
    transfer::settle(*pinned_);
  } catch (const Error&) {  // of the source of a copy: the copy itself is over
  }
  transfer::unpin(*pinned_);
}

namespace {
Pinned& held(const std::unique_ptr<Pinned>& pinned) {
  if (pinned) return *pinned;
  throw Error(Code::invalid, "[pinned memory] the memory was moved from: use the object that has it now");
}
}  // namespace

void* PinnedMemory::data() const { return held(pinned_).bytes; }
uint64_t PinnedMemory::bytes() const { return held(pinned_).size; }
Device PinnedMemory::device() const { return Device(held(pinned_).device); }
void PinnedMemory::wait() { transfer::settle(held(pinned_)); }

namespace {
void require_room(const char* name, const Tensor& x, const Pinned& pinned, uint64_t byte_offset) {
  if (!device_of(x).same_plugin(*pinned.device))
    refuse(name, "the memory is pinned by the plugin of " + pinned.device->name + ", but the tensor is on " +
                     device_of(x).name + ": pin memory by that device");
  if (byte_offset > pinned.size || bytes_of(x) > pinned.size - byte_offset)
    refuse(name, std::to_string(bytes_of(x)) + " bytes from byte " + std::to_string(byte_offset) +
                     " on leave the pinned memory of " + std::to_string(pinned.size) + " bytes");
}
}  // namespace

void copy_from_host(const Tensor& to, PinnedMemory& from, uint64_t byte_offset) {
  require_defined(to, kFrom);
  Pinned& pinned = held(from.pinned_);
  require_room(kFrom, to, pinned, byte_offset);
  const char* const first = pinned.bytes + byte_offset;
  if (dtype_of(to) == PLUGRAD_BOOL && to.count()) {
    from.wait();
    if (!zeros_and_ones(first, static_cast<size_t>(to.count())).empty()) return copy_from_host(to, first);
  }
  write_from_host(
      to, [&](const Tensor& x) { transfer::upload(*storage_of(x), place_within(x), pinned, bytes_of(x), byte_offset); });
}

void copy_to_host(const Tensor& from, PinnedMemory& to, uint64_t byte_offset) {
  require_defined(from, kTo);
  Pinned& pinned = held(to.pinned_);
  require_room(kTo, from, pinned, byte_offset);
  const Tensor source = dense(from);
  transfer::download(pinned, *storage_of(source), place_within(source), bytes_of(source), byte_offset);
}

}  // namespace plugrad
