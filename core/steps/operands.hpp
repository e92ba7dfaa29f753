// The operands of a replay's calls, as objects with fixed addresses, and the storages of their memories.
#pragma once
#include <core/steps/trace.hpp>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace plugrad::steps {

// The place of a memory.
struct Bound {
  Storage* storage = nullptr;
  plugrad_buffer* buffer = nullptr;
  uint64_t base = 0;
  friend bool operator==(const Bound&, const Bound&) = default;
};

class Operands {
 public:
  // count: the number of all operands to be added.
  Operands(const std::vector<Memory>& memories, size_t count);
  Operands(const Operands&) = delete;

  // Adds the operands of a call. Returns the index of the first operand.
  uint32_t add(const Call& call);
  // From now on the workspace of `op` follows the memory. The op must keep its address.
  void add_workspace(uint32_t memory, plugrad_op& op) { followers_[memory].workspaces.push_back(&op); }

  plugrad_view* const* views(uint32_t first) const { return pointers_.data() + first; }
  Storage* const* storages(uint32_t first) const { return storages_.data() + first; }

  // From now on the memory is at `base` of this storage: a view at `offset` from the recorded base is placed at base +
  // offset. Returns whether the place has changed.
  bool bind(uint32_t memory, Storage& storage, uint64_t base);
  const Bound& where(uint32_t memory) const { return bound_[memory]; }

 private:
  // A view and its offset from the memory's recorded base.
  struct FollowingView {
    plugrad_view* view;
    uint64_t offset;
  };
  // The objects that refer to a memory.
  struct Followers {
    std::vector<FollowingView> views;
    std::vector<Storage**> storages;
    std::vector<plugrad_op*> workspaces;
  };
  plugrad_view* view_for(const Call& call, size_t operand);

  const std::vector<Memory>& memories_;
  std::vector<plugrad_view> views_;  // these three never reallocate after construction
  std::vector<plugrad_view*> pointers_;
  std::vector<Storage*> storages_;
  std::unordered_map<std::string, plugrad_view*> shared_;
  std::vector<Followers> followers_;  // by memory
  std::vector<Bound> bound_;          // by memory
};

}  // namespace plugrad::steps
