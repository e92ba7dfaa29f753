// Trials: problems laid out in device memory, run, and compared.
#pragma once
#include <sdk/conformance/arrangement.hpp>
#include <sdk/conformance/image.hpp>
#include <sdk/conformance/tally.hpp>

#include <deque>

namespace plugrad::conformance {

// A problem in an arrangement. The problem's values are the values read by the kernel through its views.
struct Trial {
  Problem problem;
  Arrangement arrangement;
  std::vector<Shape> strides;  // per operand
  std::vector<uint16_t> layouts;
  uint16_t layout = 0;  // the class
  std::vector<plugrad_view> views;
  std::vector<const plugrad_view*> pointers;
  uint64_t workspace_offset = 0, workspace_bytes = 0;
  Outcome outcome;
  bool changed = false;  // run wrote to the host's views or attributes

  const Array& operand(int k) const {
    const int outputs = static_cast<int>(problem.outputs.size());
    return k < outputs ? problem.outputs[k] : problem.inputs[k - outputs];
  }
};

// The layout bits of a view in memory.
uint16_t layout_of(const Shape& shape, const Shape& strides, bool unaligned);
Trial laid_out(const OpRow& row, const Question& question, const Problem& problem, const Arrangement& arrangement,
               uint64_t alignment);

// Runs trials of a kernel. Outputs, inputs and workspaces occupy three buffers. The buffers are uploaded and downloaded
// whole.
class Batch {
 public:
  Batch(Device& device, Queue& queue, const OpRow& row, const Question& question, const plugrad_kernel* kernel);
  ~Batch();  // waits, so that no submission uses a freed buffer
  Batch(const Batch&) = delete;
  void add(Trial trial);
  bool empty() const { return trials_.empty(); }

  // Uploads, submits all, waits and downloads. Returns the result of the last wait, including DEVICE_ERROR.
  Outcome run(plugrad_failure* failure = nullptr);
  // Submits the first trial again and again for a moment. Returns the seconds of a call, with its share of a wait; the best
  // of some rounds. Throws Breach if the device declines the trial or fails.
  double seconds_of_a_call();
  // Compares every output and every byte outside the outputs. Returns how many trials run declined.
  int verify(Tally& tally, const std::string& title);
  // For failed ops: checks only that nothing but outputs was written.
  void verify_surroundings(Tally& tally, const std::string& title) const;

  const std::deque<Trial>& trials() const { return trials_; }
  std::vector<Array> results(const Trial& trial) const;

 private:
  void place(Trial& trial, int index);
  void prepare();  // once: sets the views' buffers and allocates workspaces
  void submit(Trial& trial);
  plugrad_op op_of(const Trial& trial) const;
  // The values allowed to this device by ops.md.
  Expectations expected_of(const Trial& trial) const;
  // The same if the device takes denormal operands as 0.
  Expectations flushed_of(const Trial& trial) const;
  bool compare(const Trial& trial, Tally& tally, const std::string& title) const;

  Device& device_;
  Queue& queue_;
  const OpRow& row_;
  const Question& question_;
  const plugrad_kernel* kernel_;
  Image outputs_, inputs_, workspaces_;
  std::deque<Trial> trials_;
  bool prepared_ = false;
};

// Describes the trial, for a line about a failure.
std::string text_of(const Trial& trial);

}  // namespace plugrad::conformance
