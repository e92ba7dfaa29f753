// A simulated device: its memory is inaccessible to the host, its streams are late, and it checks every call of the host.
#pragma once
#include <plugins/sim/checks.hpp>
#include <plugins/sim/inner.hpp>
#include <plugins/sim/region.hpp>
#include <plugins/sim/settings.hpp>
#include <plugins/sim/stream.hpp>
#include <plugins/sim/world.hpp>

#include <plugrad/sdk/list.hpp>

#include <unordered_map>

namespace plugrad::sim {

class Sim;
struct SimKernel : plugrad_kernel {
  Sim* device;
  const plugrad_kernel* inner;
  const OpInfo* info;            // null: it runs a fusion
  std::vector<uint64_t> fusion;  // its block
  const char* name() const { return info ? info->name : "FUSION"; }
};

// Counts, guarded by World::mutex.
struct Counters {
  uint64_t runs = 0, copies = 0, allocs = 0, fusions = 0, lists = 0, batches = 0;
  std::array<uint64_t, 256> by_opcode{};
};

class Sim final : public Backend, public NativeStreams, public CallLists {
 public:
  explicit Sim(const Opening& opening);
  static DeviceCount count() { return {2}; }
  static const void* extension(std::string_view name) noexcept;
  plugrad_device_info info() const override;

  const plugrad_kernel* resolve(const plugrad_signature& signature);
  const plugrad_kernel* fusion_kernel(const plugrad_fusion& fusion);
  uint32_t fusion_reach() const { return settings_.reach; }
  plugrad_buffer* alloc(uint64_t bytes) override;
  void free(plugrad_buffer* buffer) noexcept override;
  void memory_info(uint64_t& free_bytes, uint64_t& total_bytes) override;
  void* pin(uint64_t bytes) override;
  void unpin(void* address) noexcept override;
  void copy(Stream* stream, const plugrad_copy& copy) override;
  std::unique_ptr<Stream> stream_create(uint32_t role) override;
  plugrad_status completed(Stream& stream, uint64_t& number) noexcept override;
  void wait(Stream& stream, Stream& other, uint64_t& number) override;
  void sync(Stream& stream, plugrad_failure& failure) override;

  void* native_handle(Stream& stream) override;
  void wait_native(Stream& stream, uint64_t number, void* native) override;
  void signal_native(Stream& stream, uint64_t number, void* native) override;
  void notify(Stream& stream, uint64_t number, Notice notice) override;

  std::unique_ptr<CallList> make_list(Stream& stream, std::span<const plugrad_list_call> calls, uint32_t flags) override;
  bool batches(const plugrad_kernel& kernel) const noexcept override;
  // Submits all calls of a list, under the numbers from `first` on, or no call.
  void submit_list(SimStream& stream, std::span<const plugrad_list_call> calls, uint64_t first, bool is_batch);

  // For the extension. The caller holds World::mutex for the members guarded by it.
  uint32_t index() const { return index_; }
  Conditions& conditions() { return conditions_; }
  const Counters& counters() const { return counters_; }
  uint64_t allocated() const { return memory_.allocated(); }
  void arm(uint32_t fault, uint64_t n) { faults_[fault] = n; }

 private:
  struct Side;  // the source or the target of a copy, with its memory
  static plugrad_status run(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) noexcept;
  static uint64_t workspace(const plugrad_kernel* kernel, const plugrad_op* op);
  void submit(const SimKernel& kernel, SimStream& stream, const plugrad_op& op);
  void enqueue(const SimKernel& kernel, SimStream& stream, const plugrad_op& op, uint32_t faults);
  const plugrad_kernel* keep(const plugrad_kernel* inner, const OpInfo* info, std::vector<uint64_t> fusion = {});
  void check(const SimKernel& kernel, const plugrad_op& op, Range* ranges) const;
  void check_form(const SimKernel& kernel, const plugrad_op& op) const;
  void check_room(const plugrad_buffer* buffer, const Range& range) const;
  void fill(Job& job, const SimKernel& kernel, const plugrad_op& op) const;
  void note_uses(Job& job, const SimStream& stream, const plugrad_op& op, const Range* ranges);
  bool access(const Region& region, Epoch by, uint64_t offset, uint64_t bytes, bool write);
  Block take(Region& region, uint64_t bytes, const char* what);
  void give(Region& region, const void* handle, const char* what) noexcept;
  Side side(const plugrad_place& place, uint64_t bytes) const;
  bool note_copy(const SimStream& stream, const plugrad_copy& copy, const Side& to, const Side& from);
  void copy_up(SimStream& stream, const plugrad_copy& copy, char* to, bool racing, uint32_t faults);
  void copy_down(SimStream& stream, const plugrad_copy& copy);
  bool is_full() {
    uint64_t& n = faults_[PLUGRAD_SIM_FULL];
    return n == 1 || (n && --n == 0);
  }
  bool due(uint32_t fault) { return faults_[fault] && --faults_[fault] == 0; }
  uint32_t run_faults();  // returns the faults of this call of run; throws if a fault refuses the call

  const plugrad_host* const host_;
  const uint32_t index_;
  const Settings settings_;
  Conditions conditions_;
  std::mutex kernels_mutex_;
  std::unordered_map<const plugrad_kernel*, std::unique_ptr<SimKernel>> kernels_;  // by the inner kernel
  // Guarded by World::mutex:
  Region memory_, pinned_;
  Counters counters_;
  uint64_t faults_[PLUGRAD_SIM_FAULTS];
};

// Returns the function table of the plugin.
const plugrad_backend* sim_table();

}  // namespace plugrad::sim
