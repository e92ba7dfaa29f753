// Storages that stand for other memory: how transforms, such as vmap and forward mode, take part in each op.
//
// Inside vmap a function computes with tensors of one example, though each of their elements has a value per example. The
// storage of such a tensor is a stand-in: nothing reads or writes its bytes. Its StandIn names the memory of all examples,
// and the transform that knows how this memory is laid out. An op with a stand-in among its operands goes to the transform
// instead of a kernel. The transform runs ops on the named memory, whose storages may be stand-ins of outer transforms.
//
// A stand-in ends with its storage, which may be later than the transform's function: a graph keeps both for gradients.
#pragma once
#include <core/runtime/dispatch/dispatch.hpp>
#include <core/runtime/dispatch/stand_in_count.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace plugrad {

struct StandIn;

class Transform {
 public:
  explicit Transform(const char* what);
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;
  virtual ~Transform();

  // Runs an op with a stand-in of this transform among its operands, or an op that draws random numbers. Returns false if
  // the op must be composed of simpler ops, which happens only if may_decline is set. Throws Error if the op fails.
  virtual bool run(const OpCall& call, bool may_decline) = 0;
  // Whether it takes part in ops that draw random numbers.
  virtual bool takes_random() const { return false; }
  // Adds the offset of the memory behind a stand-in to `offset`, and returns the memory, which a copy to the host then
  // reads. Throws Error (invalid) unless each element has one value.
  virtual Storage& readable(Storage& stand_in, uint64_t& offset) const = 0;
  virtual bool has_one_value() const = 0;
  // What a storage stands for in this transform; null if it does not stand in it, and for a null storage.
  const StandIn* behind(const Storage* storage) const;

  const uint64_t id;       // rises: a transform inside another has the larger number
  const char* const what;  // "vmap"
};

// The memory behind a storage.
struct StandIn {
  std::shared_ptr<Transform> transform;
  Ref<Storage> value;         // of all examples, or the primal value
  uint64_t base = 0;          // the place in `value` of the stand-in's first byte
  int64_t stride = 0;         // vmap: bytes from one example to the next
  Ref<Storage> tangent = {};  // forward mode: of the same layout as the primal value; null: zeros
  uint64_t tangent_base = 0;  // the place in `tangent` of the stand-in's first byte
  bool is_borrowed = false;   // the memory belongs to the caller of the function: a write makes a copy first
};

namespace stand_ins {

// Makes a storage a stand-in, or replaces what it stands for.
void set(Storage& storage, StandIn stand_in);
// Called for a stand-in that is destroyed.
void forget(Storage& storage) noexcept;

// Hands an op to the innermost transform that takes part in it. Returns nothing if there is no such transform.
std::optional<bool> run(const OpCall& call, bool may_decline);
// Runs an op on the memory behind stand-ins, by the device of its first output.
bool run_inner(const OpCall& call, bool may_decline);

// Whether an op writes all bytes of an output's storage without reading any of them.
bool overwrites(const OpCall& call, size_t output);
// Whether each element of a storage has one value.
bool is_readable(const Storage& storage);
// The memory that a copy to the host reads for this storage.
Storage& readable(Storage& storage, uint64_t& offset);
// Throws Error (invalid) if the storage is a stand-in. what: what needs memory.
void require_memory(const Storage& storage, const char* what);

// While it lives, the transform's function runs on this thread.
class Scope {
 public:
  explicit Scope(Transform& transform);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
};
// Whether a transform's function runs on this thread.
bool has_scope();
// While it lives, a function whose gradients are wanted runs on this thread. Like the functions of transforms, it sees what
// compiled steps do, instead of their results.
class Plain {
 public:
  Plain();
  ~Plain();
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;
};
bool runs_plainly();
bool is_live(const Transform& transform);

// While it lives, this thread does not see the scopes of the transform and of the transforms inside it.
class Below {
 public:
  explicit Below(const Transform& transform);
  ~Below();
  Below(const Below&) = delete;
  Below& operator=(const Below&) = delete;

 private:
  size_t before_;
};

// Notes that the function of the innermost transform, if any, wrote a storage first.
void note_made(Storage& storage);
// The version of a storage, raised also by writes into the memory that it stands for.
uint32_t version_of(const Storage& storage);
// Notes that a function is about to write into a tensor with this storage.
void note_writing(const Storage& storage);
// Throws Error (invalid) if the present op writes, for note_writing, into a tensor from outside the transform's function, or
// if that has ended.
void require_inside(const Storage& storage, const Transform& transform);

}  // namespace stand_ins
}  // namespace plugrad
