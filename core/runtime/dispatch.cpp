#include <core/runtime/dispatch.hpp>

#include <core/runtime/registry.hpp>
#include <core/runtime/transfer.hpp>
#include <plugrad/runtime/log.hpp>
#include <plugrad/runtime/policy.hpp>

#include <algorithm>
#include <bit>
#include <cctype>
#include <optional>

namespace plugrad {
namespace {
bool is_in_out(uint32_t opcode, int operand) {
  const OpInfo* op = op_info(opcode);
  return op && op->is_in_out(operand);
}
bool is_elementwise(uint32_t opcode) {
  const OpInfo* op = op_info(opcode);
  return op && op->shape == OpShape::elementwise;
}
const char* name_of(uint32_t opcode) {
  const OpInfo* op = op_info(opcode);
  return op ? op->name : "a private op";
}

bool writes_whole(const OpCall& call, int output) {
  const plugrad_view& v = *call.views[output];
  const bool dense = !(v.layout & PLUGRAD_STRIDED);
  return dense && !is_in_out(call.opcode, output) && uint64_t(v.count) * dtype_size(v.dtype) >= call.storages[output]->size;
}

plugrad_status run_on_stream(DeviceState& device, const plugrad_kernel* kernel, const OpCall& call, plugrad_op& op) {
  streams::Uses uses{{call.storages, call.outputs}, {call.storages + call.outputs, call.inputs}, 0};
  for (int i = 0; i < call.outputs; ++i) uses.overwrites |= uint32_t(writes_whole(call, i)) << i;
  return streams::submit(*device.compute, name_of(call.opcode), uses, [&](uint64_t number) {
    op.number = number;
    return kernel->run(kernel, device.compute->handle, &op);
  });
}

plugrad_status run_kernel(DeviceState& device, const plugrad_kernel* kernel, const OpCall& call) {
  plugrad_op op = call.op();
  Ref<Storage> workspace;
  if (kernel->workspace)
    if (const uint64_t bytes = kernel->workspace(kernel, &op)) {
      workspace = allocate(device, bytes);
      op.workspace = workspace->buffer;
      op.workspace_offset = workspace->offset;
      op.workspace_bytes = bytes;
    }
  const plugrad_status status = device.compute ? run_on_stream(device, kernel, call, op) : kernel->run(kernel, nullptr, &op);
  if (status == PLUGRAD_OK) local().count_kernel(device.ordinal);
  return status;
}

// One kernel, with a second try after trimming. False: it declined.
bool run_or_decline(DeviceState& device, const plugrad_kernel* kernel, const OpCall& call) {
  plugrad_status status = run_kernel(device, kernel, call);
  if (status == PLUGRAD_OUT_OF_MEMORY && device.allocator.trim()) status = run_kernel(device, kernel, call);
  if (status == PLUGRAD_OK) return true;
  const std::string why = take_report();
  local().short_of_memory |= status == PLUGRAD_OUT_OF_MEMORY;
  if (status == PLUGRAD_UNSUPPORTED || status == PLUGRAD_OUT_OF_MEMORY) return false;
  throw_status(status, op_label(call.opcode), why);
}

// --- Dense copies.

struct Dense {
  Ref<Storage> storage;
  plugrad_view view;
};

Dense make_dense(DeviceState& device, const plugrad_view& like) {
  Dense made{allocate(device, uint64_t(like.count) * dtype_size(like.dtype)), like};
  made.view.buffer = made.storage->buffer;
  made.view.offset = made.storage->offset;
  set_dense(made.view, device.info.alignment);
  return made;
}

void copy_view(DeviceState& device, const plugrad_view& to, Storage* to_storage, const plugrad_view& from,
               Storage* from_storage) {
  run<1, 1>(device, Op::COPY, to.dtype, {&to, &from}, {to_storage, from_storage});
  ++device.layout_copies;
}

Dense filled(DeviceState& device, plugrad_view like, const plugrad_view& value) {
  like.dtype = value.dtype;
  Dense made = make_dense(device, like);
  run<1, 1>(device, Op::FILL, value.dtype, {&made.view, &value}, {made.storage.get(), nullptr});
  ++device.layout_copies;
  return made;
}

enum class Immediates { keep, broadcast, full };
struct Plan {
  bool dense;  // all operands with memory become dense
  Immediates immediates;
};

// The operands of a call, replaced as a plan wants it.
class Replacement {
 public:
  Replacement(const OpCall& call, Plan plan)
      : call_(call),
        plan_(plan),
        elementwise_(is_elementwise(call.opcode)) {}

  // The class that the call would have.
  uint16_t layout() const {
    uint16_t bits = 0;
    for (int i = 0; i < call_.operands(); ++i) bits |= planned_layout(*call_.views[i]);
    return bits;
  }

