// A plugin must release host memory of calls and device memory of buffers.
#include <sdk/conformance/op_rows.hpp>
#include <sdk/conformance/sanitizer.hpp>
#include <sdk/conformance/session.hpp>

#include <unistd.h>

#include <chrono>
#include <fstream>

namespace plugrad::conformance {
namespace {

uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  in >> size >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Calls `step` many times, for two seconds at most; returns how many bytes a call did not release.
template <class Step> double growth(const Step& step) {
  using Clock = std::chrono::steady_clock;
  constexpr int kWarmUp = 200, kMost = 100'000;
  for (int i = 0; i < kWarmUp; ++i) step();
  const uint64_t before = resident_bytes();
  const Clock::time_point end = Clock::now() + std::chrono::seconds(2);
  int calls = 0;
  while (calls < kMost && (calls % 16 || Clock::now() < end)) step(), ++calls;
  const uint64_t after = resident_bytes();
  constexpr uint64_t kNoise = 4 << 20;
  return after > before + kNoise ? static_cast<double>(after - before) / calls : 0;
}

void check_leaks(Session& session, Tally& tally) {
  if (kSanitized) return tally.skip("a sanitizer keeps freed memory");
  Device& device = session.device;
  Queue queue = device.make_queue();
  const double blocks = growth([&] { const Block block(device, 100'000); });
  tally.check(blocks < 16, "each pair of alloc and free leaves " + std::to_string(blocks) + " bytes of host memory behind");
  const Block block(device, 4096);
  std::vector<char> bytes(1000);
  const double copies = growth([&] {
    device.upload(queue, block.buffer(), 0, bytes.data(), bytes.size());
    device.download(queue, bytes.data(), block.buffer(), 0, bytes.size());
  });
  tally.check(copies < 16, "each pair of copies leaves " + std::to_string(copies) + " bytes of host memory behind");
  const Question question = question_for(PLUGRAD_OP_FILL, PLUGRAD_F32);
  const plugrad_kernel* kernel = resolve(device.table(), device.handle(), question, PLUGRAD_IMMEDIATE);
  if (!kernel || kernel->workspace) return;
  plugrad_view out{}, number{};
  out.buffer = block.buffer();
  out.count = out.shape[0] = 16;
  out.dtype = number.dtype = PLUGRAD_F32;
  out.rank = 1;
  out.strides[0] = 1;
  number.count = 1;
  number.layout = PLUGRAD_IMMEDIATE;
  const plugrad_view* views[] = {&out, &number};
  plugrad_op op{};
  op.struct_size = sizeof op;
  op.opcode = PLUGRAD_OP_FILL;
  op.views = views;
  op.outputs = op.inputs = 1;
  const double runs = growth([&] {
    device.run(queue, kernel, op);
    if (queue.last % 64 == 0) device.sync(queue);
  });
  device.sync(queue);
  tally.check(runs < 16, "each run of FILL leaves " + std::to_string(runs) + " bytes of host memory behind");
}

// Freed memory must be available again: together the buffers are larger than the device's memory.
void check_reuse(Session& session, Tally& tally) {
  const plugrad_backend& table = *session.plugin.table;
  if (!table.alloc || !table.memory_info) return tally.skip("the plugin does not allocate, or has no memory_info");
  Device& device = session.device;
  uint64_t available = 0, total = 0;
  if (table.memory_info(device.handle(), &available, &total) || !total) return tally.skip("memory_info gives no total");
  const uint64_t bytes = std::max<uint64_t>(total / 16, 1 << 20);
  for (int i = 0; i < 40; ++i) {
    plugrad_buffer* buffer = nullptr;
    const Outcome outcome = attempt("alloc", [&] { return table.alloc(device.handle(), bytes, &buffer); });
    if (outcome.status == PLUGRAD_OUT_OF_MEMORY && i == 0)
      return tally.skip("a sixteenth of the device's memory is not free");
    if (!tally.check(outcome.ok(), "alloc number " + std::to_string(i + 1) + " of " + std::to_string(bytes) +
                                       " bytes, each freed at once, returned " + outcome.text()))
      return;
    device.free(buffer);
  }
}

// While a large block is allocated, less memory is free, and the device's total is unchanged.
void check_held_memory(Session& session, Tally& tally) {
  const plugrad_backend& table = *session.plugin.table;
  if (!table.memory_info || !table.alloc || session.device.host_memory())
    return tally.skip("the device's memory is the host's, or the plugin has no memory_info");
  constexpr uint64_t kBytes = 64 << 20;
  const auto ask = [&] {
    std::pair<uint64_t, uint64_t> answer;
    const Outcome outcome =
        attempt("memory_info", [&] { return table.memory_info(session.device.handle(), &answer.first, &answer.second); });
    if (!outcome.ok()) throw Breach("memory_info returned " + outcome.text());
    return answer;
  };
  const auto [free_before, total_before] = ask();
  if (free_before < 2 * kBytes) return tally.skip("the device has too little free memory");
  std::pair<uint64_t, uint64_t> held;
  {
    const Block block(session.device, kBytes);
    held = ask();
  }
  tally.check(held.second == total_before, "memory_info's total changes while a block is held");
  tally.check(held.first + kBytes / 2 <= free_before, "memory_info says " + std::to_string(held.first) +
                                                          " bytes are free while a block of " + std::to_string(kBytes) +
                                                          " is held, and " + std::to_string(free_before) + " before");
}

}  // namespace

std::vector<Case> leak_cases() {
  return {{"memory.leaks", check_leaks}, {"memory.reuse", check_reuse}, {"memory.held", check_held_memory}};
}

}  // namespace plugrad::conformance
