#include <core/io/onnx/export_graph.hpp>
#include <core/runtime/dispatch/op_table.hpp>
#include <plugrad/io/file.hpp>
#include <plugrad/io/onnx.hpp>
#include <plugrad/runtime/error.hpp>

namespace plugrad::io {
namespace {
using namespace onnx;

constexpr int64_t kExportVersion = 9;  // of the format, for opset 20
constexpr uint64_t kMostFileBytes = (uint64_t{1} << 31) - 1;

uint64_t message_bytes(const ExportedTensor& tensor) {
  return tensor.fields.size() + header_field(9, tensor.raw_bytes()).size() + tensor.raw_bytes();
}

void write_tensor(AtomicFile& file, const ExportedTensor& tensor) {
  file.write(header_field(5, message_bytes(tensor)) + tensor.fields + header_field(9, tensor.raw_bytes()));
  if (!tensor.tensor.defined()) return file.write(tensor.bytes);
  std::vector<char> elements(tensor.raw_bytes());
  tensor.tensor.copy_to_host(elements.data());
  file.write(elements.data(), elements.size());
}
}  // namespace

void write_onnx(const StoredModel& model, const std::string& path) {
  ExportGraph graph(model.contents, model.weights);
  for (size_t i = 0; i < model.contents.ops.size(); ++i) {
    const ModelOp& op = model.contents.ops[i];
    const auto failed = [&](Code code, const std::string& why) {
      return Error(code, "[" + path + "] call " + std::to_string(i) + ", " + op_label(op.opcode) + ": " + why);
    };
    try {
      export_op(graph, op);
    } catch (const Error& error) {
      throw failed(error.code(), error.what());
    } catch (const std::out_of_range&) {
      throw failed(Code::invalid, "an attribute or an operand is missing");
    }
  }
  graph.add_outputs();
  const std::string head = graph.node_fields() + text_field(2, "plugrad"), tail = graph.inputs_and_outputs();
  const std::vector<ExportedTensor> tensors = graph.take_tensors();
  uint64_t bytes = head.size() + tail.size();
  for (const ExportedTensor& each : tensors) bytes += header_field(5, message_bytes(each)).size() + message_bytes(each);
  if (bytes > kMostFileBytes)
    throw Error(Code::unsupported, "[" + path + "] the model has " + std::to_string(bytes >> 20) +
                                       " MiB, and an ONNX file holds at most 2047: save it as a .plugrad file");
  AtomicFile file(path);
  file.write(integer_field(1, kExportVersion) + text_field(2, "plugrad") + header_field(7, bytes) + head);
  for (const ExportedTensor& each : tensors) write_tensor(file, each);
  file.write(tail + text_field(8, text_field(1, "") + integer_field(2, kExportOpset)));
  file.commit();
}

void export_onnx(const std::string& model, const std::string& path, Device device) {
  write_onnx(read_model(model, device, true), path);
}

}  // namespace plugrad::io
