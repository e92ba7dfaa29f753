// Views, and single ops for the cases about streams: FILL and ADD of 1 on an f32 vector at the start of a buffer. The
// extension of list.h.
#pragma once
#include <sdk/conformance/session.hpp>

#include <plugrad/sdk/list.h>

namespace plugrad::conformance {

// Dense elements at the start of a buffer, and a number.
plugrad_view vector_view(plugrad_buffer* buffer, int64_t count, uint8_t dtype = PLUGRAD_F32);
plugrad_view number_view(double value);

class Vectors {
 public:
  Vectors(Session& session, int64_t count);
  // The reason why cases with these ops cannot run; empty if they can run.
  const std::string& lacking() const { return lacking_; }

  Outcome fill(Queue& queue, plugrad_buffer* buffer, float value) const;
  Outcome add_one(Queue& queue, plugrad_buffer* buffer) const;  // in place
  // Reads the vector through the queue. Returns whether every element equals value.
  bool holds(Queue& queue, plugrad_buffer* buffer, float value) const;
  uint64_t bytes() const { return count_ * sizeof(float); }

 private:
  Outcome submit(Queue& queue, const plugrad_kernel* kernel, uint32_t opcode,
                 std::initializer_list<plugrad_view> views) const;
  plugrad_view view(plugrad_buffer* buffer) const { return vector_view(buffer, static_cast<int64_t>(count_)); }

  Session& session_;
  uint64_t count_;
  const plugrad_kernel *fill_, *add_;
  std::string lacking_;
};

// A GATHER of one element with an index out of range.
class BadGather {
 public:
  BadGather(Session& session, Queue& queue);
  bool supported() const { return kernel_; }
  Outcome submit(Queue& queue) const;

 private:
  plugrad_view view(uint64_t offset, uint8_t dtype, int64_t count) const;
  Session& session_;
  const plugrad_kernel* kernel_;
  Block block_;
};

// Returns null if the plugin does not offer lists.
const plugrad_lists* offered_lists(const Session& session);
// Whether all required functions of the extension are present.
bool is_whole(const plugrad_lists& lists);

}  // namespace plugrad::conformance
