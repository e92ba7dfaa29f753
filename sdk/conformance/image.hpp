// A block of device memory with its expected contents, byte for byte: operands with guard bytes between them.
#pragma once
#include <sdk/conformance/array.hpp>
#include <sdk/conformance/device.hpp>

#include <memory>

namespace plugrad::conformance {

class Image {
 public:
  explicit Image(uint64_t alignment) : alignment_(alignment) {}

  // Places an operand and returns the offset of its first element in bytes. A Stray names the owner.
  uint64_t place(const Array& array, const Shape& strides, bool unaligned, bool writable, int owner);
  // Places bytes that may change, with guards around them, and returns their offset.
  uint64_t reserve(uint64_t bytes, int owner);

  void upload(Device& device, Queue& queue);
  void download(Device& device, Queue& queue);
  plugrad_buffer* buffer() const { return block_ ? block_->buffer() : nullptr; }
  // Returns the elements of an operand, after a download.
  void gather(uint64_t offset, const Shape& strides, Array& array) const;

  struct Stray {  // bytes that changed although no op may write them
    int owner;
    std::string text;
  };
  std::vector<Stray> strays() const;
  // Whether any byte changed in the owner's regions.
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
