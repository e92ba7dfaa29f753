// The extension of sequence.h. A sequence submits its calls one by one, and checks that the host names all changes.
#include <plugins/sim/device.hpp>

#include <cstring>

namespace plugrad::sim {
namespace {

// What a call's operands were. Attributes may not change in their size.
struct Seen {
  std::vector<plugrad_view> views;
  std::vector<char> attributes;
  const plugrad_buffer* workspace;
  uint64_t workspace_offset, workspace_bytes;

  explicit Seen(const plugrad_op& op)
      : workspace(op.workspace), workspace_offset(op.workspace_offset), workspace_bytes(op.workspace_bytes) {
    for (int i = 0; i < op.outputs + op.inputs; ++i) views.push_back(*op.views[i]);
    if (const auto* const bytes = static_cast<const char*>(op.attributes); bytes && op.opcode != PLUGRAD_PROGRAM)
      attributes.assign(bytes, bytes + *static_cast<const uint32_t*>(op.attributes));
  }

  bool equals(const Seen& now) const {
    const auto equal = [](const plugrad_view& a, const plugrad_view& b) {
      return a.buffer == b.buffer && a.offset == b.offset;
    };
    return std::ranges::equal(views, now.views, equal) && attributes == now.attributes && workspace == now.workspace &&
           workspace_offset == now.workspace_offset;
  }
  // Whether only that changed which may change.
  bool has_form_of(const Seen& now) const {
    const auto equal = [](const plugrad_view& a, const plugrad_view& b) {
      return a.dtype == b.dtype && a.rank == b.rank && a.layout == b.layout && a.count == b.count &&
             std::equal(a.shape, a.shape + a.rank, b.shape) && std::equal(a.strides, a.strides + a.rank, b.strides);
    };
    return std::ranges::equal(views, now.views, equal) && attributes.size() == now.attributes.size() &&
           workspace_bytes == now.workspace_bytes;
  }
};

class SimSequence final : public Sequence {
 public:
  SimSequence(Sim& device, SimStream& stream, std::span<const plugrad_sequence_call> calls)
      : device_(device), stream_(stream), calls_(calls.begin(), calls.end()) {
    for (const plugrad_sequence_call& each : calls_) seen_.emplace_back(*each.op);
  }

  void run(uint64_t first, Changes changes) override {
    std::vector<Seen> now;
    for (const plugrad_sequence_call& each : calls_) now.emplace_back(*each.op);
    for (uint32_t i = 0; i < now.size(); ++i) {
      const bool is_listed = changes.at(i);
      if (seen_[i].has_form_of(now[i]) && (is_listed || seen_[i].equals(now[i]))) continue;
      const std::lock_guard lock(world().mutex);
      world().hazard("call " + std::to_string(i) + " of a sequence changed " +
                     (is_listed ? "in what must stay as it was" : "and was not listed"));
    }
    device_.submit_sequence(stream_, calls_, first);
    seen_ = std::move(now);
  }

 private:
  Sim& device_;
  SimStream& stream_;
  const std::vector<plugrad_sequence_call> calls_;
  std::vector<Seen> seen_;
};

}  // namespace

std::unique_ptr<Sequence> Sim::make_sequence(Stream& stream, std::span<const plugrad_sequence_call> calls) {
  return std::make_unique<SimSequence>(*this, static_cast<SimStream&>(stream), calls);
}

void Sim::submit_all(SimStream& stream, std::span<const plugrad_sequence_call> calls, uint64_t first,
                     uint64_t& counter) {
  const auto kernel_of = [](const plugrad_sequence_call& call) -> const SimKernel& {
    return static_cast<const SimKernel&>(*call.kernel);
  };
  std::vector<uint32_t> faults;
  {
    const std::lock_guard lock(world().mutex);
    stream.demand_sound();
    stream.demand_number(first);
    Range ranges[PLUGRAD_PROGRAM_OPERANDS];
    for (const plugrad_sequence_call& each : calls) {
      check(kernel_of(each), *each.op, ranges);
      faults.push_back(run_faults());
    }
    ++counter;
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
