#include <sdk/conformance/image.hpp>

#include <algorithm>

namespace plugrad::conformance {
namespace {

constexpr uint64_t kGuard = 64;

std::byte guard_byte(uint64_t at) { return static_cast<std::byte>(0xC3 ^ (at * 29 + (at >> 8))); }

}  // namespace

uint64_t Image::grow(uint64_t before, uint64_t after, uint64_t shift, int owner) {
  const uint64_t lowest = bytes_.size() + kGuard + before;
  const uint64_t first = (lowest + alignment_ - 1) / alignment_ * alignment_ + shift;
  const uint64_t old = bytes_.size(), size = first + after + kGuard;
  bytes_.resize(size);
  for (uint64_t at = old; at < size; ++at) bytes_[at] = guard_byte(at);
  writable_.resize(size, char{0});
  regions_.push_back({first - before, first + after, owner});
  return first;
}

uint64_t Image::place(const Array& array, const Shape& strides, bool unaligned, bool writable, int owner) {
  const uint64_t size = element_size(array.dtype());
  int64_t low = 0, high = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    const int64_t reach = (array.shape()[axis] - 1) * strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  // As many bytes on the opposite side: a kernel with a wrong sign of a stride then writes into known memory.
  const int64_t before = low < 0 ? high - low : 0, after = low < 0 ? high - low : high;
  const uint64_t first = grow(before * size, (after + 1) * size, unaligned ? size : 0, owner);
  if (strides == row_major(array.shape())) {
    std::copy(array.bytes().begin(), array.bytes().end(), bytes_.begin() + first);
    if (writable) std::fill_n(writable_.begin() + first, array.bytes().size(), char{1});
    return first;
  }
  Walk walk(array.shape());
  for (int64_t i = 0; i < array.count(); ++i, walk.next()) {
    const uint64_t at = first + dot(walk.index(), strides) * size;
    std::copy_n(array.element(i), size, bytes_.begin() + at);
    if (writable) std::fill_n(writable_.begin() + at, size, char{1});
  }
  return first;
}

uint64_t Image::reserve(uint64_t bytes, int owner) {
  const uint64_t first = grow(0, bytes, 0, owner);
  std::fill_n(writable_.begin() + first, bytes, char{1});
  return first;
}

void Image::upload(Device& device, Queue& queue) {
  if (bytes_.empty()) return;
  if (!block_) block_ = std::make_unique<Block>(device, bytes_.size());
  device.upload(queue, block_->buffer(), 0, bytes_.data(), bytes_.size());
}

void Image::download(Device& device, Queue& queue) {
  if (bytes_.empty()) return;
  found_.resize(bytes_.size());
  device.download(queue, found_.data(), block_->buffer(), 0, found_.size());
}

void Image::gather(uint64_t offset, const Shape& strides, Array& array) const {
  const uint64_t size = element_size(array.dtype());
  if (strides == row_major(array.shape())) {
    std::copy_n(found_.begin() + offset, array.bytes().size(), array.element(0));
    return;
  }
  Walk walk(array.shape());
  for (int64_t i = 0; i < array.count(); ++i, walk.next())
    std::copy_n(found_.begin() + offset + dot(walk.index(), strides) * size, size, array.element(i));
}

bool Image::touched(int owner) const {
  for (const Region& region : regions_)
    if (region.owner == owner &&
        !std::equal(bytes_.begin() + region.begin, bytes_.begin() + region.end, found_.begin() + region.begin))
      return true;
  return false;
}

std::vector<Image::Stray> Image::strays() const {
  std::vector<Stray> list;
  if (found_ == bytes_) return list;
  const auto changed = [&](uint64_t at) { return !writable_[at] && bytes_[at] != found_[at]; };
  for (size_t r = 0; r < regions_.size(); ++r) {
    const Region& region = regions_[r];
    const uint64_t begin = r == 0 ? 0 : (regions_[r - 1].end + region.begin) / 2;
    const uint64_t end = r + 1 == regions_.size() ? bytes_.size() : (region.end + regions_[r + 1].begin) / 2;
    uint64_t count = 0, first = 0;
    for (uint64_t at = begin; at < end; ++at)
      if (changed(at) && count++ == 0) first = at;
    if (!count) continue;
    std::string where = "inside it, at byte " + std::to_string(first - region.begin);
    if (first < region.begin) where = std::to_string(region.begin - first) + " bytes before it";
    if (first >= region.end) where = std::to_string(first - region.end) + " bytes past its end";
    list.push_back({region.owner, std::to_string(count) + " bytes changed that the op must not write, first " + where});
  }
  return list;
}

}  // namespace plugrad::conformance
