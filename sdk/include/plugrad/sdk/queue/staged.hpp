// Loops in host memory, on copies of operands in device memory.
#pragma once
#include <plugrad/sdk/extent.hpp>
#include <plugrad/sdk/queue/driver.hpp>

#include <cstddef>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {
namespace queued {

class StagedOp {
 public:
  StagedOp(const Call& call, DeviceQueue& queue) : call_(call), queue_(queue) {
    const plugrad_op& op = call.op();
    for (int i = 0; i < op.outputs + op.inputs; ++i)
      if (!is_immediate(*op.views[i])) add(*op.views[i], i < op.outputs, i >= op.outputs || keeps_bytes(i));
    for (Part& part : parts_) part.bytes.resize(part.end - part.begin + kAlignment);
    finished([&] {
      for (Part& part : parts_)
        if (part.is_read) queue_.read(part.at(part.begin), part.buffer, part.begin, part.end - part.begin);
    });
  }

  void run(const KernelRow& loop) {
    plugrad_op op = call_.op();
    std::vector<plugrad_view> views;
    std::vector<const plugrad_view*> pointers;
    for (int i = 0; i < op.outputs + op.inputs; ++i) views.push_back(in_host_memory(*op.views[i]));
    for (const plugrad_view& view : views) pointers.push_back(&view);
    op.views = pointers.data();
    op.number = 0;
    std::vector<std::max_align_t> workspace;
    if (loop.workspace) {
      op.workspace_bytes = loop.workspace(call_.kernel(), &op);
      workspace.resize(op.workspace_bytes / sizeof(std::max_align_t) + 1);
      op.workspace = reinterpret_cast<plugrad_buffer*>(workspace.data());
      op.workspace_offset = 0;
    }
    if (const plugrad_status status = loop.run(call_.kernel(), nullptr, &op))
      throw BackendError(status,
                         status == PLUGRAD_INDEX_ERROR ? "an index is out of range" : "a loop in host memory failed");
    finished([&] {
      for (Part& part : parts_)
        if (part.is_written) queue_.write(part.buffer, part.begin, part.at(part.begin), part.end - part.begin);
    });
  }

 private:
  static constexpr uint64_t kAlignment = 64;

  // Bytes of a buffer, and their copy. The copy's address has the alignment of the offset in the buffer.
  struct Part {
    plugrad_buffer* buffer;
    uint64_t begin, end;
    bool is_written, is_read;
    std::vector<char> bytes = {};
    char* at(uint64_t offset) {
      const auto address = reinterpret_cast<uintptr_t>(bytes.data());
      const uint64_t shift = (begin - address) % kAlignment;
      return bytes.data() + shift + (offset - begin);
    }
  };

  // Whether an output keeps bytes: between its elements, or as a summand.
  bool keeps_bytes(int output) const {
    const OpInfo* const info = op_info(call_.op().opcode);
    return call_.out(output).layout || call_.accumulates() || !info || info->is_in_out(output);
  }

  // Enqueues copies and waits for them. If a copy is refused, it waits for the copies before it: they use the parts' bytes.
  template <class Copies> void finished(Copies copies) {
    try {
      copies();
    } catch (...) {
      try {
        queue_.finish();
      } catch (...) {  // the first failure counts
      }
      throw;
    }
    queue_.finish();
  }

  // Operands that overlap share a part.
  void add(const plugrad_view& view, bool is_written, bool is_read) {
    if (!view.count) return;
    const MemoryExtent extent = extent_of(view, view.offset, is_written, 0);
    Part made{view.buffer, extent.begin, extent.end, is_written, is_read};
    std::erase_if(parts_, [&](const Part& part) {
      if (part.buffer != made.buffer || part.begin >= made.end || made.begin >= part.end) return false;
      made.begin = std::min(made.begin, part.begin);
      made.end = std::max(made.end, part.end);
      made.is_written |= part.is_written;
      made.is_read = true;
      return true;
    });
    parts_.push_back(std::move(made));
  }

  plugrad_view in_host_memory(plugrad_view view) {
    if (is_immediate(view) || !view.count) return view;
    for (Part& part : parts_)
      if (part.buffer == view.buffer && part.begin <= view.offset && view.offset < part.end) {
        view.buffer = reinterpret_cast<plugrad_buffer*>(part.at(view.offset));
        view.offset = 0;
        return view;
      }
    return view;
  }

  const Call& call_;
  DeviceQueue& queue_;
  std::vector<Part> parts_;
};

inline void run_staged(const Call& call, DeviceQueue& queue) { StagedOp(call, queue).run(call.own<KernelRow>()); }

}  // namespace queued
}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
