#include <core/steps/operands.hpp>

namespace plugrad::steps {

Operands::Operands(const std::vector<Memory>& memories, size_t count)
    : memories_(memories), followers_(memories.size()), bound_(memories.size()) {
  views_.reserve(count);
  pointers_.reserve(count);
  storages_.reserve(count);
}

// Operands with equal views of one memory share an object: replays are faster if they read less.
plugrad_view* Operands::view_for(const Call& call, size_t operand) {
  const plugrad_view& v = call.views[operand];
  const uint32_t memory = call.memories[operand];
  if (memory == kNever) return &views_.emplace_back(v);
  std::string key;
  const auto add = [&](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  add(memory);
  add(v.offset);
  add(v.dtype);
  add(v.layout);
  for (int i = 0; i < v.rank; ++i) {
    add(v.shape[i]);
    add(v.strides[i]);
  }
  plugrad_view*& made = shared_[key];
  if (made) return made;
  made = &views_.emplace_back(v);
  followers_[memory].views.push_back({made, v.offset - memories_[memory].base});
  return made;
}

uint32_t Operands::add(const Call& call) {
  const auto first = static_cast<uint32_t>(pointers_.size());
  for (size_t i = 0; i < call.views.size(); ++i) {
    pointers_.push_back(view_for(call, i));
    storages_.push_back(nullptr);
    if (call.memories[i] != kNever) followers_[call.memories[i]].storages.push_back(&storages_.back());
  }
  return first;
}

bool Operands::bind(uint32_t memory, Storage& storage, uint64_t base) {
  const Bound now{&storage, storage.buffer, base};
  if (bound_[memory] == now) return false;
  bound_[memory] = now;
  const Followers& all = followers_[memory];
  for (const FollowingView& each : all.views) {
    each.view->buffer = storage.buffer;
    each.view->offset = base + each.offset;
  }
  for (Storage** each : all.storages) *each = &storage;
  for (plugrad_op* each : all.workspaces) {
    each->workspace = storage.buffer;
    each->workspace_offset = base;
  }
  return true;
}

}  // namespace plugrad::steps
