#include <plugins/nccl/staging.hpp>

#include <plugins/nccl/connection.hpp>

#include <algorithm>
#include <bit>

namespace nccl {

namespace {
constexpr size_t kLargestKept = size_t{64} << 20;

void release(const Block& block) {
  libraries().driver.free_host(block.host);
  libraries().driver.free(reinterpret_cast<DeviceAddress>(block.device));
}
}  // namespace

Staging::~Staging() {
  for (const Block& each : free_) release(each);
}

Block Staging::take(size_t bytes) {
  const size_t size = std::bit_ceil(std::max<size_t>(bytes, 4096));
  const auto found = std::ranges::find(free_, size, &Block::bytes);
  if (found != free_.end()) {
    const Block block = *found;
    free_.erase(found);
    return block;
  }
  Block block{nullptr, nullptr, size};
  void* host = nullptr;
  DeviceAddress device = 0;
  require(libraries().driver.allocate_host(&host, size), "cuMemAllocHost");
  block.host = static_cast<char*>(host);
  const int result = libraries().driver.allocate(&device, size);
  if (result) libraries().driver.free_host(host);
  require(result, "cuMemAlloc");
  block.device = reinterpret_cast<char*>(device);
  return block;
}

void Staging::give(const Block& block) {
  if (!block.bytes) return;
  if (block.bytes <= kLargestKept) free_.push_back(block);
  else release(block);
}

}  // namespace nccl
