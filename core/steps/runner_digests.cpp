// Runs of a step with digests of each call's results.
#include <core/runtime/memory/small_blocks.hpp>
#include <core/steps/channels_last.hpp>
#include <core/steps/digest.hpp>
#include <core/steps/runner.hpp>

#include <algorithm>

namespace plugrad::steps {

// Adds the digests of calls with results in memory after the item ran.
void Runner::add_digests(const Running& one, std::vector<uint64_t>& digests) const {
  const auto add = [&](const Running& each) {
    if (each.host && each.host->is_in_flight()) return;
    std::vector<plugrad_view> views;
    for (size_t i = 0; i < each.op.outputs; ++i)
      views.push_back(recorded_order(plan_.trace.calls[each.call], *each.op.views[i]));
    std::vector<const plugrad_view*> pointers;
    for (const plugrad_view& view : views) pointers.push_back(&view);
    digests[each.call] = digest_of(pointers.data(), operands_.storages(each.first), each.op.outputs);
  };
  if (one.fusion == kNever) return add(one);
  const std::vector<Running>& singly = singly_[one.fusion];
  const Call& stored = call_of(one);
  std::vector<uint32_t> left(stored.memories.begin(), stored.memories.begin() + stored.op.outputs);
  for (size_t i = singly.size(); i-- > 0;) {
    const Running& each = singly[i];
    const std::vector<uint32_t>& memories = plan_.trace.calls[each.call].memories;
    bool is_stored = true;
    for (size_t k = 0; k < each.op.outputs; ++k) is_stored = std::erase(left, memories[k]) && is_stored;
    if (is_stored) add(each);
  }
}

// Runs the fusion's calls singly to digest each call's results, and then puts the memory's contents back.
void Runner::rehearse_singly(uint32_t fusion, std::vector<uint64_t>& digests) {
  const Ref<Storage> spare = bind_inner(fusion);
  std::vector<Snapshot> before;
  std::vector<Storage*> written;
  for (const Running& each : singly_[fusion]) {
    Storage* const* const results = operands_.storages(each.first);
    written.insert(written.end(), results, results + each.op.outputs);
  }
  std::ranges::sort(written);
  written.erase(std::unique(written.begin(), written.end()), written.end());
  for (Storage* const each : written)
    if (each != spare.get()) before.emplace_back(*each);
  for (Running& each : singly_[fusion]) {
    run_one(each);
    add_digests(each, digests);
  }
  for (const Snapshot& each : before) each.put_back();
}

std::vector<uint64_t> Runner::run_with_digests(const HostResults& given) {
  provide_arena();
  plan_.trace.device->require_open();
  make_forms();
  std::vector<uint64_t> digests(plan_.trace.calls.size());
  for (Running& one : items_) {
    if (one.fusion != kNever) rehearse_singly(one.fusion, digests);
    if (!one.host) run_one(one);
    else if (const auto found = given.find(one.call); found != given.end())
      put_back(found->second, one.op.views, operands_.storages(one.first));
    add_digests(one, digests);
  }
  return digests;
}

}  // namespace plugrad::steps
