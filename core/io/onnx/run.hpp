// Executes a model's nodes. Values below the level data are computed outside of recordings and kept, so that a recording
// holds only what depends on the inputs' elements.
#pragma once
#include <core/io/onnx/file_values.hpp>
#include <core/io/onnx/graph.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::io::onnx {

// What a set of input shapes determines, in the order of the execution.
struct Plan {
  std::vector<Values> results;
  std::vector<Tensor> made;
  std::vector<std::string> reads;  // nodes that read elements which only the run knows, so that nothing can be recorded
};

struct LoadedModel {
  LoadedModel(const std::string& path, Device where, bool mmap);
  OpenedFile file;
  Model model;
  Device device;
  bool mmap;
  FileValues values;  // of `model`
};

class Run {
 public:
  // By a plan of an earlier run. recording: elements may not be read.
  Run(LoadedModel& loaded, const Plan& plan, bool recording)
      : loaded_(loaded), plan_(plan), recording_(recording), frame_(loaded.model.values),
        next_prepared_(loaded.model.nodes) {}
  // The first run for a set of shapes: it makes the plan.
  Run(LoadedModel& loaded, Plan& made) : Run(loaded, made, false) { made_ = &made; }

  Device device() const { return loaded_.device; }
  const OpenedFile& file() const { return loaded_.file; }
  const Plan& plan() const { return plan_; }

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
  const Plan& plan_;
  Plan* made_ = nullptr;  // null: the plan is an earlier run's
  const bool recording_;
  std::vector<Value> frame_;
  size_t next_result_ = 0, next_made_ = 0;
  std::vector<size_t> next_prepared_;
};

}  // namespace plugrad::io::onnx
