// plugrad run.
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/io/npy.hpp>
#include <plugrad/io/saved_model.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/error.hpp>
#include <tools/plugrad/json.hpp>
#include <tools/plugrad/options.hpp>
#include <tools/plugrad/run_onnx.hpp>

#include <iostream>

namespace plugrad::tool {
namespace {

std::vector<Json::Member> described(const ModelTensor& tensor) {
  const std::vector<int64_t> shape(tensor.shape.begin(), tensor.shape.end());
  return {{"dtype", dtype_name(tensor.dtype)}, {"shape", shape}};
}

std::string text_of(const ModelTensor& tensor) { return tensor.shape.text() + " " + dtype_name(tensor.dtype); }

// The inputs from files, in their order.
std::vector<Tensor> read_inputs(const SavedModel& model, const std::vector<std::string>& paths) {
  const size_t count = model.inputs().size();
  if (paths.size() != count) {
    std::string wanted;
    for (size_t i = 0; i < count; ++i) wanted += (i ? ", " : "") + text_of(model.inputs()[i]);
    throw UsageError("the model takes " + std::to_string(count) + " inputs (" + wanted + "), and --input was given " +
                     std::to_string(paths.size()) + " times");
  }
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < count; ++i) {
    const Tensor read = io::read_npy(paths[i], model.device());
    const ModelTensor& wanted = model.inputs()[i];
    if (read.shape() != wanted.shape || read.dtype() != wanted.dtype)
      throw Error(Code::invalid, "'" + paths[i] + "' is " + text_of({read.dtype(), read.shape()}) + ", and input " +
                                     std::to_string(i) + " of the model is " + text_of(wanted));
    inputs.push_back(read);
  }
  return inputs;
}

// NumPy has no bf16.
Tensor for_numpy(const Tensor& x) { return x.dtype() == DType::bf16 ? cast(x, DType::f32) : x; }

Json list_of(const std::vector<ModelTensor>& tensors) {
  std::vector<Json> list;
  for (const ModelTensor& each : tensors) list.push_back(Json::object(described(each)));
  return list;
}

int describe(const SavedModel& model, bool json) {
  if (json) {
    const Json all = Json::object({{"inputs", list_of(model.inputs())}, {"outputs", list_of(model.outputs())}});
    std::cout << all.pretty() << "\n";
    return 0;
  }
  for (size_t i = 0; i < model.inputs().size(); ++i)
    std::cout << "input " << i << ": " << text_of(model.inputs()[i]) << "\n";
  for (size_t i = 0; i < model.outputs().size(); ++i)
    std::cout << "output " << i << ": " << text_of(model.outputs()[i]) << "\n";
  return 0;
}

int run(const SavedModel& model, const Options& options, const std::string& device) {
  const std::vector<Tensor> outputs = model(read_inputs(model, options.texts("input")));
  const std::optional<std::string> prefix = options.text("output");
  const bool json = options.flag("json");
  std::vector<Json> list;
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::vector<Json::Member> one = described(model.outputs()[i]);
    if (prefix) {
      const std::string path = *prefix + "-" + std::to_string(i) + ".npy";
      io::write_npy(path, for_numpy(outputs[i]));
      one.emplace_back("file", path);
      if (!json) std::cout << "output " << i << " is in " << path << "\n";
    } else if (!json) {
      std::cout << "output " << i << ", " << text_of(model.outputs()[i]) << ":\n" << outputs[i] << "\n";
    }
    list.push_back(Json::object(one));
  }
  if (json) std::cout << Json::object({{"device", device}, {"outputs", list}}).pretty() << "\n";
  return 0;
}
}  // namespace

int run_command(const Arguments& arguments) {
  Options options("plugrad run");
  options.add_text("device", "NAME", "where to run it (the default device)");
  options.add_texts("input", "[NAME=]FILE.npy", "an input; once for each, in their order; ONNX models also by name");
  options.add_texts("bind", "NAME=VALUE", "ONNX: an input that never changes, a number or a FILE.npy");
  options.add_text("save", "FILE", "ONNX: also writes a saved model for the shapes of these inputs");
  options.add_text("output", "PREFIX", "writes PREFIX-0.npy, ... instead of printing");
  options.add_flag("describe", "prints what the model takes and gives, and does not run it");
  options.parse(arguments, 1);
  if (options.flag("help")) {
    options.print_help(
        {"plugrad run FILE [--device NAME] [--input FILE.npy ...] [--output PREFIX]",
         "Runs a saved model, a compiled forward pass that step.save(FILE) wrote, or an ONNX model, on any device.",
         "  plugrad run model.plugrad --describe\n"
         "  plugrad run model.plugrad --device cpu --input x.npy --output y\n"
         "  plugrad run model.onnx --input pixels=x.npy --save model.plugrad\n"});
    return 0;
  }
  if (options.words().empty()) throw UsageError("the model's file is missing: plugrad run FILE (see plugrad run --help)");
  const std::optional<std::string> name = options.text("device");
  const Device device = name ? Device(*name) : default_device();
  const std::string path = options.words()[0];
  if (path.ends_with(".onnx")) return run_onnx(path, options, device);
  if (!options.texts("bind").empty() || options.text("save")) throw UsageError("--bind and --save are for ONNX models");
  const SavedModel model = load_model(path, device);
  if (options.flag("describe")) return describe(model, options.flag("json"));
  return run(model, options, device.name());
}

}  // namespace plugrad::tool
