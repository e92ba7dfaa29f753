// Leaves with a gradient that was switched off keep their node here, with its gradient and its place in recorded graphs.
#include <core/autograd/node.hpp>
#include <core/runtime/fork.hpp>

#include <unordered_map>

namespace plugrad {
namespace {
ForkMutex frozen_mutex;
std::unordered_map<const Impl*, Ref<Node>>& frozen() {
  static auto& all = *new std::unordered_map<const Impl*, Ref<Node>>;  // threads may use it while the process ends
  return all;
}
}  // namespace

void freeze(Impl& impl) {
  const std::lock_guard lock(frozen_mutex);
  frozen().emplace(&impl, impl.node);
  impl.node = {};
  impl.frozen = 1;
}

// The caller may destroy the node, and with it further frozen leaves, once the lock is free.
Ref<Node> thaw(Impl& impl) {
  const std::lock_guard lock(frozen_mutex);
  auto entry = frozen().extract(&impl);
  impl.frozen = 0;
  return std::move(entry.mapped());
}

Node* frozen_node(const Impl& impl) {
  const std::lock_guard lock(frozen_mutex);
  return frozen().at(&impl).get();
}

void drop_frozen(Impl& impl) noexcept { thaw(impl); }

}  // namespace plugrad
