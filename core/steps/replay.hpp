// Runs the calls of a trace again: a flat list, whose temporary memory was placed in one block beforehand.
#pragma once
#include <core/runtime/call_list.hpp>
#include <core/steps/placement.hpp>
#include <core/steps/programs.hpp>
#include <core/steps/trace.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace plugrad::steps {

// Whether calls may run together as programs, and from how many elements on; without a number, the plugin says it.
struct ProgramChoice {
  bool allowed = false;
  std::optional<uint64_t> least = {};
};

// What a plan makes of a trace.
struct PlanFigures {
  size_t calls = 0;              // recorded
  size_t once = 0;               // that make constants, and run once
  size_t unused = 0;             // whose results nothing reads
  size_t fused = 0;              // that run in programs
  uint64_t temporaries = 0;      // bytes of all temporary memories together
  uint64_t arena = 0;            // bytes that the plan needs for them
};

// The block for temporary memory. Replays that never run at the same time share one, of the size that the largest needs.
struct Arena {
  Ref<Storage> storage;  // null until a replay needs it
  uint64_t wanted = 0;
  // How often replays may still ask the device for memory for a row of gradients: the program may hold a part of each.
  int rows = 4;
};

class Replay {
 public:
  // Memories that bind() gives a storage before the first run; `row`: those of them that may lie in one room.
  struct Outside {
    std::vector<uint32_t> all, row;
  };
  Replay(Trace trace, const Outside& outside, std::shared_ptr<Arena> arena, const ProgramChoice& programs);

  // From now on the memory is this storage: what lay `offset` bytes behind the recorded `base` lies at base + offset.
  void bind(uint32_t memory, Storage& storage, uint64_t base);

  struct Bound {
    Storage* storage = nullptr;
    plugrad_buffer* buffer = nullptr;
    uint64_t base = 0;
    friend bool operator==(const Bound&, const Bound&) = default;
  };
  struct Temporary {
    uint32_t memory;
    uint64_t offset;  // in its block
  };
  // What results and gradients occupy. Until the step first uses them, temporary memory may lie there.
  struct Room {
    std::vector<uint32_t> memories;  // several follow each other, each as a block of the allocator
    uint64_t used = 0;               // the first bytes of the room, in which temporary memory lies
    std::vector<Temporary> lodgers = {};
    Bound bound = {};

    void use(const Interval& block) { used = std::max(used, block.offset + block.bytes); }
  };
  const std::vector<Room>& rooms() const { return rooms_; }
  // From now on the temporary memory that lies in a room lies in this storage and what follows it: where its memories are
  // bound, or elsewhere.
  void bind_room(size_t room, Storage& storage);
  // Runs all calls. Throws Error if one fails; what the calls before it wrote stays written.
  void run();

  // The same; returns a digest of what each call of the trace wrote, or 0 for those that do not run each time. Programs run
  // twice, once call by call.
  std::vector<uint64_t> run_with_digests();

  // Draws random numbers as a run of the function would.
  void draw();
  // After a run that failed: gives back those of calls that it did not reach.
  void take_back_draws();
  // Whether the last run, which failed, ran none of the part's calls.
  bool missed(const RecordedPart& part) const;
  // Advances a part, and calls its ops for their numbers if these change. Returns false if it calls other ops than before;
  // the part is then as it was.
  bool advance(size_t part);

  // Where a memory is now.
  const Bound& where(uint32_t memory) const { return bound_[memory]; }
  const Trace& trace() const { return trace_; }
  const PlanFigures& figures() const { return figures_; }
  // Whether calls run in another order than they were recorded. Then no two memories may overlap.
  bool reorders() const { return reorders_; }
  // Lists the programs, and why calls run alone.
  std::string text() const;
  // Whether a call reads a memory, or writes it.
  bool reads(uint32_t memory) const { return roles_[memory] & kRead; }
  bool writes(uint32_t memory) const { return roles_[memory] & kWritten; }

 private:
  enum Role : uint8_t { kRead = 1, kWritten = 2, kBound = 4, kConstant = 8 };
  struct Item {
    const plugrad_kernel* kernel;
    plugrad_op op;
    uint32_t first;  // of its operands
    uint32_t call;   // of the trace; of a program, its first one
    uint32_t overwrites;
    uint32_t program = kNever;
  };
  // Memory that only the calls of a program need, in a room, the arena or the spare memory.
  struct Inner {
    uint32_t memory;
    uint64_t offset;
    uint32_t room;
  };
  static constexpr uint32_t kArena = kNever - 1, kSpare = kNever;
  struct RunningProgram {
    ProgramCall call;
    std::vector<uint32_t> calls;
    std::vector<Item> singly;      // the calls one by one, for when the kernel declines
    std::vector<Inner> inner;      // what only they need
    uint64_t spare = 0;            // bytes of that in the spare memory
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
    std::vector<uint32_t> items;  // whose operands it has, if they run as a list
  };
  using SharedViews = std::unordered_map<std::string, plugrad_view*>;

