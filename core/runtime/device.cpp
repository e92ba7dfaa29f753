#include <core/runtime/device_state.hpp>
#include <core/runtime/dispatch/op_table.hpp>
#include <core/runtime/dispatch/printable.hpp>
#include <core/runtime/memory/import.hpp>
#include <core/runtime/memory/ledger.hpp>
#include <core/runtime/memory/small_blocks.hpp>
#include <core/runtime/observe/observed.hpp>
#include <core/runtime/plugins/foreign.hpp>
#include <core/runtime/plugins/registry.hpp>
#include <core/runtime/streams/native.hpp>
#include <plugrad/runtime/device.hpp>
#include <plugrad/runtime/log.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <process/process_state.hpp>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <span>

namespace plugrad {
namespace {
const plugrad_kernel kNone = {sizeof(plugrad_kernel), 0, nullptr, nullptr};  // cached result: the device has no such kernel

constexpr uint64_t kLargestAlignment = 1 << 30;

void require_entries(const plugrad_backend& t, const std::string& name, uint32_t capabilities) {
  const auto refuse = [&](const char* why) { throw_breach(name, why); };
  if (!t.alloc != !t.free) refuse("one of alloc and free is null");
  if (!(capabilities & PLUGRAD_HOST_MEM) && (!t.alloc || !t.copy)) refuse("alloc or copy is null, but it is not HOST_MEM");
  const int streams = !!t.stream_create + !!t.completed + !!t.wait + !!t.sync;
  if ((capabilities & PLUGRAD_ASYNC) && (streams != 4 || !t.copy))
    refuse("it is ASYNC, but a stream function or copy is null");
}

uint64_t memory_limit(const std::string& name, const OptionList& options) {
  for (const auto& [key, value] : options) {
    if (key != "memory") continue;
    uint64_t bytes = 0;
    const char* const last = value.data() + value.size();
    if (const auto [end, error] = std::from_chars(value.data(), last, bytes); error != std::errc() || end != last)
      throw Error(Code::invalid, "[" + name + "] option memory='" + value + "': a number of bytes expected");
    return bytes;
  }
  return ~0ull;
}
}  // namespace

namespace {
KernelTable* zeroed_table() {
  void* zeros = std::calloc(1, sizeof(KernelTable));  // pages are allocated on first touch
  if (!zeros) throw Error(Code::out_of_memory, "[device] out of host memory for the kernel table");
  return static_cast<KernelTable*>(zeros);
}
// For all devices, and never written.
KernelTable* empty_table() {
  static KernelTable* const table = zeroed_table();
  return table;
}
}  // namespace

KernelTable* DeviceState::new_table() {
  auto& kept = made_tables_[tables_made_++];
  kept.reset(zeroed_table());
  return kept.get();
}

std::span<std::atomic<KernelTable*>> DeviceState::unobserved_tables() { return std::span(tables_).first(kObserved / 2); }

DeviceState::DeviceState(const plugrad_backend& negotiated, const plugrad_backend* from, std::string file, uint32_t index,
                         uint32_t number, const OptionList& options)
    : table(negotiated), source(from), plugin(std::move(file)), ordinal(number),
      name(negotiated.name + (":" + std::to_string(index))) {
  for (auto& each : unobserved_tables()) each = new_table();
  for (auto& each : std::span(tables_).subspan(kObserved / 2)) each = empty_table();
  open(index, options);
}

void keep_reachable(void* handle) {
  static std::vector<void*>& all = *new std::vector<void*>;
  all.push_back(handle);
}

void DeviceState::open(uint32_t index, const OptionList& options) {
  std::vector<plugrad_option> items;
  for (const auto& [key, value] : options) items.push_back({sizeof(plugrad_option), 0, key.c_str(), value.c_str()});
  const plugrad_options given{sizeof given, static_cast<uint32_t>(items.size()), sizeof(plugrad_option), items.data()};
  info.struct_size = sizeof info;
  call_open(index, given);
  require_entries(table, name, info.capabilities);
  if (!std::has_single_bit(info.alignment) || info.alignment > kLargestAlignment)
    throw_breach(name, "alignment " + std::to_string(info.alignment) + " is not a power of two up to " +
                           std::to_string(kLargestAlignment));
  description = printable({info.name, strnlen(info.name, sizeof info.name)});
  identity = printable({info.identity, strnlen(info.identity, sizeof info.identity)});
  allocator.set_limit(memory_limit(name, options));
  if (!(info.capabilities & PLUGRAD_ASYNC)) return;
  native = native::find(table, name);
  streams::create(*this);
}

void DeviceState::call_open(uint32_t index, const plugrad_options& given) {
  ProcessState before;
  const plugrad_status status = contained(table.open, plugrad::host(), index, &given, &handle, &info);
  if (const std::string changed = before.restore(brings_signal_handlers(table)); !changed.empty())
    log(LogLevel::warning, "[" + name + "] open changed " + changed + " of the process, which the core put back");
  keep_reachable(handle);
  streams::guard_exit();
  check(status, "open");
  if (!handle) throw_breach(name, "open returned OK and no device");
}

// Asks the plugin. Libraries loaded by the plugin for its first kernels must not change how this thread computes.
const plugrad_kernel* DeviceState::resolve(const plugrad_signature& question) {
  std::fenv_t arithmetic;
  std::fegetenv(&arithmetic);
  const plugrad_kernel* found = contained_value(name, "resolve", [&] { return table.resolve(handle, &question); });
  std::fesetenv(&arithmetic);
  streams::guard_exit();
  if (found && (found->struct_size < sizeof(plugrad_kernel) || !found->run))
    throw_breach(name, "the kernel that resolve returned for " + op_label(question.opcode) +
                           (found->run ? " is shorter than this revision's" : " has no function run"));
  return found;
}

uint64_t DeviceState::workspace_bytes(const plugrad_kernel& kernel, const plugrad_op& op) const {
  if (!kernel.workspace) return 0;
  const uint64_t bytes = contained_value(name, "workspace", [&] { return kernel.workspace(&kernel, &op); });
  if (bytes > kLargestBlock && bytes != UINT64_MAX)
    throw_breach(name,
                 "the kernel of " + op_label(op.opcode) + " asks for a workspace of " + std::to_string(bytes) + " bytes");
  return bytes;
}

void DeviceState::fail(plugrad_status status, const char* function) const {
  throw_status(status, name + ": " + function, take_report());
}

void DeviceState::require_open() const {
  if (detached) throw Error(Code::device_lost, "[" + name + "] the device was detached: it accepts no new work");
  if (lost || (compute && streams::closed())) streams::throw_lost(*this);
}

// Every op looks into the tables first; if they are empty, it reaches require_open.
void DeviceState::detach() {
  if (detached.exchange(true)) return;
  for (auto& each : unobserved_tables()) each = new_table();
}

const plugrad_kernel* DeviceState::kernel(const plugrad_op& op, uint8_t key, uint16_t layout) {
  const uint32_t flags = kernel_modes();
  plugrad_signature question{};
  question.struct_size = sizeof question;
  question.opcode = op.opcode;
  question.flags = flags;
  question.layout = layout;
  question.outputs = static_cast<uint8_t>(op.outputs);
  question.inputs = static_cast<uint8_t>(op.inputs);
  for (int i = 0; i < op.outputs + op.inputs; ++i) question.dtypes[i] = op.views[i]->dtype;
  if (op.opcode >= KernelTable::kOpcodes || key >= KernelTable::kDTypes || layout >= KernelTable::kLayouts)
    return resolve(question);
  KernelTable& cache = *tables_[flags >> 1].load(std::memory_order_relaxed);
  const size_t place =
      KernelTable::place(KernelTable::slot(op.opcode, op.views[op.outputs + op.inputs - 1]->dtype), key, layout);
  const plugrad_kernel* found = cache.asked[place].load(std::memory_order_acquire);
  if (!found) {
    found = resolve(question);
    if (!found) found = &kNone;
    cache.asked[place].store(found, std::memory_order_release);
    // Once the device is detached, every op must reach require_open.
    if (found != &kNone && !found->workspace && !compute && !detached)
      cache.direct[place].store(found, std::memory_order_release);
  }
  return found == &kNone ? nullptr : found;
}

// --- The public handle.

const std::string& Device::name() const { return state_->name; }
const std::string& Device::description() const { return state_->description; }
const std::string& Device::identity() const { return state_->identity; }
const std::string& Device::plugin() const { return state_->plugin; }
uint32_t Device::capabilities() const { return state_->info.capabilities; }
uint64_t Device::alignment() const { return state_->info.alignment; }
int32_t Device::dlpack_type() const { return state_->info.dlpack_type; }

void finish_all() noexcept { streams::finish_all(); }

void Device::sync() const {
  if (!state_->compute) return;
  const observe::Event waiting(EventKind::wait, "synchronize", state_);
  streams::sync(*state_->compute);
  streams::sync(*state_->copies);
}
uint64_t Device::trim() const { return state_->allocator.trim(); }
void Device::detach() const { state_->detach(); }
MemoryStats Device::memory() const {
  MemoryStats stats = state_->allocator.stats();
  const uint64_t free = std::min(free_small_bytes(*state_), stats.small);
  stats.active -= free;
  stats.cached += free;
  return stats;
}
void Device::reset_peak() const { state_->allocator.reset_peak(); }

std::pair<uint64_t, uint64_t> Device::physical_memory() const {
  uint64_t free_bytes = 0, total = 0;
  if (state_->table.memory_info)
    state_->check(contained(state_->table.memory_info, state_->handle, &free_bytes, &total), "memory_info");
  return {free_bytes, total ? total : state_->info.memory};
}

DeviceCounters Device::counters() const {
  const DeviceState& s = *state_;
  return {kernels_called(s.ordinal), s.layout_copies, s.widened, s.decompositions, s.host_fallbacks, s.uploads, s.downloads};
}

}  // namespace plugrad
