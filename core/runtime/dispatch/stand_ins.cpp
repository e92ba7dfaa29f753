#include <core/runtime/dispatch/stand_ins.hpp>

#include <core/runtime/local.hpp>
#include <core/runtime/observe/observer.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace plugrad {
namespace {
uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

void add_to_count(uint64_t by) {
  const uint64_t before = stand_ins::count.fetch_add(by);
  if (!before || !(before + by)) observe::update();
}

// The transforms whose functions run on this thread, outermost first, and how many of them it sees.
struct Scopes {
  std::vector<Transform*> all;
  size_t seen = 0, plain = 0;
  const Storage* writing = nullptr;
  uint32_t version = 0;                // of `writing`, before the write raised it
  const Storage* announced = nullptr;  // an output of the op that a transform runs, if it was `writing`
};

// Sets Scopes::announced for its lifetime.
class Announced {
 public:
  Announced(const Storage*& place, const Storage* storage) : place_(place), before_(std::exchange(place, storage)) {}
  ~Announced() { place_ = before_; }
  Announced(const Announced&) = delete;
  Announced& operator=(const Announced&) = delete;

 private:
  const Storage*& place_;
  const Storage* before_;
};
Scopes& scopes() {
  static thread_local Scopes here;
  return here;
}
}  // namespace

Transform::Transform(const char* name) : id(next_id()), what(name) { add_to_count(1); }
Transform::~Transform() { add_to_count(static_cast<uint64_t>(-1)); }

const StandIn* Transform::behind(const Storage* storage) const {
  const StandIn* const found = storage ? storage->stand_in : nullptr;
  return found && found->transform.get() == this ? found : nullptr;
}

