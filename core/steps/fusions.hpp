// Groups the calls of a trace into fusions (plugrad/sdk/fusion.h), and orders all calls.
//
// In the order of the trace, each call is appended to the first group of its space where it follows all calls on which it
// depends: their results are its operands, or it overwrites their operands. Without such a group it starts a new group at
// the end. A product, a normalisation or attention starts a group if the device takes it as a fusion's head; then only calls
// that read its result, or results of such calls, are appended. A group of a single call runs as a plain call.
#pragma once
#include <plugrad/sdk/fusion.h>
#include <core/steps/trace.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace plugrad::steps {

// The extents above 1 of a shape.
struct Space {
  int rank = 0;
  std::array<int64_t, PLUGRAD_MAX_RANK> extents{};

  static Space of(const plugrad_view& view);
  int64_t count() const;
  // Returns whether `axes` are the last axes: bit d of `axes` is axis d.
  bool ends_with(unsigned axes) const;
  std::string text() const;
  friend bool operator==(const Space&, const Space&) = default;
};

// The elements of an operand in a space: two operands with equal keys are the same element by element. The strides are 0
// along axes where the operand has extent 1.
struct Key {
  uint32_t memory;
  uint8_t dtype;
  uint64_t offset;
  std::array<int64_t, PLUGRAD_MAX_RANK> strides{};

  friend bool operator==(const Key&, const Key&) = default;
  unsigned axes(int rank) const;  // where the stride is 0
};

// A call as an instruction in a space.
struct Instruction {
  uint32_t call;
  std::vector<Key> keys;  // of all operands; the memory of an immediate is kNever
  bool is_head = false;   // only the first result is in the space
};

// The limits of a plugin's fusions.
struct FusionLimits {
  uint32_t contents = 0;
  uint64_t least = 0;         // elements of a fusion
  uint64_t least_headed = 0;  // elements of a fusion with a head
  uint64_t longest_row = 0;   // elements of a row with instructions after its reduction
};

// The calls of one fusion.
class Group {
 public:
  explicit Group(const Space& space) : space_(space) {}
  // Adds a call, or returns false if the fusion cannot contain it.
  bool add(const Trace& trace, uint32_t call, const FusionLimits& limits);
  const Space& space() const { return space_; }
  const std::vector<Instruction>& instructions() const { return instructions_; }
  bool has_head() const { return !instructions_.empty() && instructions_[0].is_head; }

 private:
  void add_head(const Trace& trace, uint32_t call);
  bool may_follow_head(const Trace& trace, const Call& call) const;
  std::optional<Instruction> instruction_of(const Trace& trace, uint32_t call) const;
  bool may_read(const Trace& trace, const Instruction& i, size_t operand, const FusionLimits& limits) const;
  bool may_write(const Trace& trace, const Instruction& i, size_t operand) const;

  Space space_;
  unsigned rows_ = 0;     // the axes of reductions with results read by instructions
  unsigned reduced_ = 0;  // the axes of the last reduction
  std::vector<Instruction> instructions_;
  std::map<uint32_t, Key> written_;
  std::map<uint32_t, std::vector<Key>> read_;  // not written by the group before
  std::set<uint32_t> of_head_;                 // memories of the head's operands outside the space
};

// A part of the step: one call, or a fusion.
struct Step {
  std::vector<uint32_t> calls;
  std::unique_ptr<Group> group;  // null: one call
};

struct Schedule {
  std::vector<Step> steps;
  std::map<std::string, std::map<std::string, size_t>> alone;  // counts of calls that stay alone, by reason and op
};

// order: the calls to schedule. limits: null if the device runs no fusions.
Schedule make_schedule(const Trace& trace, const std::vector<uint32_t>& order, const FusionLimits* limits);
// Divides a group that is too large for a fusion, or declined by the device. first: the number of calls of the first part;
// 0: the head, or half of the calls.
std::vector<Step> divided(const Step& step, const Trace& trace, const FusionLimits& limits, size_t first = 0);

// A fusion as a call of the trace, with the block as its attributes.
struct FusionCall {
  Call call;
  struct Number {  // the place of a call's immediate
    uint32_t call;
    uint32_t operand, input;  // of the call, and of the fusion
  };
  std::vector<Number> numbers;
  std::string text;  // "relu, mul and sum over 1000 x 100"
};

// The step around a group, for the writer of its fusion.
struct Surroundings {
  const Trace& trace;
  const std::vector<bool>& renumbered;         // by call: whether its numbers change from step to step
  std::function<bool(uint32_t memory)> stays;  // whether calls outside the group, or the host, read the memory
};

// Returns nothing if the group cannot be a fusion: it has too many operands, no lasting results, or only numbers as inputs.
std::optional<FusionCall> write_fusion(const Group& group, const Surroundings& around);

}  // namespace plugrad::steps
