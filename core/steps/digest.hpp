// Digests for comparing the elements of tensors.
#pragma once
#include <plugrad/sdk/abi.h>
#include <core/runtime/memory/storage.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace plugrad::steps {

// Returns a digest of a view's elements, row-major, as bytes. Waits for the device.
uint64_t digest_of(const plugrad_view& view, Storage& storage);
// Returns a digest of several views.
uint64_t digest_of(const plugrad_view* const* views, Storage* const* storages, int count);

// The bytes within the reach of views, by view. Waits for the device.
using Contents = std::vector<std::vector<char>>;
Contents contents_of(const plugrad_view* const* views, Storage* const* storages, int count);
// What the host's work of a step wrote, by call.
using HostResults = std::map<size_t, Contents>;
void put_back(const Contents& contents, const plugrad_view* const* views, Storage* const* storages);

// A copy of a storage's contents, to be put back.
class Snapshot {
 public:
  explicit Snapshot(Storage& storage);
  void put_back() const { put_back(storage_); }
  void put_back(Storage& storage) const;

 private:
  Storage& storage_;
  std::vector<char> bytes_;
};

}  // namespace plugrad::steps
