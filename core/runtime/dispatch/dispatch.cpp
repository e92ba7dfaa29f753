#include <core/runtime/dispatch/dispatch.hpp>

#include <core/runtime/dispatch/complex_ops.hpp>
#include <core/runtime/dispatch/dense_copies.hpp>
#include <core/runtime/dispatch/host_fallback.hpp>
#include <core/runtime/dispatch/stand_ins.hpp>
#include <core/runtime/dispatch/wider.hpp>
#include <core/runtime/observe/observed.hpp>
#include <core/runtime/plugins/foreign.hpp>
#include <core/runtime/plugins/registry.hpp>
#include <plugrad/runtime/log.hpp>
#include <plugrad/runtime/policy.hpp>

#include <optional>

namespace plugrad {
namespace {
bool writes_whole(const OpCall& call, int output) {
  const plugrad_view& v = *call.views[output];
  const bool dense = !(v.layout & PLUGRAD_STRIDED);
  return dense && !is_in_out(call.opcode, output) &&
         static_cast<uint64_t>(v.count) * dtype_size(v.dtype) >= call.storages[output]->size;
}

plugrad_status run_on_stream(DeviceState& device, const plugrad_kernel* kernel, const OpCall& call, plugrad_op& op) {
  streams::Uses uses{{call.storages, call.outputs}, {call.storages + call.outputs, call.inputs}, 0};
  for (int i = 0; i < call.outputs; ++i) uses.overwrites |= static_cast<uint32_t>(writes_whole(call, i)) << i;
  return streams::submit(*device.compute, op_name(call.opcode), uses, [&](uint64_t number) {
    op.number = number;
    return contained(kernel->run, kernel, device.compute->handle, &op);
  });
}

plugrad_status run_kernel(DeviceState& device, const plugrad_kernel* kernel, const OpCall& call) {
  plugrad_op op = call.op();
  Local& l = local();
  if (observe::intercepts(l, op)) return PLUGRAD_OK;
  Ref<Storage> workspace;
  if (const uint64_t bytes = device.workspace_bytes(*kernel, op)) {
    if (bytes == UINT64_MAX) return PLUGRAD_OUT_OF_MEMORY;
    workspace = allocate(device, bytes, call.opcode);
    op.workspace = workspace->buffer;
    op.workspace_offset = workspace->offset;
    op.workspace_bytes = bytes;
  }
  const plugrad_status status =
      device.compute ? run_on_stream(device, kernel, call, op) : contained(kernel->run, kernel, nullptr, &op);
  if (status != PLUGRAD_OK) return status;
  l.count_kernel(device.ordinal);
  observe::ran(l, device, kernel, op, call.storages, workspace.get());
  return status;
}

// The message names the op; if the plugin itself is at fault, it names the device as well.
[[noreturn]] void throw_failed(const DeviceState& device, const OpCall& call, plugrad_status status,
                               const std::string& why) {
  const bool plugin = status < PLUGRAD_INVALID || status >= PLUGRAD_INTERNAL;
  throw_status(status, op_label(call.opcode) + (plugin ? " on " + device.name : ""), why);
}

[[noreturn]] void throw_unsupported(const DeviceState& device, const OpCall& call) {
  if (is_on_complex(call))
    throw Error(Code::unsupported, "[" + op_label(call.opcode) +
                                       "] this function is not defined for complex numbers: apply it to real(x), imag(x), "
                                       "abs(x) or view_as_real(x)");
  std::string dtypes;
  for (int i = 0; i < call.operands(); ++i)
    dtypes += (i ? i == call.outputs ? " <- " : ", " : "") + dtype_label(call.views[i]->dtype);
  if (local().short_of_memory)
    throw Error(Code::out_of_memory, "[" + op_label(call.opcode) + "] " + device.name + " has too little memory for " +
                                         dtypes + ", even after its cache was trimmed: free tensors, or use smaller ones");
  throw Error(Code::unsupported, "[" + op_label(call.opcode) + "] " + device.name + " has no kernel for " + dtypes +
                                     " and no fallback. Use another device or dtype, or set_fallback "
                                     "(PLUGRAD_FALLBACK=allow) to run it in host memory");
}
}  // namespace

bool run_or_decline(DeviceState& device, const plugrad_kernel* kernel, const OpCall& call) {
  plugrad_status status = run_kernel(device, kernel, call);
  if (status == PLUGRAD_OUT_OF_MEMORY && device.allocator.trim()) status = run_kernel(device, kernel, call);
  if (status == PLUGRAD_OK) return true;
  const std::string why = take_report();
  local().short_of_memory |= status == PLUGRAD_OUT_OF_MEMORY;
  if (status == PLUGRAD_UNSUPPORTED || status == PLUGRAD_OUT_OF_MEMORY) return false;
  throw_failed(device, call, status, why);
}

namespace {
// Runs an op on the device itself. Returns how it ran, or nothing if the device cannot run it.
std::optional<How> run_in_turn(DeviceState& device, const OpCall& call, uint16_t layout) {
  local().short_of_memory = false;
  const plugrad_kernel* kernel = device.kernel(call.op(), call.key(), layout);
  if (kernel && run_or_decline(device, kernel, call)) return How::native;
  if (run_on_copies(device, call, layout)) return How::dense_copies;
  if (is_on_complex(call)) return run_on_parts(call) ? std::optional(How::parts) : std::nullopt;
  if (run_wider(device, call)) return How::wider;
  return {};
}

[[gnu::noinline, gnu::cold]] bool run_observed(DeviceState& device, const OpCall& call, uint16_t layout) {
  observe::Op event(device, call);
  return event.end(run_in_turn(device, call, layout), device.compute);
}
}  // namespace

bool run_general(DeviceState& device, const OpCall& call, uint16_t layout) {
  device.require_open();
  if (modes.load(std::memory_order_relaxed) & kObserved) [[unlikely]]
    return run_observed(device, call, layout);
  return run_in_turn(device, call, layout).has_value();
}

namespace {
bool run_on_memory(DeviceState& device, const OpCall& call, uint16_t layout, plugrad_status status) {
  if (status == PLUGRAD_OK) return run_general(device, call, layout);
  const std::string why = take_report();
  if (status == PLUGRAD_OUT_OF_MEMORY) return run_general(device, call, layout);
  if (status == PLUGRAD_UNSUPPORTED) {
    device.require_open();
    local().short_of_memory = false;
    if (run_on_copies(device, call, layout)) return true;
    return is_on_complex(call) ? run_on_parts(call) : run_wider(device, call);
  }
  throw_failed(device, call, status, why);
}
}  // namespace

bool run_without_kernel(DeviceState& device, const OpCall& call, uint16_t layout, plugrad_status status) {
  if (const std::optional<bool> done = stand_ins::run(call, true)) return *done;
  return run_on_memory(device, call, layout, status);
}

void count_decomposition(DeviceState& device) {
  ++device.decompositions;
  observe::decomposed(device);
}

namespace {
void run_elsewhere(DeviceState& device, const OpCall& call) {
  if (is_on_complex(call) || fallback() == Fallback::error) throw_unsupported(device, call);
  DeviceState* host = Registry::get().host_device(PLUGRAD_AS_FALLBACK, device.source);
  if (!host) throw_unsupported(device, call);
  ++device.host_fallbacks;
  if (fallback() == Fallback::warn)
    log(LogLevel::warning, op_label(call.opcode) + " cannot run on " + device.name + ": running it on " + host->name);
  observe::Op event(device, call, observe::Op::By::host);
  if (!run_on_host(*host, call)) throw_unsupported(device, call);
  event.end(How::host, device.copies);
}
}  // namespace

bool run_without_kernel_or_throw(DeviceState& device, const OpCall& call, uint16_t layout, plugrad_status status) {
  if (stand_ins::run(call, false)) return true;
  if (!run_on_memory(device, call, layout, status)) run_elsewhere(device, call);
  return true;
}

}  // namespace plugrad
