// Memory by which elements in host memory reach NCCL, which takes device memory: pinned host memory, and as much of the
// device.
#pragma once
#include <cstddef>
#include <vector>

namespace nccl {

struct Block {
  char *host = nullptr, *device = nullptr;
  size_t bytes = 0;
};

// Keeps the blocks that were given back.
class Staging {
 public:
  Staging() = default;
  Staging(const Staging&) = delete;
  ~Staging();
  // Throws Failure.
  Block take(size_t bytes);
  void give(const Block& block);

 private:
  std::vector<Block> free_;
};

}  // namespace nccl
