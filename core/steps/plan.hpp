// The plan of a replay. Passes make it from a trace, in this order: channels last, forms, simplify, fuse, place, list. The
// first two change the trace; each further pass is a function of the earlier passes' results, and does not change them.
// runner.hpp runs the plan.
#pragma once
#include <core/runtime/dispatch/call_list.hpp>
#include <core/steps/forms.hpp>
#include <core/steps/fusions.hpp>
#include <core/steps/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plugrad::steps {

// --- Simplify: which calls run, and how often.

struct Simplified {
  enum Role : uint8_t { kRead = 1, kWritten = 2, kBound = 4, kConstant = 8 };
  std::vector<uint8_t> roles;       // by memory
  std::vector<bool> renumbered;     // by call: whether its numbers change from step to step
  std::vector<uint32_t> once;       // calls that make constants
  std::vector<uint32_t> each_time;  // calls of each replay
  size_t unused = 0;                // calls with unread results

  bool is(uint32_t memory, Role role) const { return memory < roles.size() && roles[memory] & role; }
};
// bound: memories to bind to a storage before each replay.
Simplified simplify(const Trace& trace, const std::vector<uint32_t>& bound);

// --- Fuse: which calls run as one fusion.

// allowed: whether calls may run together as fusions. least: the fewest elements of a fusion; if empty, the plugin's
// minimum.
struct FusionChoice {
  bool allowed = false;
  std::optional<uint64_t> least = {};
};

struct FusedFusion {
  FusionCall call;
  std::vector<uint32_t> calls;
};

// A unit of a replay: one call, or a fusion of several calls.
struct Item {
  std::vector<uint32_t> calls;
  uint32_t fusion = kNever;
};

struct Fused {
  std::vector<Item> items;  // in their order
  std::vector<FusedFusion> fusions;
  std::vector<uint64_t> workspaces;                            // bytes; their memories follow the trace's own memories
  std::map<std::string, std::map<std::string, size_t>> alone;  // see Schedule
  bool reorders = false;                                       // calls run in another order than they were recorded
  size_t fused = 0;                                            // calls in fusions

  const Call& call_of(const Trace& trace, uint32_t item) const {
    const Item& it = items[item];
    return it.fusion == kNever ? trace.calls[it.calls[0]] : fusions[it.fusion].call.call;
  }
};
// lists: the device's interface for lists, or null.
Fused fuse(const Trace& trace, const Simplified& simplified, const FusionChoice& choice, const plugrad_lists* lists);

// --- Place: the step's own memory. From here on, the trace includes the workspaces of fusions.

// The first and the last item with a use of each memory; kNever and 0 for an unused memory.
struct Uses {
  std::vector<uint32_t> first, last;  // by memory
};

struct MemoryPlace {
  uint32_t memory;
  uint64_t offset;  // in its block
};

// The memory of results and gradients. Temporary memory may overlap it until the step first uses it.
struct Room {
  std::vector<uint32_t> memories;  // several follow each other, each as a block of the allocator
  uint64_t used = 0;               // bytes from the room's start that temporary memory overlaps
  std::vector<MemoryPlace> temporaries = {};
};

// Memory of a fusion's calls alone, in case they run singly.
struct InnerMemory {
  static constexpr uint32_t kArena = kNever - 1, kSpare = kNever;
  struct Place {
    uint32_t memory;
    uint64_t offset;
    uint32_t room;  // or kArena or kSpare
  };
  std::vector<Place> places;
  uint64_t spare = 0;  // bytes without space in any room
};

struct Placed {
  Uses uses;
  std::vector<MemoryPlace> temporaries;  // in the arena
  std::vector<Room> rooms;
  std::vector<InnerMemory> inner;  // by fusion
  std::vector<MemoryPlace> constants;
  uint64_t temporary_bytes = 0, arena_bytes = 0, constant_bytes = 0;
};
// row: bound memories that may share a room, one after the next.
Placed place_memory(const Trace& trace, const Simplified& simplified, const Fused& fused, std::vector<uint32_t> row);

// --- List: items submitted together.

struct Listed {
  struct Batch {
    uint32_t first, last;  // items, from first to before last
  };
  struct Written {
    uint32_t memory, last;  // the last item to write the memory, counted from the list's first
    bool is_fresh;          // the memory's contents before the list do not matter
  };
  // Items that the device may take as one list: all, or all between two works of the host.
  struct List {
    uint32_t first, last;               // items, from first to before last
    std::vector<Written> written = {};  // in the order of `last`
    std::vector<uint32_t> read = {};    // memories read but not written
  };
  std::vector<Batch> batches;  // in the order of their items
  std::vector<List> lists;     // in the order of their items
};
Listed list_items(const Trace& trace, const Fused& fused, const Placed& placed, const plugrad_lists* lists);

// Whether the device takes batches of the call's kernel.
bool takes_batches_of(const Trace& trace, const Call& call, const plugrad_lists* lists);

// --- All of it.

// Memories to bind to a storage before each replay. row: a subset that may share a room, one after the next.
struct Outside {
  std::vector<uint32_t> all, row;
};

struct Plan {
  Trace trace;                 // with the calls as they run
  std::vector<Call> recorded;  // the calls as they were recorded; empty if they run so
  std::vector<Form> forms;
  size_t images = 0;  // with channels last
  Simplified simplified;
  Fused fused;
  Placed placed;
  Listed listed;
  const plugrad_lists* lists = nullptr;

  const std::vector<Call>& recorded_calls() const { return recorded.empty() ? trace.calls : recorded; }
  bool reads(uint32_t memory) const { return simplified.is(memory, Simplified::kRead); }
  bool writes(uint32_t memory) const { return simplified.is(memory, Simplified::kWritten); }
};
Plan make_plan(Trace trace, Outside outside, const FusionChoice& choice);

}  // namespace plugrad::steps
