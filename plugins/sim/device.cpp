#include <plugins/sim/device.hpp>

#include <plugrad/sdk/fusion.hpp>

namespace plugrad::sim {
namespace {
constexpr uint64_t kPinnedBytes = uint64_t(1) << 30;

uint32_t checked(uint32_t index) {
  if (index < Sim::count().devices) return index;
  throw BackendError(PLUGRAD_INVALID, "there is no simulated device " + std::to_string(index));
}
}  // namespace

Sim::Sim(const Opening& opening)
    : host_(opening.host), index_(checked(opening.index)), settings_(opening.options), memory_(settings_.memory, true),
      pinned_(kPinnedBytes, false) {
  conditions_.latency = settings_.latency;
  std::ranges::copy(settings_.faults, faults_);
}

plugrad_device_info Sim::info() const {
  plugrad_device_info info = host_info("simulated device", PLUGRAD_ASYNC);
  info.alignment = kGranule;
  info.memory = memory_.size();
  info.dlpack_type = 0;
  ("sim-" + std::to_string(index_)).copy(info.identity, sizeof info.identity - 1);
  return info;
}

// --- Memory.

Block Sim::take(Region& region, uint64_t bytes, const char* what) {
  if (conditions_.lost) throw BackendError(PLUGRAD_DEVICE_LOST, "the simulated device is lost");
  if (!bytes) throw BackendError(PLUGRAD_INVALID, std::string(what) + " of no bytes");
  std::unique_lock lock(world().mutex);
  const bool refused = &region == &memory_ && (due(PLUGRAD_SIM_OUT_OF_MEMORY) || is_full());
  const auto block = refused ? std::nullopt : region.take(bytes);
  if (!block)
    throw BackendError(PLUGRAD_OUT_OF_MEMORY, std::string(what) + " of " + std::to_string(bytes) +
                                                  " bytes: " + std::to_string(region.allocated()) + " of " +
                                                  std::to_string(region.size()) + " are in use");
  if (&region == &memory_) ++counters_.allocs;
  lock.unlock();
  region.poison(*block);
  region.guard(*block);
  return *block;
}

// If a block may still be in use, it is neither poisoned nor reused: the hazard is counted, and corrupts nothing.
void Sim::give(Region& region, const void* handle, const char* what) noexcept {
  std::unique_lock lock(world().mutex);
  const auto block = region.find(handle);
  if (!block) return world().hazard(std::string(what) + " of something that is not allocated");
  const std::span<Granule> granules = region.granules(block->offset, block->bytes);
  if (conditions_.lost) {  // a worker may still use the bytes, so they stay as they are; no later alloc succeeds
    world().clocks.forget(granules);
    return region.give(*block);
  }
  const auto use = world().clocks.in_flight(granules);
  if (use)
    world().hazard(std::string(what) + " of a buffer of " + std::to_string(block->bytes) + " bytes while op " +
                   std::to_string(use->earlier.number) + " of stream " + std::to_string(use->earlier.stream) + " may " +
                   (use->earlier_wrote ? "write" : "read") + " it");
  else if (!region.guarded(*block))
    world().hazard("something wrote behind a buffer of " + std::to_string(block->bytes) + " bytes");
  world().clocks.forget(granules);
  if (use) return;
  lock.unlock();
  region.poison(*block);
  lock.lock();
  region.give(*block);
}

plugrad_buffer* Sim::alloc(uint64_t bytes) {
  return reinterpret_cast<plugrad_buffer*>(memory_.handle(take(memory_, bytes, "alloc")));
}
void Sim::free(plugrad_buffer* buffer) noexcept { give(memory_, buffer, "free"); }
void* Sim::pin(uint64_t bytes) { return pinned_.handle(take(pinned_, bytes, "pin")); }
void Sim::unpin(void* address) noexcept { give(pinned_, address, "unpin"); }

void Sim::memory_info(uint64_t& free_bytes, uint64_t& total_bytes) {
  const std::lock_guard lock(world().mutex);
  total_bytes = memory_.size();
  free_bytes = total_bytes - memory_.allocated();
}

// --- Kernels.

const plugrad_kernel* Sim::resolve(const plugrad_signature& signature) {
  const OpInfo* info = op_info(signature.opcode);
  if (!info || !settings_.leave(signature)) return nullptr;
  const plugrad_kernel* inner = inner_kernel(signature);
  return inner ? keep(inner, info) : nullptr;
}

const plugrad_kernel* Sim::keep(const plugrad_kernel* inner, const OpInfo* info, std::vector<uint64_t> fusion) {
  const std::lock_guard lock(kernels_mutex_);
  std::unique_ptr<SimKernel>& kernel = kernels_[inner];
  const plugrad_kernel head{sizeof(plugrad_kernel), 0, run, inner->workspace ? workspace : nullptr};
  if (!kernel) kernel.reset(new SimKernel{head, this, inner, info, std::move(fusion)});
  return kernel.get();
}

const plugrad_kernel* Sim::fusion_kernel(const plugrad_fusion& block) {
  if (const std::string flaw = flaw_of(block); !flaw.empty()) {
    const std::lock_guard lock(world().mutex);
    world().hazard("a fusion that breaks the contract: " + flaw);
    return nullptr;
  }
  const Fusion fusion(block);
  size_t made = fusion.inputs();
  for (const plugrad_fusion_instruction& each : fusion.instructions()) {
    if (!settings_.leave(fusion.signature_of(each, made))) return nullptr;
    made += each.results;
  }
  const plugrad_kernel* const inner = inner_fusion(block);
  const auto* const words = reinterpret_cast<const uint64_t*>(&block);
  return inner ? keep(inner, nullptr, {words, words + block.struct_size / sizeof *words}) : nullptr;
}

uint64_t Sim::workspace(const plugrad_kernel* self, const plugrad_op* op) {
  const plugrad_kernel* inner = static_cast<const SimKernel*>(self)->inner;
  return inner->workspace(inner, op);
}

plugrad_status Sim::run(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
  const auto& kernel = static_cast<const SimKernel&>(*self);
  return guarded(kernel.device->host_, [&] {
    if (!stream) throw BackendError(PLUGRAD_INVALID, "run without a stream");
    kernel.device->submit(kernel, static_cast<SimStream&>(*reinterpret_cast<Stream*>(stream)), *op);
  });
}

void Sim::submit(const SimKernel& kernel, SimStream& stream, const plugrad_op& op) {
  stream.wait_for_room();
  const std::lock_guard lock(world().mutex);
  stream.demand_sound();
  stream.demand_number(op.number);
  Range ranges[PLUGRAD_FUSION_OPERANDS];
  check(kernel, op, ranges);
  enqueue(kernel, stream, op, run_faults());
}

// The caller has checked the op.
void Sim::enqueue(const SimKernel& kernel, SimStream& stream, const plugrad_op& op, uint32_t faults) {
  Range ranges[PLUGRAD_FUSION_OPERANDS];
  for (int i = 0; i < op.outputs + op.inputs; ++i) ranges[i] = checked_range(*op.views[i], kGranule);
  Job& job = stream.slot();
  fill(job, kernel, op);
  job.faults = faults;
  job.fresh = kernel.info ? fresh_outputs(*kernel.info, op, ranges) : 0;
  note_uses(job, stream, op, ranges);
  ++counters_.runs;
  ++(kernel.info ? counters_.by_opcode[op.opcode] : counters_.fusions);
  stream.submit(op.number);
}

uint32_t Sim::run_faults() {
  uint32_t now = 0;
  for (uint32_t fault = PLUGRAD_SIM_FAIL; fault <= PLUGRAD_SIM_SLOW; ++fault)
    now |= static_cast<uint32_t>(due(fault)) << fault;
  if (now >> PLUGRAD_SIM_REFUSE & 1) throw BackendError(PLUGRAD_INTERNAL, "refused by an armed fault");
  if (now >> PLUGRAD_SIM_UNSUPPORTED & 1) throw BackendError(PLUGRAD_UNSUPPORTED, "declined by an armed fault");
  if (now >> PLUGRAD_SIM_NO_ROOM & 1) throw BackendError(PLUGRAD_OUT_OF_MEMORY, "out of memory by an armed fault");
  return now;
}

void Sim::check_form(const SimKernel& kernel, const plugrad_op& op) const {
  const OpInfo* const info = kernel.info;
  if (info && op.opcode == info->opcode && op.outputs == info->outputs && op.inputs == info->inputs) return;
  if (info || op.opcode != PLUGRAD_FUSION)
    throw BackendError(PLUGRAD_INVALID, std::string("opcode or operand count differs from the kernel, ") + kernel.name());
  const std::string flaw = flaw_of(Fusion(*reinterpret_cast<const plugrad_fusion*>(kernel.fusion.data())), op);
  if (!flaw.empty()) throw BackendError(PLUGRAD_INVALID, "operands of a fusion: " + flaw);
}

void Sim::check(const SimKernel& kernel, const plugrad_op& op, Range* ranges) const {
  check_form(kernel, op);
  uint16_t layout = 0;
  for (int i = 0; i < op.outputs + op.inputs; ++i) {
    const plugrad_view& view = *op.views[i];
    ranges[i] = checked_range(view, kGranule);
    if (!is_immediate(view)) check_room(view.buffer, ranges[i]);
    if (i < op.outputs && view.layout & (PLUGRAD_IMMEDIATE | PLUGRAD_BROADCAST))
      throw BackendError(PLUGRAD_INVALID, std::string(kernel.name()) + ": an output that is an immediate or broadcast");
    layout |= view.layout;
  }
  check_overlap(kernel.info, op, ranges);
  if (layout & settings_.without_layouts && op.opcode > PLUGRAD_OP_CAST && kernel.info)
    throw BackendError(PLUGRAD_INVALID, std::string(kernel.name()) + ": views of a layout that the kernel does not support");
  if (op.workspace) check_room(op.workspace, {op.workspace_offset, op.workspace_offset + op.workspace_bytes});
  if (kernel.info && op.attributes && *static_cast<const uint32_t*>(op.attributes) > sizeof(Job::attributes))
    throw BackendError(PLUGRAD_UNSUPPORTED, std::string(kernel.name()) + ": attributes of an unknown size");
}

void Sim::check_room(const plugrad_buffer* buffer, const Range& range) const {
  const auto block = memory_.find(buffer);
  if (!block) throw BackendError(PLUGRAD_INVALID, "a buffer that is not allocated on this device");
  if (range.end > block->bytes)
    throw BackendError(PLUGRAD_INVALID,
                       "bytes up to " + std::to_string(range.end) + " of a buffer of " + std::to_string(block->bytes));
}

void Sim::fill(Job& job, const SimKernel& kernel, const plugrad_op& op) const {
  job.kind = Job::kOp;
  job.kernel = kernel.inner;
  job.op = op;
  job.op.struct_size = std::min<uint32_t>(op.struct_size, sizeof op);
  job.op.number = 0;
  job.op.views = job.pointers;
  const auto real = [&](const plugrad_buffer* buffer) {
    return reinterpret_cast<plugrad_buffer*>(memory_.bytes(memory_.offset(buffer)));
  };
  for (int i = 0; i < op.outputs + op.inputs; ++i) {
    job.views[i] = *op.views[i];
    job.pointers[i] = &job.views[i];
    if (job.views[i].buffer) job.views[i].buffer = real(job.views[i].buffer);
  }
  if (op.workspace) job.op.workspace = real(op.workspace);
  if (!kernel.info) {
    job.op.attributes = kernel.fusion.data();
  } else if (op.attributes) {
    std::copy_n(static_cast<const char*>(op.attributes), *static_cast<const uint32_t*>(op.attributes), job.attributes);
    job.op.attributes = job.attributes;
  }
}

void Sim::note_uses(Job& job, const SimStream& stream, const plugrad_op& op, const Range* ranges) {
  const Epoch by{stream.id(), op.number};
  for (int i = op.outputs + op.inputs; i-- > 0;) {
    if (is_immediate(*op.views[i])) continue;
    const uint64_t offset = memory_.offset(op.views[i]->buffer) + ranges[i].begin;
    job.racing |= access(memory_, by, offset, ranges[i].end - ranges[i].begin, i < op.outputs);
  }
  if (op.workspace && op.workspace_bytes)
    job.racing |= access(memory_, by, memory_.offset(op.workspace) + op.workspace_offset, op.workspace_bytes, true);
}

// Returns whether the access races with an earlier access, because no wait orders them.
bool Sim::access(const Region& region, Epoch by, uint64_t offset, uint64_t bytes, bool write) {
  const auto conflict = world().clocks.access(by, region.granules(offset, bytes), write);
  if (!conflict) return false;
  world().hazard("op " + std::to_string(by.number) + " of stream " + std::to_string(by.stream) +
                 (write ? " writes" : " reads") + " what op " + std::to_string(conflict->earlier.number) + " of stream " +
                 std::to_string(conflict->earlier.stream) + (conflict->earlier_wrote ? " writes" : " reads") +
                 ", and does not come after it: bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                 " of device " + std::to_string(index_));
  return true;
}

}  // namespace plugrad::sim
