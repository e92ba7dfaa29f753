// The extension of list.h. A list submits each call on its own. It checks that the host names all changes, and that
// independent calls are independent.
#include <plugins/sim/device.hpp>
#include <plugrad/sdk/extent.hpp>

#include <cstring>
#include <utility>

namespace plugrad::sim {
namespace {

// The operands of a call at an earlier time. The size of attributes may not change.
struct Seen {
  std::vector<plugrad_view> views;
  std::vector<char> attributes;
  const plugrad_buffer* workspace;
  uint64_t workspace_offset, workspace_bytes;

  explicit Seen(const plugrad_op& op)
      : workspace(op.workspace), workspace_offset(op.workspace_offset), workspace_bytes(op.workspace_bytes) {
    for (int i = 0; i < op.outputs + op.inputs; ++i) views.push_back(*op.views[i]);
    if (const auto* const bytes = static_cast<const char*>(op.attributes); bytes && op.opcode != PLUGRAD_FUSION)
      attributes.assign(bytes, bytes + *static_cast<const uint32_t*>(op.attributes));
  }

  bool equals(const Seen& now) const {
    const auto equal = [](const plugrad_view& a, const plugrad_view& b) {
      return a.buffer == b.buffer && a.offset == b.offset;
    };
    return std::ranges::equal(views, now.views, equal) && attributes == now.attributes && workspace == now.workspace &&
           workspace_offset == now.workspace_offset;
  }
  // Whether only buffers, offsets and values of attributes changed: a list may change these.
  bool has_form_of(const Seen& now) const {
    const auto equal = [](const plugrad_view& a, const plugrad_view& b) {
      return a.dtype == b.dtype && a.rank == b.rank && a.layout == b.layout && a.count == b.count &&
             std::equal(a.shape, a.shape + a.rank, b.shape) && std::equal(a.strides, a.strides + a.rank, b.strides);
    };
    return std::ranges::equal(views, now.views, equal) && attributes.size() == now.attributes.size() &&
           workspace_bytes == now.workspace_bytes;
  }
};

// Throws INVALID if a call writes memory used by another call.
void demand_independent(std::span<const plugrad_list_call> calls) {
  std::vector<MemoryExtent> extents;
  for (uint32_t at = 0; at < calls.size(); ++at) {
    const plugrad_op& op = *calls[at].op;
    for (int k = 0; k < op.outputs + op.inputs; ++k) {
      if (is_immediate(*op.views[k])) continue;
      const Range range = checked_range(*op.views[k], kGranule);
      extents.push_back({op.views[k]->buffer, range.begin, range.end, k < op.outputs, at});
    }
  }
  if (!are_independent(extents)) throw BackendError(PLUGRAD_INVALID, "the calls of an independent list are not independent");
}

class SimList final : public CallList {
 public:
  SimList(Sim& device, SimStream& stream, std::span<const plugrad_list_call> calls, uint32_t flags)
      : device_(device), stream_(stream), calls_(calls.begin(), calls.end()), flags_(flags) {
    for (const plugrad_list_call& each : calls_) seen_.emplace_back(*each.op);
  }

  void run(uint64_t first, Changes changes) override {
    if (flags_ & PLUGRAD_LIST_ONCE && std::exchange(has_run_, true)) report("a list that runs once ran again");
    std::vector<Seen> now;
    for (const plugrad_list_call& each : calls_) now.emplace_back(*each.op);
    for (uint32_t i = 0; i < now.size(); ++i) {
      const bool is_listed = changes.at(i);
      if (seen_[i].has_form_of(now[i]) && (is_listed || seen_[i].equals(now[i]))) continue;
      report("call " + std::to_string(i) + " of a list changed " +
             (is_listed ? "in what must stay as it was" : "and was not listed"));
    }
    if (flags_ & PLUGRAD_LIST_INDEPENDENT) demand_independent(calls_);
    device_.submit_list(stream_, calls_, first, flags_ & PLUGRAD_LIST_ONCE);
    seen_ = std::move(now);
  }

 private:
  static void report(const std::string& hazard) {
    const std::lock_guard lock(world().mutex);
    world().hazard(hazard);
  }

  Sim& device_;
  SimStream& stream_;
  const std::vector<plugrad_list_call> calls_;
  const uint32_t flags_;
  bool has_run_ = false;
  std::vector<Seen> seen_;
};

}  // namespace

bool Sim::batches(const plugrad_kernel& kernel) const noexcept {
  const OpInfo* const info = static_cast<const SimKernel&>(kernel).info;
  return info && info->shape == OpShape::update;
}

std::unique_ptr<CallList> Sim::make_list(Stream& stream, std::span<const plugrad_list_call> calls, uint32_t flags) {
  return std::make_unique<SimList>(*this, static_cast<SimStream&>(stream), calls, flags);
}

void Sim::submit_list(SimStream& stream, std::span<const plugrad_list_call> calls, uint64_t first, bool is_batch) {
  const auto kernel_of = [](const plugrad_list_call& call) -> const SimKernel& {
    return static_cast<const SimKernel&>(*call.kernel);
  };
  std::vector<uint32_t> faults;
  {
    const std::lock_guard lock(world().mutex);
    stream.demand_sound();
    stream.demand_number(first);
    Range ranges[PLUGRAD_FUSION_OPERANDS];
    for (const plugrad_list_call& each : calls) {
      check(kernel_of(each), *each.op, ranges);
      faults.push_back(run_faults());
    }
    ++(is_batch ? counters_.batches : counters_.lists);
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    plugrad_op op = *calls[i].op;
    op.number = first + i;
    stream.wait_for_room();
    const std::lock_guard lock(world().mutex);
    enqueue(kernel_of(calls[i]), stream, op, faults[i]);
  }
}

}  // namespace plugrad::sim
