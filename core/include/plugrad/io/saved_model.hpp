// Compiled functions in files: a forward pass, recorded once, runs anywhere without the program that made it.
//
// A file is safetensors: the weights as tensors, and as metadata the calls, in JSON. It names ops of ops.def, not kernels,
// so any device that trains networks runs it, with ops composed of others where it has to.
#pragma once
#include <plugrad/steps/compile.hpp>

#include <memory>
#include <string>
#include <vector>

namespace plugrad {

// Writes the one recording of a compiled function. Its arguments must be dense and share no memory. Throws Error (invalid)
// for a function that has no recording or several, does more than a forward pass, or runs an op without a meaning elsewhere
// (a private one, a gradient, a random one); and Error (io_error).
PLUGRAD_API void save_model(const CompiledStep& step, const std::string& path);
template <class F> void save_model(const Compiled<F>& function, const std::string& path) {
  save_model(function.step(), path);
}

// An input or a result of a model.
struct ModelTensor {
  DType dtype = DType::f32;
  Shape shape;
};

// A model on one device. Calls may come from any thread, and wait for each other.
class PLUGRAD_API SavedModel {
 public:
  SavedModel(SavedModel&&) noexcept;
  SavedModel& operator=(SavedModel&&) noexcept;
  ~SavedModel();

  const std::vector<ModelTensor>& inputs() const;
  const std::vector<ModelTensor>& outputs() const;
  Device device() const;
  // The results. The first call records, later ones replay. Throws Error (invalid) for inputs of other shapes, dtypes or
  // devices than inputs() says, and for a model whose ops do not fit each other.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
  std::string explain() const;

 private:
  friend PLUGRAD_API SavedModel load_model(const std::string& path, Device device);
  struct State;
  explicit SavedModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Reads a model, with its weights to the device. Throws Error (io_error) for a file that is missing, damaged, of a later
// version, or needs more memory than the device has.
PLUGRAD_API SavedModel load_model(const std::string& path, Device device = default_device());

}  // namespace plugrad