namespace stand_ins {

void set(Storage& storage, StandIn stand_in) {
  if (storage.stand_in) {
    *storage.stand_in = std::move(stand_in);
    return;
  }
  storage.stand_in = new StandIn(std::move(stand_in));
  storage.drop = kStorageLists;  // destroy takes the slow path, which calls forget
  add_to_count(1);
}

void forget(Storage& storage) noexcept {
  delete std::exchange(storage.stand_in, nullptr);
  add_to_count(static_cast<uint64_t>(-1));
}

namespace {
Transform* transform_for(const OpCall& call) {
  Transform* found = nullptr;
  for (int i = 0; i < call.operands(); ++i) {
    const Storage* const each = call.storages[i];
    if (each && each->stand_in && (!found || each->stand_in->transform->id > found->id))
      found = each->stand_in->transform.get();
  }
  const OpInfo* const op = op_info(call.opcode);
  if (found || !op || op->shape != OpShape::random) return found;
  const Scopes& s = scopes();
  for (size_t i = s.seen; i-- > 0;)
    if (s.all[i]->takes_random()) return s.all[i];
  return nullptr;
}

// Whether a write into the storage is the write that note_writing announced. The version tells, because another storage may
// have the same address since.
bool is_announced(const Storage& storage) {
  Scopes& s = scopes();
  if (s.writing != &storage || s.version + 1 != storage.version) return false;
  s.writing = nullptr;
  return true;
}
}  // namespace

std::optional<bool> run(const OpCall& call, bool may_decline) {
  if (!is_on()) return {};
  Scopes& s = scopes();
  const Storage* announced = nullptr;
  for (int i = 0; i < call.outputs; ++i)
    if (is_announced(*call.storages[i])) announced = call.storages[i];
  if (Transform* const found = transform_for(call)) {
    const Below below(*found);
    const Announced present(s.announced, announced);
    return found->run(call, may_decline);
  }
  for (int i = 0; i < call.outputs; ++i)
    if (call.storages[i] != announced) note_made(*call.storages[i]);
  return {};
}

bool run_inner(const OpCall& call, bool may_decline) {
  uint16_t layout = 0;
  for (int i = 0; i < call.operands(); ++i) layout |= call.views[i]->layout;
  DeviceState& device = *call.storages[0]->device;
  return may_decline ? run_without_kernel(device, call, layout, PLUGRAD_OK)
                     : run_without_kernel_or_throw(device, call, layout, PLUGRAD_OK);
}

bool overwrites(const OpCall& call, size_t output) {
  const plugrad_view& v = *call.views[output];
  const Storage* const storage = call.storages[output];
  const auto end = call.storages + call.operands();
  return !(v.layout & PLUGRAD_STRIDED) && !is_in_out(call.opcode, static_cast<int>(output)) &&
         static_cast<uint64_t>(v.count) * dtype_size(v.dtype) >= storage->size &&
         std::find(call.storages + call.outputs, end, storage) == end;
}

bool is_readable(const Storage& storage) {
  const StandIn* const in = storage.stand_in;
  return !in || (in->transform->has_one_value() && is_readable(*in->value));
}

Storage& readable(Storage& storage, uint64_t& offset) {
  Storage* found = &storage;
  while (found->stand_in) found = &found->stand_in->transform->readable(*found, offset);
  return *found;
}

void require_memory(const Storage& storage, const char* what) {
  if (!storage.stand_in) return;
  const std::string name = storage.stand_in->transform->what;
  throw Error(Code::invalid, "[" + name + "] a tensor inside " + name + " has no memory of its own, which " + what +
                                 " needs: do that outside the function");
}

Scope::Scope(Transform& transform) {
  Scopes& s = scopes();
  s.all.push_back(&transform);
  s.seen = s.all.size();
  local().mode |= kTransformedMode;
}
Scope::~Scope() {
  Scopes& s = scopes();
  s.all.pop_back();
  s.seen = s.all.size();
  s.writing = nullptr;
  if (s.all.empty()) local().mode &= ~kTransformedMode;
}
bool has_scope() { return scopes().seen; }
Plain::Plain() { ++scopes().plain; }
Plain::~Plain() { --scopes().plain; }
bool runs_plainly() { return scopes().seen || scopes().plain; }
bool is_live(const Transform& transform) {
  const Scopes& s = scopes();
  return std::any_of(s.all.begin(), s.all.end(), [&](const Transform* each) { return each == &transform; });
}

Below::Below(const Transform& transform) : before_(scopes().seen) {
  Scopes& s = scopes();
  while (s.seen && s.all[s.seen - 1]->id >= transform.id) --s.seen;
}
Below::~Below() { scopes().seen = before_; }

void note_made(Storage& storage) {
  const Scopes& s = scopes();
  if (s.all.empty() || is_announced(storage) || s.announced == &storage) return;
  storage.made_under = s.all.back()->id;
}

void note_writing(const Storage& storage) {
  Scopes& s = scopes();
  s.writing = &storage;
  s.version = storage.version;
}

uint32_t version_of(const Storage& storage) {
  uint32_t version = storage.version;
  if (const StandIn* const in = storage.stand_in) {
    version += version_of(*in->value);
    if (in->tangent) version += version_of(*in->tangent);
  }
  return version;
}

void require_inside(const Storage& storage, const Transform& transform) {
  if (scopes().announced != &storage) return;
  const uint64_t own = storage.stand_in ? storage.stand_in->transform->id : 0;
  const std::string what = transform.what;
  if (!is_live(transform)) {
    if (own >= transform.id || local().gradient_of) return;  // a pass goes backward through the function
    throw Error(Code::invalid, "[" + what + "] a tensor from inside a function of " + what +
                                   " is written into another tensor after the function has ended: return it instead");
  }
  if (std::max(own, storage.made_under) >= transform.id) return;
  throw Error(Code::invalid,
              "[" + what +
                  "] the function writes in place into a tensor from outside it, which cannot hold the values "
                  "of all examples, or tangents: return the value instead. For running statistics of a module "
                  "pass copies of its buffers with functional_call, or call eval()");
}

}  // namespace stand_ins
}  // namespace plugrad
