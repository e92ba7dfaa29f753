#include <core/runtime/observe/tracking.hpp>

#include <core/runtime/fork.hpp>
#include <core/runtime/observe/observer.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace plugrad {

std::mutex& tracking_mutex() {
  static std::mutex& m = *new std::mutex;
  return m;
}

namespace tracking {
namespace {
using Where = std::function<std::string()>;

struct Tracker {
  std::unordered_map<const Storage*, Origin> origins;
  std::unordered_set<void*> watched;
  std::shared_ptr<const Where> where;
  uint64_t last = 0;  // order
};
Tracker& tracker() {
  static Tracker& t = *new Tracker;
  return t;
}

bool is_input(const OpCall& call, const Storage* storage) {
  for (int i = call.outputs; i < call.operands(); ++i)
    if (call.storages[i] == storage) return true;
  return false;
}

// Adds a storage. The caller holds the mutex, and the storage has a reference.
Origin& add(Storage& storage) {
  Tracker& t = tracker();
  Origin& origin = t.origins[&storage];
  origin.storage = &storage;
  origin.device = storage.device;
  origin.bytes = storage.bytes;
  origin.order = ++t.last;
  storage.tracked = true;
  if (!storage.large && !storage.imported) storage.drop = kStorageLists;  // so that destroy_slow sees it
  return origin;
}

Origin* find(const Storage& storage) {
  const auto found = tracker().origins.find(&storage);
  return found == tracker().origins.end() ? nullptr : &found->second;
}

void describe(Origin& origin, const plugrad_view& view) {
  origin.dtype = dtype_label(view.dtype);
  origin.shape.assign(view.shape, view.shape + view.rank);
}

// Returns the result of `where` if any of the storages is new, else "". Calls it without the mutex: it may wait for other
// locks.
std::string ask_where(std::span<Storage* const> storages) {
  std::shared_ptr<const Where> where;
  {
    const std::lock_guard lock(tracking_mutex());
    if (std::ranges::any_of(storages, [](const Storage* each) { return each && !find(*each); })) where = tracker().where;
  }
  return where && *where ? (*where)() : std::string();
}

void tell_origin(Origin& origin, std::string op, const std::string& where) {
  origin.op = std::move(op);
  origin.where = where;
  if (const char* gradient = local().gradient_of) origin.gradient = gradient;
  if (const std::string* range = local().range) origin.range = *range;
}
}  // namespace

void start(Where where) {
  stop();
  {
    const std::lock_guard lock(tracking_mutex());
    tracker().where = std::make_shared<const Where>(std::move(where));
    on = true;
  }
  observe::update();
  local().mode |= kTrackedMode;  // other threads set it at their next op
}

namespace {
// Returns the function, because its destructor may wait for other locks.
std::shared_ptr<const Where> end() {
  const std::lock_guard lock(tracking_mutex());
  on = false;
  Tracker& t = tracker();
  for (const auto& [key, origin] : t.origins) origin.storage->tracked = false;
  t.origins.clear();
  return std::exchange(t.where, {});
}
}  // namespace

void stop() {
  end();
  observe::update();
}

void note(const OpCall& call) {
  const std::string where = ask_where({call.storages, call.outputs});
  local().mode |= kTrackedMode;
  const std::lock_guard lock(tracking_mutex());
  if (!is_on()) return;
  for (int i = 0; i < call.operands(); ++i) {
    Storage* const storage = call.storages[i];
    if (!storage || storage->imported) continue;
    Origin* origin = find(*storage);
    if (!origin) {
      origin = &add(*storage);
      const bool made = i < call.outputs && !is_in_out(call.opcode, i) && !is_input(call, storage);
      if (made) tell_origin(*origin, op_label(call.opcode), where);
    }
    if (origin->dtype.empty()) describe(*origin, *call.views[i]);
  }
}

void note_copy(Storage& to) {
  Storage* const written = &to;
  const std::string where = ask_where({&written, 1});
  const std::lock_guard lock(tracking_mutex());
  if (is_on() && !to.imported && !find(to)) tell_origin(add(to), "copy", where);
}

void mark_parameter(Storage& storage, const plugrad_view& view) {
  const std::lock_guard lock(tracking_mutex());
  if (!is_on() || storage.imported) return;
  Origin* const known = find(storage);
  Origin& origin = known ? *known : add(storage);
  origin.parameter = true;
  describe(origin, view);
}

void forget(Storage& storage) noexcept {
  const std::lock_guard lock(tracking_mutex());
  tracker().origins.erase(&storage);
  storage.tracked = false;
}

std::vector<Origin> origins(const DeviceState& device) {
  std::vector<Origin> all;
  const std::lock_guard lock(tracking_mutex());
  for (const auto& [storage, origin] : tracker().origins)
    if (origin.device == &device) all.push_back(origin);
  std::ranges::sort(all, {}, &Origin::order);
  return all;
}

void watch(void* holder) {
  const std::lock_guard lock(tracking_mutex());
  tracker().watched.insert(holder);
}
void unwatch(void* holder) noexcept {
  const std::lock_guard lock(tracking_mutex());
  tracker().watched.erase(holder);
}
void for_each_watched(const std::function<void(void*)>& f) {
  const std::lock_guard lock(tracking_mutex());
  for (void* each : tracker().watched) f(each);
}

}  // namespace tracking
}  // namespace plugrad
