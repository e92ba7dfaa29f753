// The hash FNV-1a of 64 bits: https://en.wikipedia.org/wiki/Fowler-Noll-Vo_hash_function
#pragma once
#include <cstddef>
#include <cstdint>

namespace plugrad {

class Fnv {
 public:
  void add(const void* bytes, size_t count) {
    const auto* const each = static_cast<const unsigned char*>(bytes);
    for (size_t i = 0; i < count; ++i) value_ = (value_ ^ each[i]) * 0x100000001b3;
  }
  // Adds the bytes of a number; every machine of a job has the same order of bytes.
  void add(uint64_t number) { add(&number, sizeof number); }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace plugrad