  OpCall apply(DeviceState& device) {
    for (int i = 0; i < call_.operands(); ++i) replace(device, i);
    OpCall replaced = call_;
    replaced.views = views_;
    replaced.storages = storages_;
    return replaced;
  }

  void copy_back(DeviceState& device) {
    for (int i = 0; i < call_.outputs; ++i)
      if (made_[i]) copy_view(device, *call_.views[i], call_.storages[i], made_[i]->view, made_[i]->storage.get());
  }

 private:
  uint16_t planned_layout(const plugrad_view& v) const {
    if (!(v.layout & PLUGRAD_IMMEDIATE)) return plan_.dense ? v.count > INT32_MAX ? PLUGRAD_WIDE_INDEX : 0 : v.layout;
    if (plan_.immediates == Immediates::keep) return PLUGRAD_IMMEDIATE;
    return plan_.immediates == Immediates::broadcast && elementwise_ ? PLUGRAD_STRIDED | PLUGRAD_BROADCAST : 0;
  }

  void replace(DeviceState& device, int i) {
    const plugrad_view& v = *call_.views[i];
    views_[i] = &v;
    storages_[i] = call_.storages[i];
    if (v.layout & PLUGRAD_IMMEDIATE) {
      if (plan_.immediates == Immediates::keep) return;
      made_[i] = memory_for(device, v);
    } else {
      if (!plan_.dense || !(v.layout & ~PLUGRAD_WIDE_INDEX)) return;
      made_[i] = make_dense(device, v);
      if (i >= call_.outputs || is_in_out(call_.opcode, i))
        copy_view(device, made_[i]->view, made_[i]->storage.get(), v, call_.storages[i]);
    }
    views_[i] = &made_[i]->view;
    storages_[i] = made_[i]->storage.get();
  }

  // An immediate as a tensor: of the output's shape where the op is elementwise, else of one element.
  Dense memory_for(DeviceState& device, const plugrad_view& value) const {
    if (!elementwise_ || plan_.immediates == Immediates::broadcast) {
      Dense one = filled(device, value, value);
      if (elementwise_) broadcast(one.view, *call_.views[0]);
      return one;
    }
    return filled(device, *call_.views[0], value);
  }

  static void broadcast(plugrad_view& one, const plugrad_view& to) {
    one.rank = to.rank;
    one.count = to.count;
    std::copy_n(to.shape, to.rank, one.shape);
    std::fill_n(one.strides, to.rank, 0);
    one.layout = PLUGRAD_STRIDED | PLUGRAD_BROADCAST;
  }

  const OpCall& call_;
  Plan plan_;
  bool elementwise_;
  std::optional<Dense> made_[PLUGRAD_MAX_OPERANDS];
  const plugrad_view* views_[PLUGRAD_MAX_OPERANDS];
  Storage* storages_[PLUGRAD_MAX_OPERANDS];
};

// FILL, COPY and CAST serve every class; IOTA's inputs are immediates by definition.
bool run_on_copies(DeviceState& device, const OpCall& call, uint16_t layout) {
  const Op op = Op(call.opcode);
  if (op == Op::FILL || op == Op::COPY || op == Op::CAST || op == Op::IOTA || !(layout & ~PLUGRAD_WIDE_INDEX)) return false;
  constexpr Plan kPlans[] = {
      {false, Immediates::broadcast}, {true, Immediates::keep}, {true, Immediates::broadcast}, {true, Immediates::full}};
  for (const Plan& plan : kPlans) {
    Replacement replacement(call, plan);
    const uint16_t wanted = replacement.layout();
    if (wanted == layout) continue;
    const plugrad_kernel* kernel = device.kernel(call.op(), call.key, wanted);
    if (!kernel) continue;
    if (!run_or_decline(device, kernel, replacement.apply(device))) continue;
    replacement.copy_back(device);
    return true;
  }
  return false;
}

// --- The last rung.

[[noreturn]] void throw_unsupported(const DeviceState& device, const OpCall& call) {
  std::string dtypes;
  for (int i = 0; i < call.operands(); ++i)
    dtypes += (i ? i == call.outputs ? " <- " : ", " : "") + dtype_label(call.views[i]->dtype);
  if (local().short_of_memory)
    throw Error(Code::out_of_memory, "[" + op_label(call.opcode) + "] " + device.name + " has too little memory for it on " +
                                         dtypes +
                                         ", also after its cache was given back: free tensors, or use smaller ones");
  throw Error(Code::unsupported, "[" + op_label(call.opcode) + "] " + device.name + " has no kernel for " + dtypes +
                                     ", and nothing to do it with. Use another device or dtype, or set_fallback "
                                     "(PLUGRAD_FALLBACK=allow) to have it done in host memory");
}

// What a view can reach of its storage: no kernel of the device is needed to bring it over, whatever the view's layout.
struct Span {
  uint64_t begin, bytes;  // begin: from the start of the storage
  uint64_t first;         // of the view's first element, from begin
};

Span span_of(const plugrad_view& view, const Storage& storage) {
  int64_t low = 0, high = 0;
  for (int i = 0; i < view.rank; ++i) {
    const int64_t reach = view.strides[i] * (view.shape[i] - 1);
    (reach < 0 ? low : high) += reach;
  }
  const uint64_t size = dtype_size(view.dtype), first = uint64_t(-low) * size;
  return {view.offset - storage.offset - first, uint64_t(high - low + 1) * size, first};
}

// An operand of a call, on the host's device.
class Visitor {
 public:
  Visitor(DeviceState& host, const plugrad_view& view, Storage& home, bool read)
      : home_(home), span_(span_of(view, home)), there_{allocate(host, span_.bytes), view} {
    there_.view.buffer = there_.storage->buffer;
    there_.view.offset = there_.storage->offset + span_.first;
    const bool unaligned = there_.view.offset & (host.info.alignment - 1);
    there_.view.layout = uint16_t((view.layout & ~PLUGRAD_UNALIGNED) | (unaligned ? PLUGRAD_UNALIGNED : 0));
    if (read || view.layout & PLUGRAD_STRIDED) transfer::between(*there_.storage, 0, home_, span_.begin, span_.bytes);
  }
  void go_home() { transfer::between(home_, span_.begin, *there_.storage, 0, span_.bytes); }
  const plugrad_view& view() const { return there_.view; }
  Storage* storage() const { return there_.storage.get(); }

