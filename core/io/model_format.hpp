// A saved model in memory, between its file and its ops.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/io/saved_model.hpp>
#include <plugrad/sdk/ops.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plugrad::io {

inline constexpr int64_t kModelVersion = 1;
inline constexpr const char* kModelKey = "plugrad.program";

// Elements of a memory of one dtype: offset and strides count elements. Strides of inputs may be negative.
struct ModelView {
  uint32_t memory = 0;
  int64_t offset = 0;
  Shape shape, strides;
};

// An input of a call: a view, or a number.
struct ModelInput {
  std::optional<ModelView> view;
  Number number = 0;
};

// An op's attributes by name: numbers, and lists of numbers.
struct ModelAttributes {
  std::map<std::string, double> numbers;
  std::map<std::string, Shape> lists;
};

struct ModelOp {
  uint32_t opcode = 0;
  std::vector<ModelView> outputs;
  std::vector<ModelInput> inputs;
  ModelAttributes attributes;
};

struct ModelMemory {
  DType dtype = DType::f32;
  int64_t count = 0;   // elements
  std::string weight;  // the name of its tensor; empty if the memory is not a weight
};

struct ModelContents {
  std::vector<ModelMemory> memories;
  std::vector<ModelView> inputs, outputs;  // the inputs are whole memories
  std::vector<ModelOp> ops;
};

std::string text_of(const ModelContents& model);
// Throws the exceptions of `fail`, called with the fault. In the result all references exist, no view leaves its memory, and
// memories are written before they are read.
ModelContents parsed_model(const std::string& text, const std::function<void(const std::string&)>& fail);

ModelAttributes attributes_of(uint32_t opcode, const void* block);

// A model and its weights by memory, each of one axis; undefined for memories that are not weights.
struct StoredModel {
  ModelContents contents;
  std::vector<Tensor> weights;
};
// Throws Error (io_error) as load_model does.
StoredModel read_model(const std::string& path, Device device, bool mmap);
// Writes an ONNX file. Throws Error: unsupported for an op without a counterpart, and for over 2 GiB; io_error for a file
// that cannot be written.
void write_onnx(const StoredModel& model, const std::string& path);

// --- Running ops.

// Returns whether a model may call the op: a function computes it on any device.
// Of other ops with several results, a model may read only the first.
constexpr bool returns_all_results(uint32_t opcode) {
  return opcode == PLUGRAD_OP_MAX_POOL || opcode == PLUGRAD_OP_BATCH_NORM;
}
// A saved model is a forward pass. It has no gradients, updates or random numbers, and none of these ops of training.
inline constexpr uint32_t kUnsaved[] = {PLUGRAD_OP_CROSS_ENTROPY, PLUGRAD_OP_CONVOLUTION_WEIGHT_GRAD};
constexpr bool is_forward_op(const OpInfo& op) {
  if (op.shape == OpShape::random || op.shape == OpShape::update) return false;
  for (const OpInfo& each : kOps)
    if (each.gradient == op.opcode) return false;
  for (const uint32_t each : kUnsaved)
    if (each == op.opcode) return false;
  return true;
}
bool is_saved_op(uint32_t opcode);
// Returns the results of an op; results beyond the first may be undefined. before: the contents of in-out outputs.
std::vector<Tensor> run_op(const ModelOp& op, const std::vector<ModelMemory>& memories, const std::vector<Tensor>& inputs,
                           const Tensor& before, Device device);

}  // namespace plugrad::io
