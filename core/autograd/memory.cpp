#include <core/autograd/memory.hpp>

#include <core/autograd/call.hpp>
#include <core/runtime/fork.hpp>
#include <core/runtime/memory/aligned.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/autograd/memory.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>

namespace plugrad {
namespace {

ForkMutex watch_mutex;  // threads may share leaves while they record ops

void watch(Node& node) {
  const std::lock_guard lock(watch_mutex);
  if (!node.extra().watched) node.more->watched = std::make_unique<WatchedNode>(node);
}

// The tensors on a storage.
struct Holders {
  std::string name;
  bool parameter = false, gradient = false;
  std::set<std::string> savers;

  MemoryKind kind(const tracking::Origin& origin) const {
    if (parameter || origin.parameter) return MemoryKind::parameter;
    return gradient ? MemoryKind::gradient : savers.empty() ? MemoryKind::other : MemoryKind::saved;
  }
  std::string savers_text() const {
    std::string text;
    for (const std::string& each : savers) text += (text.empty() ? "" : ", ") + each;
    return text;
  }
};
using HoldersOf = std::unordered_map<const Storage*, Holders>;

void add_holders(HoldersOf& all, const Node& node) {
  if (node.grad.defined()) all[storage_of(node.grad)].gradient = true;
  if (!node.rule) return;
  for (const Tensor& saved : node.saved)
    if (saved.defined()) all[storage_of(saved)].savers.insert(node.rule->name);
  if (!(node.flags & Node::kCall)) return;
  for (const Tensor& saved : saved_of_call(node).values)
    if (saved.defined()) all[storage_of(saved)].savers.insert(node.rule->name);
}

void add_names(HoldersOf& all, const std::vector<std::pair<std::string, Tensor>>& names) {
  for (const auto& [name, tensor] : names) {
    if (!tensor.defined()) continue;
    Holders& holders = all[storage_of(tensor)];
    holders.name = name;
    holders.parameter |= is_parameter(tensor);
    if (const Tensor gradient = tensor.grad(); gradient.defined()) {
      all[storage_of(gradient)].name = name + ".grad";
      all[storage_of(gradient)].gradient = true;
    }
  }
}

MemoryEntry entry_of(const tracking::Origin& origin, const Holders& holders) {
  MemoryEntry entry;
  entry.kind = holders.kind(origin);
  entry.bytes = origin.bytes;
  entry.name = holders.name;
  entry.saved_by = holders.savers_text();
  entry.op = origin.op;
  entry.gradient = origin.gradient;
  entry.range = origin.range;
  entry.where = origin.where;
  entry.dtype = origin.dtype;
  entry.shape = Shape(std::span<const int64_t>(origin.shape));
  return entry;
}
}  // namespace

void track(Node& node, std::span<const Tensor* const> operands) {
  if (!tracking::is_on()) {
    local().mode &= ~kTrackedMode;
    return;
  }
  watch(node);
  for (const Tensor* each : operands) {
    Node* const leaf = each->impl().node.get();
    if (!leaf || leaf->rule) continue;
    watch(*leaf);
    if (!(leaf->flags & Node::kUnasked)) tracking::mark_parameter(*storage_of(*each), view_of(*each));
  }
}

void record_memory(bool on, std::function<std::string()> where) {
  if (on) tracking::start(std::move(where));
  else tracking::stop();
}
bool records_memory() { return tracking::is_on(); }

const char* memory_kind_name(MemoryKind kind) {
  static constexpr std::array<const char*, 5> kNames{"parameter", "gradient", "saved", "other", "unrecorded"};
  return kNames[static_cast<size_t>(kind)];
}

MemorySnapshot memory_snapshot(Device device, const std::vector<std::pair<std::string, Tensor>>& names) {
  if (!tracking::is_on())
    throw Error(Code::invalid, "[memory_snapshot] no origins of memory are recorded: call record_memory() before the work");
  HoldersOf holders;
  tracking::for_each_watched([&](void* node) { add_holders(holders, *static_cast<const Node*>(node)); });
  add_names(holders, names);
  MemorySnapshot snapshot{device, device.memory().active, {}};
  uint64_t known = 0;
  for (const tracking::Origin& origin : tracking::origins(device.state())) {
    snapshot.entries.push_back(entry_of(origin, holders[origin.storage]));
    known += origin.bytes;
  }
  MemoryEntry rest;
  rest.kind = MemoryKind::unrecorded;
  rest.bytes = snapshot.total - std::min(known, snapshot.total);
  if (rest.bytes) snapshot.entries.push_back(rest);
  std::ranges::stable_sort(snapshot.entries, std::greater(), &MemoryEntry::bytes);
  return snapshot;
}

// --- Text.

namespace {
struct Sum {
  uint64_t bytes = 0, count = 0;
};

TextRow sum_row(TextRow labels, const Sum& sum, uint64_t total) {
  labels.push_back(std::to_string(sum.count));
  labels.push_back(bytes_text(static_cast<double>(sum.bytes)));
  labels.push_back(percent_text(static_cast<double>(sum.bytes), static_cast<double>(total)));
  return labels;
}

// Returns the columns of an entry's line, except its bytes. "made by" is the origin of the memory.
TextRow labels_of(const MemoryEntry& entry) {
  std::string made = entry.op;
  if (!entry.gradient.empty()) made += " (gradient of " + entry.gradient + ")";
  if (!entry.range.empty()) made += " in " + entry.range;
  if (!entry.where.empty()) made += ", " + entry.where;
  const bool recorded = entry.kind != MemoryKind::unrecorded;
  return {memory_kind_name(entry.kind),
          entry.name,
          recorded && !entry.dtype.empty() ? entry.shape.text() : "",
          entry.dtype,
          entry.saved_by,
          made};
}

// Returns the largest sums as text. rows: the header.
template <class Key, class Line>
std::string sums_text(const std::map<Key, Sum>& sums, std::vector<TextRow> rows, size_t most, const Line& line) {
  std::vector<std::pair<Key, Sum>> all(sums.begin(), sums.end());
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  for (size_t i = 0; i < std::min(most, all.size()); ++i) rows.push_back(line(all[i].first, all[i].second));
  return aligned(rows, rows.front().size() - 3);
}
}  // namespace

std::string MemorySnapshot::table(size_t rows) const {
  std::map<MemoryKind, Sum> kinds;
  std::map<TextRow, Sum> lines;
  for (const MemoryEntry& each : entries)
    for (Sum* sum : {&kinds[each.kind], &lines[labels_of(each)]}) {
      sum->bytes += each.bytes;
      ++sum->count;
    }
  std::string text = device.name() + ": " + bytes_text(static_cast<double>(total)) + " in use\n\n";
  text += sums_text(kinds, {{"kind", "pieces", "bytes", "share"}}, kinds.size(),
                    [&](MemoryKind kind, const Sum& sum) { return sum_row({memory_kind_name(kind)}, sum, total); });
  return text + "\n" +
         sums_text(lines, {{"kind", "name", "shape", "dtype", "saved by", "made by", "pieces", "bytes", "share"}}, rows,
                   [&](const TextRow& labels, const Sum& sum) { return sum_row(labels, sum, total); });
}

}  // namespace plugrad
