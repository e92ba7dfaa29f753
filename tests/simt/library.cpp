#include <simt/library.hpp>

#include <tests/simt/stream.hpp>

namespace simt {
namespace {

void submit(cudaStream_t stream, std::function<void()> work) {
  stream->push({[work = std::move(work)](SharedRange) { work(); }, &stream->device});
}
void wait(cudaStream_t stream, std::function<void()> until) {
  stream->push({[until = std::move(until)](SharedRange) { until(); }});
}
[[noreturn]] void fail(const std::string& what) { throw Fault(cudaErrorLaunchFailure, what); }
bool covers(cudaStream_t stream, const void* address, size_t bytes) { return stream->device.memory.covers(address, bytes); }
std::string describe(cudaStream_t stream, const void* address) {
  const Memory& memory = stream->device.memory;
  return memory.owns(address) ? memory.describe(address) : "an address that is not the device's";
}

}  // namespace

const Library& library() {
  static constexpr Library table{submit, fail, covers, describe, wait};
  return table;
}

}  // namespace simt