  // Construction: replay_plan.cpp.
  void find_roles(const std::vector<uint32_t>& bound);
  std::vector<bool> find_renumbered() const;
  void find_constants(const std::vector<bool>& renumbered);
  std::vector<bool> find_used() const;
  void find_steps(const std::vector<bool>& used, const std::vector<bool>& renumbered, const ProgramChoice& choice);
  bool write_programs(const std::vector<bool>& renumbered, const ProgramLimits& limits);
  bool stays(uint32_t memory, uint32_t step, const std::vector<uint32_t>& readers) const;
  void replace(size_t step, std::vector<Step> by);
  void add_workspace(Call& program);
  void make_items();
  Item make_item(const Call& call, uint32_t at, SharedViews& shared);
  void make_program(uint32_t step, SharedViews& shared);
  plugrad_view* view_for(const Call& call, size_t operand, SharedViews& shared);
  void connect(Item& item);
  // Memory: replay_memory.cpp.
  struct Uses {
    std::vector<uint32_t> first, last;  // steps, by memory; kNever and 0 for an unused one
  };
  Uses find_uses() const;
  // Where temporary memory lies, in the arena or in rooms, and the memories that the rooms are for.
  struct Places {
    std::vector<Interval> temporaries, owners;
    std::vector<uint64_t> rooms;  // bytes
  };
  Places place_temporaries(const Uses& uses, std::vector<uint32_t> row);
  void add_room(std::vector<uint32_t> memories, const Uses& uses, Places& places);
  void place_inner(RunningProgram& program, const Uses& uses, const Places& places);
  void place_constants(const Uses& uses);
  void bind_outside();
  void provide_arena();
  bool renumber(const RecordedPart& part);
  // The items as one list: replay_list.cpp.
  struct ListMemory {
    uint32_t memory, last;
    bool is_fresh;  // what it has before the step does not matter
  };
  void offer_list();
  void find_list_uses();
  plugrad_status make_or_run_list(std::span<const plugrad_list_call> calls, uint64_t first);
  bool run_list();  // returns false if the items are to run one by one
  // Batches: replay_batches.cpp.
  struct ItemRange {
    uint32_t first, last;  // items; last is the one after
  };
  bool takes_batches_of(const Call& call) const;
  void divide_batched();
  void find_batches(const Uses& uses);
  bool run_batch(const ItemRange& batch);
  void run_in_order();
  void note_changed(uint32_t item) {
    if (is_list_ && item != kNever) changed_[item / 64] |= uint64_t{1} << item % 64;
  }

  void run_item(Item& item);
  void settle(Item& item, plugrad_status status);
  void run_observed(Item& item);
  void run_singly(RunningProgram& program);
  Ref<Storage> bind_inner(RunningProgram& program);
  void rehearse_singly(RunningProgram& program, std::vector<uint64_t>& digests);
  plugrad_status start(Item& item);
  const Call& call_of(const Item& item) const;
  bool in_program(uint32_t call) const {
    return item_of_call_[call] != kNever && items_[item_of_call_[call]].program != kNever;
  }
  void add_digests(const Item& item, std::vector<uint64_t>& digests) const;
  [[noreturn]] void throw_failed(const Item& item, plugrad_status status);

  Trace trace_;
  PlanFigures figures_;
  std::vector<uint8_t> roles_;             // by memory
  std::vector<plugrad_view> views_;        // never grows after construction
  std::vector<plugrad_view*> pointers_;    // of all operands
  std::vector<Storage*> storages_;         // the same
  std::vector<Step> steps_;
  std::vector<uint32_t> once_calls_;
  std::map<std::string, std::map<std::string, size_t>> alone_;  // see Schedule
  bool reorders_ = false;
  std::vector<RunningProgram> programs_;
  std::vector<Item> once_, items_;
  std::vector<uint32_t> item_of_call_;                          // its place in items_; kNever if it does not run each time
  std::map<std::pair<uint32_t, uint32_t>, plugrad_view*> numbers_;  // by call and operand: immediates of programs
  std::vector<Followers> followers_;       // by memory
  std::vector<Bound> bound_;               // by memory: the last bind()
  std::vector<uint32_t> operands_of_call_;  // the first operand of each call; kNever if it never runs
  std::vector<uint32_t> draws_;            // calls that draw random numbers
  uint64_t drawn_ = 0;                     // the generator's offset before the last draw()
  uint32_t reached_ = 0;                   // the item that the last run came to
  std::shared_ptr<Arena> arena_;
  std::vector<Temporary> temporaries_;  // in the arena
  std::vector<Room> rooms_;
  Bound arena_bound_;
  Ref<Storage> constants_;
  const plugrad_lists* lists_ = nullptr;  // what the device offers
  std::vector<ItemRange> batches_;        // in the order of their items
  bool is_list_ = false;                  // whether the items may run as one list
  bool ran_as_list_ = false;              // in the last run
  std::vector<uint64_t> changed_;         // items, as a bit set: since the last run as a list
  std::vector<ListMemory> list_written_;
  std::vector<uint32_t> list_read_;
  std::vector<streams::ListUses::Written> written_now_;
  std::vector<Storage*> read_now_;
  CallList list_;  // ends first: it refers to the items
};

}  // namespace plugrad::steps
