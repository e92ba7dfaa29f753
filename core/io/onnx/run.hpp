// Executes a model's nodes. Values below the level data are computed outside of recordings and kept, so that a recording
// holds only what depends on the inputs' elements.
#pragma once
#include <core/io/onnx/file_values.hpp>
#include <core/io/onnx/graph.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::io::onnx {

// What a set of input shapes determines, in the order of the execution. Runs only read a complete plan.
struct Plan {
  std::vector<Values> results;
  std::vector<Tensor> made;
  std::vector<std::string> reads;  // nodes that read elements which only the run knows, so that nothing can be recorded
  bool complete = false;
};

struct LoadedModel {
  LoadedModel(const std::string& path, Device where, Weights how);
  OpenedFile file;
  Model model;
  Device device;
  Weights weights;
  FileValues values;  // of `model`
};

class Run {
 public:
  // recording: elements may not be read, and the plan is complete.
  Run(LoadedModel& loaded, Plan& plan, bool recording);  // only an incomplete plan changes

  Device device() const { return loaded_.device; }
  const OpenedFile& file() const { return loaded_.file; }

  void set(ValueId id, Value value) { frame_[static_cast<size_t>(id)] = std::move(value); }
  // Executes the nodes, and returns the outputs.
  Values run(const Graph& graph);

  // Returns what was kept for this place of the execution, or keeps what `make` returns.
  Tensor made(const std::function<Tensor()>& make);
  Tensor prepared(const Node& node, const std::function<Tensor()>& make);
  // Notes that a node reads elements of the level data. Throws Error (unsupported) inside a recording.
  void note_read(const Node& node);

 private:
  Value get(ValueId id);
  void execute(const Node& node);
  Values results(const Node& node, Values inputs);
  Values computed(const Node& node, Values inputs, bool constant);

  LoadedModel& loaded_;
  Plan& plan_;
  const bool recording_;
  std::vector<Value> frame_;
  size_t next_result_ = 0, next_made_ = 0;
  std::vector<size_t> next_prepared_;
};

}  // namespace plugrad::io::onnx