 private:
  Storage& home_;
  Span span_;
  Dense there_;
};

void bounce(DeviceState& device, DeviceState& host, const OpCall& call) {
  std::optional<Visitor> there[PLUGRAD_MAX_OPERANDS];
  const plugrad_view* views[PLUGRAD_MAX_OPERANDS];
  Storage* storages[PLUGRAD_MAX_OPERANDS];
  uint16_t layout = 0;
  for (int i = 0; i < call.operands(); ++i) {
    views[i] = call.views[i];
    storages[i] = nullptr;
    if (!(views[i]->layout & PLUGRAD_IMMEDIATE)) {
      there[i].emplace(host, *call.views[i], *call.storages[i], i >= call.outputs || is_in_out(call.opcode, i));
      views[i] = &there[i]->view();
      storages[i] = there[i]->storage();
    }
    layout |= views[i]->layout;
  }
  OpCall moved = call;
  moved.views = views;
  moved.storages = storages;
  if (!run_general(host, moved, layout)) throw_unsupported(device, call);
  for (int i = 0; i < call.outputs; ++i) there[i]->go_home();
}
}  // namespace

std::string op_label(uint32_t opcode) {
  const OpInfo* op = op_info(opcode);
  if (!op) return "op " + std::to_string(opcode);
  std::string label(op->name);
  std::ranges::transform(label, label.begin(), [](unsigned char c) { return std::tolower(c); });
  return label;
}

std::string dtype_label(uint8_t dtype) {
  const DTypeInfo* info = dtype_info(dtype);
  return info ? info->label : "dtype " + std::to_string(dtype);
}

plugrad_view immediate_view(uint8_t dtype, double real, int64_t integer) {
  plugrad_view v;
  v.buffer = nullptr;
  v.offset = is_floating(dtype) ? std::bit_cast<uint64_t>(real) : static_cast<uint64_t>(integer);
  v.count = 1;
  v.dtype = dtype;
  v.rank = 0;
  v.layout = PLUGRAD_IMMEDIATE;
  std::fill_n(v.reserved, sizeof v.reserved, uint8_t(0));
  return v;
}

bool run_general(DeviceState& device, const OpCall& call, uint16_t layout) {
  device.require_open();
  local().short_of_memory = false;
  const plugrad_kernel* kernel = device.kernel(call.op(), call.key, layout);
  if (kernel && run_or_decline(device, kernel, call)) return true;
  return run_on_copies(device, call, layout);
}

bool run_refused(DeviceState& device, const OpCall& call, uint16_t layout, plugrad_status status) {
  const std::string why = take_report();
  if (status == PLUGRAD_OUT_OF_MEMORY) return run_general(device, call, layout);
  if (status == PLUGRAD_UNSUPPORTED) {
    device.require_open();
    local().short_of_memory = false;
    return run_on_copies(device, call, layout);
  }
  throw_status(status, op_label(call.opcode), why);
}

void run_elsewhere(DeviceState& device, const OpCall& call) {
  if (fallback() == Fallback::error) throw_unsupported(device, call);
  DeviceState* host = Registry::get().host_device(device);
  if (!host) throw_unsupported(device, call);
  ++device.bounces;
  if (fallback() == Fallback::warn)
    log(LogLevel::warning, op_label(call.opcode) + ": not on " + device.name + ", done on " + host->name);
  bounce(device, *host, call);
}

}  // namespace plugrad
