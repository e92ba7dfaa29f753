// Runs the calls of a trace again: a flat list, whose temporary memory was placed in one block beforehand.
#pragma once
#include <core/runtime/capture.hpp>
#include <core/runtime/placement.hpp>

#include <memory>
#include <span>
#include <vector>

namespace plugrad::capture {

// What a plan makes of a trace.
struct PlanFigures {
  size_t calls = 0;              // recorded
  size_t once = 0;               // that make constants, and run once
  size_t unused = 0;             // whose results nothing reads
  uint64_t temporaries = 0;      // bytes of all temporary memories together
  uint64_t arena = 0;            // bytes that the plan needs for them
};

// The block for temporary memory. Replays that never run at the same time share one, of the size that the largest needs.
struct Arena {
  Ref<Storage> storage;  // null until a replay needs it
  uint64_t wanted = 0;
};

class Replay {
 public:
  // bound: memories that bind() gives a storage before the first run.
  Replay(Trace trace, std::span<const uint32_t> bound, std::shared_ptr<Arena> arena);

  // From now on the memory is this storage: what lay `offset` bytes behind the recorded `base` lies at base + offset.
  void bind(uint32_t memory, Storage& storage, uint64_t base);
  // Runs all calls. Throws Error if one fails; what the calls before it wrote stays written.
  void run();

  // The same; returns a digest of what each call of the trace wrote, or 0 for those that do not run each time.
  std::vector<uint64_t> run_with_digests();

  // Draws random numbers as a run of the function would.
  void draw();
  // After a run that failed: gives back those of calls that it did not reach.
  void take_back_draws();
  // The call at which the last run failed; 0 if it failed before its first one.
  uint32_t reached() const { return reached_; }
  // Advances a part, and calls its ops for their numbers if these change. Returns false if it calls other ops than before;
  // the part is then as it was.
  bool advance(size_t part);

  struct Bound {
    Storage* storage = nullptr;
    plugrad_buffer* buffer = nullptr;
    uint64_t base = 0;
    friend bool operator==(const Bound&, const Bound&) = default;
  };
  // Where a memory is now.
  const Bound& where(uint32_t memory) const { return bound_[memory]; }
  const Trace& trace() const { return trace_; }
  const PlanFigures& figures() const { return figures_; }
  // Whether a call reads a memory, or writes it.
  bool reads(uint32_t memory) const { return roles_[memory] & kRead; }
  bool writes(uint32_t memory) const { return roles_[memory] & kWritten; }

 private:
  enum Role : uint8_t { kRead = 1, kWritten = 2, kBound = 4, kConstant = 8 };
  struct Item {
    const plugrad_kernel* kernel;
    plugrad_op op;
    uint32_t first;  // of its operands
    uint32_t call;   // of the trace
    uint32_t overwrites;
  };
  // A view that follows its memory; its offset counts from the memory's recorded base.
  struct FollowingView {
    plugrad_view* view;
    uint64_t offset;
  };
  // What refers to a memory.
  struct Followers {
    std::vector<FollowingView> views;
    std::vector<Storage**> storages;
    std::vector<plugrad_op*> workspaces;
  };
  using SharedViews = std::unordered_map<std::string, plugrad_view*>;

  void find_roles(std::span<const uint32_t> bound);
  void find_constants();
  std::vector<bool> find_used() const;
  void make_items(const std::vector<bool>& used);
  void add_item(uint32_t call, std::vector<Item>& items, SharedViews& shared);
  plugrad_view* view_for(const Call& call, size_t operand, SharedViews& shared);
  void connect(Item& item);
  struct Uses {
    std::vector<uint32_t> first, last;  // calls, by memory; kNever and 0 for an unused one
  };
  Uses find_uses(const std::vector<bool>& used) const;
  void place_temporaries(const Uses& uses);
  void place_constants(const Uses& uses);
  void bind_outside();
  void provide_arena();
  bool renumber(const RecordedPart& part);
  void run_items(std::span<Item> items);
  void run_observed(std::span<Item> items);
  plugrad_status submit(Item& item);
  [[noreturn]] void throw_failed(const Item& item, plugrad_status status);

  Trace trace_;
  PlanFigures figures_;
  std::vector<uint8_t> roles_;             // by memory
  std::vector<plugrad_view> views_;        // never grows after construction
  std::vector<plugrad_view*> pointers_;    // of all operands
  std::vector<Storage*> storages_;         // the same
  std::vector<Item> once_, items_;
  std::vector<Followers> followers_;       // by memory
  std::vector<Bound> bound_;               // by memory: the last bind()
  std::vector<uint32_t> operands_of_call_;  // the first operand of each call; kNever if it never runs
  std::vector<uint32_t> draws_;            // calls that draw random numbers
  uint64_t drawn_ = 0;                     // the generator's offset before the last draw()
  uint32_t reached_ = 0;
  std::shared_ptr<Arena> arena_;
  struct Temporary {
    uint32_t memory;
    uint64_t offset;  // in the arena
  };
  std::vector<Temporary> temporaries_;  // in the arena
  std::vector<std::vector<Temporary>> lodgers_;  // by memory that outlives the step: those in it before its first use
  Bound arena_bound_;
  Ref<Storage> constants_;
};

}  // namespace plugrad::capture
