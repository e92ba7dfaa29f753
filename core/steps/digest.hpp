// Digests for comparing the elements of tensors.
#pragma once
#include <plugrad/sdk/abi.h>
#include <core/runtime/memory/storage.hpp>

#include <cstdint>
#include <vector>

namespace plugrad::steps {

// Returns a digest of a view's elements, row-major, as bytes. Waits for the device.
uint64_t digest_of(const plugrad_view& view, Storage& storage);
// Returns a digest of several views.
uint64_t digest_of(const plugrad_view* const* views, Storage* const* storages, int count);

// A copy of a storage's contents, to be put back.
class Snapshot {
 public:
  explicit Snapshot(Storage& storage);
  void put_back() const;

 private:
  Storage& storage_;
  std::vector<char> bytes_;
};

}  // namespace plugrad::steps
