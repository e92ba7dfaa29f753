// Compiled functions in files: a forward pass, recorded once, runs anywhere without its original program.
//
// A file is safetensors: the weights as tensors, and as metadata the calls, in JSON. It names ops of ops.def, not kernels,
// so any device for training networks runs it, with composed ops where necessary.
#pragma once
#include <plugrad/steps/compile.hpp>

#include <memory>
#include <string>
#include <vector>

namespace plugrad {

// Writes the only recording of a compiled function; a path that ends in .onnx gets an ONNX model of opset 20, with inputs
// input0, input1, .. and outputs output0, output1, .. of these shapes. Its arguments must be dense and share no memory.
// Throws Error (invalid) for a function without a recording or with several recordings, for a function that does more than
// a forward pass, and for an op without a meaning elsewhere (a private op, a gradient, random numbers). Throws Error
// (io_error) if the file cannot be written, and as export_onnx does for an ONNX model.
PLUGRAD_API void save_model(const CompiledStep& step, const std::string& path);
template <class F> void save_model(const Compiled<F>& function, const std::string& path) {
  save_model(function.step(), path);
}

// An input or a result of a model.
struct ModelTensor {
  DType dtype = DType::f32;
  Shape shape;
};

// A model on one device. Calls may come from any thread, and run one at a time.
class PLUGRAD_API SavedModel {
 public:
  SavedModel(SavedModel&&) noexcept;
  SavedModel& operator=(SavedModel&&) noexcept;
  ~SavedModel();

  const std::vector<ModelTensor>& inputs() const;
  const std::vector<ModelTensor>& outputs() const;
  Device device() const;
  // Returns the results. The first call records, later calls replay. Throws Error (invalid) for inputs with shapes or dtypes
  // different from inputs(), or on a device different from device(), and for a model with ops that do not fit together.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
  std::string explain() const;

 private:
  friend PLUGRAD_API SavedModel load_model(const std::string& path, Device device, bool mmap);
  struct State;
  explicit SavedModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Reads a model, with its weights to the device. mmap: whether large weights are pages of the file, on devices with the
// host's memory, as OnnxOptions::mmap of plugrad/io/onnx.hpp says; then the file must stay as it is. Throws
// Error (io_error) for a file that is missing, damaged or of a later version, or needs more memory than the device has.
PLUGRAD_API SavedModel load_model(const std::string& path, Device device = default_device(), bool mmap = true);

}  // namespace plugrad
