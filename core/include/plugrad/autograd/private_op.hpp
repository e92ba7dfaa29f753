// Ops of a plugin's own, called by name.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace plugrad {

struct PrivateOpInfo {
  std::string name;  // "scale_add"
  uint32_t opcode;
  int outputs, inputs;
  uint32_t attribute_bytes;  // of the op's struct of attributes; 0: the op has no attributes
};

// Returns the private ops of a device's plugin. Throws Error (internal) if the plugin's list breaks the contract.
PLUGRAD_API std::vector<PrivateOpInfo> private_ops(Device device);

struct PrivateResult {
  Shape shape;
  DType dtype;
};

struct PrivateOpOptions {
  // A flat struct, as the plugin documents it. The call writes its size into its first four bytes.
  std::vector<std::byte> attributes = {};
  // Returns the gradient of each input (undefined: 0) from the results' gradients. Without it, results have no graph.
  std::function<std::vector<Tensor>(const std::vector<Tensor>& grads, const std::vector<Tensor>& inputs,
                                    const std::vector<Tensor>& results)>
      gradient = {};
};

// Runs a private op of the plugin of the inputs' device, and returns its results, dense and of the given forms. Profilers
// and compiled steps treat it as an ordinary op. Throws Error: (invalid) if the plugin has no op of this name, or if inputs,
// results or attributes do not fit it; (unsupported) if it has no kernel for these dtypes; and the kernel's own errors.
PLUGRAD_API std::vector<Tensor> private_op(const std::string& name, const std::vector<Tensor>& inputs,
                                           const std::vector<PrivateResult>& results, const PrivateOpOptions& options = {});

// Returns a struct as attributes.
template <class T> std::vector<std::byte> attribute_bytes(const T& attributes) {
  const auto bytes = std::as_bytes(std::span(&attributes, 1));
  return {bytes.begin(), bytes.end()};
}

}  // namespace plugrad
