// The plugin sim with one planted lie about time, sizes, or the process. PLUGRAD_BUG names the lie.
#include <plugrad/sdk/driver.h>
#include <plugrad/sim.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace {

bool lies(std::string_view about) {
  const char* const name = std::getenv("PLUGRAD_BUG");
  return name && about == name;
}

const plugrad_backend& sound() { return *plugrad_sim_backend(nullptr); }

// The number of each stream's last submission.
class LastNumbers {
 public:
  void set(plugrad_stream* stream, uint64_t number) {
    const std::scoped_lock lock(mutex_);
    numbers_[stream] = number;
  }
  uint64_t of(plugrad_stream* stream) {
    const std::scoped_lock lock(mutex_);
    return numbers_[stream];
  }
  // Whether a stream has work in flight.
  bool any_in_flight() {
    const std::scoped_lock lock(mutex_);
    return std::ranges::any_of(numbers_, [](const auto& each) {
      uint64_t done = 0;
      sound().completed(each.first, &done);
      return done < each.second;
    });
  }

 private:
  std::mutex mutex_;
  std::map<plugrad_stream*, uint64_t> numbers_;
};
LastNumbers& last_numbers() {
  static LastNumbers& all = *new LastNumbers;
  return all;
}

// --- Kernels that shorten their work, wait, or share their arguments.

struct Kernel {
  plugrad_kernel table;
  const plugrad_kernel* inner;
  uint32_t opcode;
};
const Kernel& kernel_of(const plugrad_kernel* kernel) { return *reinterpret_cast<const Kernel*>(kernel); }

// The operands with the extent of the first axis cut down to `most`.
std::vector<plugrad_view> cut(const plugrad_op& op, int64_t most) {
  std::vector<plugrad_view> views;
  for (int i = 0; i < op.outputs + op.inputs; ++i) {
    plugrad_view& view = views.emplace_back(*op.views[i]);
    if (!view.rank || view.shape[0] <= most) continue;
    view.count = view.count / view.shape[0] * most;
    view.shape[0] = most;
  }
  return views;
}

plugrad_status run_with(const Kernel& kernel, plugrad_stream* stream, const plugrad_op& op,
                        const std::vector<plugrad_view>& views) {
  std::vector<const plugrad_view*> pointers;
  for (const plugrad_view& view : views) pointers.push_back(&view);
  plugrad_op changed = op;
  changed.views = pointers.data();
  return kernel.inner->run(kernel.inner, stream, &changed);
}

// All calls of the kernel use one set of arguments, which another thread's call may replace.
plugrad_status run_shared(const Kernel& kernel, plugrad_stream* stream, const plugrad_op& op) {
  static std::atomic<uint64_t> number;
  std::vector<plugrad_view> views;
  for (int i = 0; i < op.outputs + op.inputs; ++i) views.push_back(*op.views[i]);
  const bool immediate = !views.empty() && views.back().layout & PLUGRAD_IMMEDIATE;
  if (immediate) number = views.back().offset;
  std::this_thread::yield();
  if (immediate) views.back().offset = number;
  return run_with(kernel, stream, op, views);
}

plugrad_status run(const plugrad_kernel* table, plugrad_stream* stream, const plugrad_op* op) {
  const Kernel& kernel = kernel_of(table);
  last_numbers().set(stream, op->number);
  if (lies("float_index")) return run_with(kernel, stream, *op, cut(*op, 1 << 24));
  if (lies("grid_limit") && kernel.opcode == PLUGRAD_OP_MATMUL) return run_with(kernel, stream, *op, cut(*op, 65535));
  if (lies("narrow_index") && op->views[0]->layout & PLUGRAD_WIDE_INDEX) return run_with(kernel, stream, *op, cut(*op, 2));
  if (lies("index_crash") && kernel.opcode == PLUGRAD_OP_GATHER) std::raise(SIGSEGV);
  if (lies("shared_arguments")) return run_shared(kernel, stream, *op);
  const plugrad_status status = kernel.inner->run(kernel.inner, stream, op);
  for (uint64_t done = 0; lies("run_waits") && !status && done < op->number;) sound().completed(stream, &done);
  return status;
}

uint64_t workspace(const plugrad_kernel* table, const plugrad_op* op) {
  const plugrad_kernel* const inner = kernel_of(table).inner;
  return inner->workspace ? inner->workspace(inner, op) : 0;
}

const plugrad_kernel* resolve(plugrad_device* device, const plugrad_signature* signature) {
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<const plugrad_kernel*, std::unique_ptr<Kernel>>;
  const plugrad_kernel* const inner = sound().resolve(device, signature);
  if (!inner) return nullptr;
  const std::scoped_lock lock(mutex);
  std::unique_ptr<Kernel>& made = known[inner];
  if (!made) made.reset(new Kernel{{sizeof(plugrad_kernel), 0, run, workspace}, inner, signature->opcode});
  return &made->table;
}

// --- Streams.

plugrad_status copy(plugrad_stream* stream, const plugrad_copy* copied) {
  const plugrad_status status = sound().copy(stream, copied);
  if (!status) last_numbers().set(stream, copied->number);
  return status;
}

plugrad_status completed(plugrad_stream* stream, uint64_t* number) {
  const plugrad_status status = sound().completed(stream, number);
  if (lies("done_early")) *number = last_numbers().of(stream);
  return status;
}

plugrad_status wait(plugrad_stream* stream, plugrad_stream* other, uint64_t* number) {
  const plugrad_status status = sound().wait(stream, other, number);
  for (uint64_t done = 0; lies("wait_waits") && !status && done < *number;) sound().completed(other, &done);
  return status;
}

// --- The process.

void handler(int) {}

void crash_if_busy() {
  if (last_numbers().any_in_flight()) std::raise(SIGSEGV);
}

[[gnu::constructor]] void at_loading() {
  if (lies("signal_at_loading")) std::signal(SIGUSR1, handler);
  if (lies("crash_at_exit")) std::atexit(crash_if_busy);
}

plugrad_status count(const plugrad_host* host, uint32_t* devices) {
  if (lies("signal_in_count") || lies("declared_signals")) std::signal(SIGUSR1, handler);
  return sound().count(host, devices);
}

plugrad_status open_device(const plugrad_host* host, uint32_t index, const plugrad_options* options, plugrad_device** device,
                           plugrad_device_info* info) {
  if (lies("signal_in_open")) std::signal(SIGUSR1, handler);
  return sound().open(host, index, options, device, info);
}

// A declaration is not a lie.
const void* get_extension(const char* name) {
  static constexpr plugrad_driver driver{sizeof driver, PLUGRAD_DRIVER_SIGNALS};
  return lies("declared_signals") && std::string_view(name) == PLUGRAD_DRIVER ? &driver : nullptr;
}

}  // namespace

extern "C" PLUGRAD_EXPORT const plugrad_backend* plugrad_backend_v0(const plugrad_host* host) {
  static const plugrad_backend table = [host] {
    plugrad_backend made = *plugrad_sim_backend(host);
    made.count = count;
    made.open = open_device;
    made.resolve = resolve;
    made.copy = copy;
    made.completed = completed;
    made.wait = wait;
    made.get_extension = get_extension;  // without sim's own extensions, which know sim's own kernels
    return made;
  }();
  return &table;
}
