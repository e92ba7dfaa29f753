// ONNX models: a file runs on any device, and its calls are recorded like a compiled function's.
//
// Operators of ONNX's opsets 7 to 28, most of older opsets, and the common ones of com.microsoft are mapped to plugrad's
// functions. Values that depend on constants and on the shapes of the inputs alone are computed once for a set of shapes;
// control flow that they decide costs nothing afterwards. Types without a dtype are carried in wider ones: uint16 in i32,
// uint32 and uint64 in i64 (with the bits of uint64), integers of 2 and 4 bits in i8 and u8.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace plugrad::io {

// An input or an output of a model, as the file declares it.
struct OnnxDeclaration {
  struct Extent {
    std::optional<int64_t> value;
    std::string symbol;  // of an extent without a value; may be empty
  };
  std::string name;
  std::string type;                          // "float32", "sequence of int64"
  std::optional<DType> dtype;                // of a tensor
  std::optional<std::vector<Extent>> shape;  // nothing where the file states no shape
  PLUGRAD_API std::string text() const;      // "pixels: float32 (batch, 3, 224, 224)"
};

// The value of an input or an output: an optional without a value, a tensor, or a sequence of tensors.
using OnnxValue = std::variant<std::monostate, Tensor, std::vector<Tensor>>;

struct OnnxOptions {
  Device device = default_device();
  // Inputs with values that never change. They may decide shapes and branches, which other inputs may not do in a
  // recording; calls leave them out.
  std::map<std::string, Tensor> bind = {};
  // Whether calls are recorded and replayed. Else each call runs op by op.
  bool record = true;
  // The most calls that run at once, from several threads; further calls wait. Each lane has its own recordings and
  // temporary memory, the weights are shared. At least 1.
  size_t lanes = 1;
  // The most bytes of the device's memory for calls: for their values and results until they return, and for what is kept to
  // replay them. Weights, and what is made of constants alone, do not count. A call that needs more drops what is kept to
  // replay, and then throws Error (out_of_memory). 0: as many as the device has.
  uint64_t memory = 0;
  // Whether large weights are pages of the file, on devices with the host's memory, where the file has them aligned to their
  // dtype; else they are copied. Processes share the pages, and the system may drop them. A product of one or two rows with
  // such a weight may be slower, if the file does not have it at a multiple of 64 bytes. The file must stay as it is:
  // replace it by renaming another, since a file that is cut ends the process by SIGBUS.
  bool mmap = true;
};

// A model on one device. Calls may come from any thread.
class PLUGRAD_API OnnxModel {
 public:
  OnnxModel(OnnxModel&&) noexcept;
  OnnxModel& operator=(OnnxModel&&) noexcept;
  ~OnnxModel();

  // Inputs without initial values and without bound ones, in the order of the file.
  const std::vector<OnnxDeclaration>& inputs() const;
  const std::vector<OnnxDeclaration>& outputs() const;
  Device device() const;

  // Returns the outputs. The first call for a set of shapes runs op by op, the second records, later calls replay the same
  // bits. Throws Error: invalid for inputs that differ from inputs() in number, dtype, fixed extents or device, for symbolic
  // extents with two values, and for a node whose inputs do not fit; unsupported for a form of an operator that is not
  // implemented. Errors of nodes name the node.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
  // As above, for models with sequences and optional values. Outputs that are not tensors are allowed here alone.
  std::vector<OnnxValue> run(const std::vector<OnnxValue>& inputs) const;
  std::vector<OnnxValue> run(const std::map<std::string, OnnxValue>& inputs) const;

  // Writes a saved model, plugrad/io/saved_model.hpp, for inputs of these shapes. Throws Error as save_model does, and
  // (unsupported) for a model that cannot be recorded with them.
  void save(const std::string& path, const std::vector<Tensor>& inputs) const;
  // Lists the recordings, and says which calls run op by op, and why.
  std::string explain() const;

 private:
  friend PLUGRAD_API OnnxModel load_onnx(const std::string& path, const OnnxOptions& options);
  struct State;
  explicit OnnxModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Reads a model. Its weights stay in the file until a call needs them; the file is kept open. Throws Error: io_error for a
// file that is missing, damaged or not ONNX, and for external data outside the file's folder, cut short or behind a link;
// unsupported with a list of all operators that are not implemented and of their nodes; invalid for a bound name that is not
// an input.
PLUGRAD_API OnnxModel load_onnx(const std::string& path, const OnnxOptions& options = {});

// Writes a saved model, plugrad/io/saved_model.hpp, as an ONNX model of opset 20 for the same shapes. device: where
// the weights are read. Weights of few bits are widened. Throws Error: io_error as load_model does, and for a file that
// cannot be written; unsupported for an op without a counterpart in ONNX, and for models over 2 GiB.
PLUGRAD_API void export_onnx(const std::string& model, const std::string& path, Device device = default_device());

// Reads a value from a file of its own, as ONNX's test data hold inputs and outputs: a TensorProto, SequenceProto or
// OptionalProto, as the declaration's type says. Throws Error (io_error) for another format, and (unsupported) for element
// types without a dtype.
PLUGRAD_API OnnxValue read_onnx_value(const std::string& path, const OnnxDeclaration& declaration,
                                      Device device = default_device());

}  // namespace plugrad::io
