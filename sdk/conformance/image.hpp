// A block of device memory and what it must hold: operands with guard bytes between them, byte for byte.
#pragma once
#include <sdk/conformance/array.hpp>
#include <sdk/conformance/device.hpp>

#include <memory>

namespace plugrad::conformance {

class Image {
 public:
  explicit Image(uint64_t alignment) : alignment_(alignment) {}

  // Lays an operand out; answers the offset in bytes of its first element. owner comes back in a Stray.
  uint64_t place(const Array& array, const Shape& strides, bool unaligned, bool writable, int owner);
  // Bytes that may change, with guards around them; answers their offset.
  uint64_t reserve(uint64_t bytes, int owner);

  void upload(Device& device, Queue& queue);
  void download(Device& device, Queue& queue);
  plugrad_buffer* buffer() const { return block_ ? block_->buffer() : nullptr; }
  // After download: the elements of an operand.
  void gather(uint64_t offset, const Shape& strides, Array& array) const;

  struct Stray {  // bytes that changed and should not have
    int owner;
    std::string text;
  };
  std::vector<Stray> strays() const;
  // Whether the bytes that may change did, for one owner.
  bool touched(int owner) const;

 private:
  struct Region {
    uint64_t begin, end;
    int owner;
  };
  uint64_t grow(uint64_t before, uint64_t after, uint64_t shift, int owner);

  uint64_t alignment_;
  std::vector<std::byte> bytes_, found_;
  std::vector<char> writable_;  // 1: the op may change this byte
  std::vector<Region> regions_;
  std::unique_ptr<Block> block_;
};

}  // namespace plugrad::conformance
