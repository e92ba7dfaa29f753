#include <plugrad/autograd/autograd.hpp>
#include <plugrad/io/npy.hpp>
#include <plugrad/io/onnx.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/error.hpp>
#include <tools/plugrad/run_onnx.hpp>

#include <charconv>
#include <iostream>

namespace plugrad::tool {
namespace {
using io::OnnxDeclaration;
using io::OnnxModel;

// NAME=TEXT as its two parts; the name is empty where the text has none.
std::pair<std::string, std::string> named(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || text.substr(0, equals).find('/') != text.npos) return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// A number in the declared dtype, or a file.
Tensor number_or_file(const std::string& text, DType dtype, Device device) {
  double real = 0;
  int64_t integer = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, integer);
  if (error == std::errc() && stop == end) return scalar(integer, dtype, device);
  const auto [last, failure] = std::from_chars(text.data(), end, real);
  if (failure == std::errc() && last == end) return scalar(real, dtype, device);
  return io::read_npy(text, device);
}

std::map<std::string, Tensor> bound_inputs(const std::string& path, const Options& options, Device device) {
  std::map<std::string, Tensor> bound;
  const std::vector<std::string> texts = options.texts("bind");
  if (texts.empty()) return bound;
  const OnnxModel model = io::load_onnx(path, {.device = device});
  for (const std::string& each : texts) {
    const auto [name, value] = named(each);
    if (name.empty()) throw UsageError("--bind " + each + ": NAME=NUMBER or NAME=FILE.npy is expected");
    DType dtype = DType::f32;
    for (const OnnxDeclaration& input : model.inputs())
      if (input.name == name) dtype = input.dtype.value_or(dtype);
    bound[name] = number_or_file(value, dtype, device);
  }
  return bound;
}

std::vector<Tensor> given_inputs(const OnnxModel& model, const std::vector<std::string>& texts) {
  const auto& inputs = model.inputs();
  std::string wanted;
  for (const OnnxDeclaration& each : inputs) wanted += "\n  " + each.text();
  std::vector<Tensor> found(inputs.size());
  size_t next = 0;
  for (const std::string& text : texts) {
    const auto [name, path] = named(text);
    size_t at = name.empty() ? next++ : 0;
    while (!name.empty() && at < inputs.size() && inputs[at].name != name) ++at;
    if (at >= inputs.size()) throw UsageError("--input " + text + " is not an input of the model; it takes" + wanted);
    found[at] = io::read_npy(path, model.device());
  }
  for (const Tensor& each : found)
    if (!each.defined())
      throw UsageError("the model takes " + std::to_string(inputs.size()) + " inputs, and --input was given " +
                       std::to_string(texts.size()) + " times; it takes" + wanted);
  return found;
}

Json described(const OnnxDeclaration& each) {
  std::vector<Json> extents;
  if (each.shape)
    for (const auto& extent : *each.shape) extents.push_back(extent.value ? Json(*extent.value) : Json(extent.symbol));
  std::vector<Json::Member> members{{"name", each.name}, {"type", each.type}};
  if (each.shape) members.emplace_back("shape", extents);
  return Json::object(members);
}

int describe(const OnnxModel& model, bool json) {
  if (!json) {
    for (const OnnxDeclaration& each : model.inputs()) std::cout << "input " << each.text() << "\n";
    for (const OnnxDeclaration& each : model.outputs()) std::cout << "output " << each.text() << "\n";
    return 0;
  }
  const auto list = [](const std::vector<OnnxDeclaration>& all) {
    std::vector<Json> texts;
    for (const OnnxDeclaration& each : all) texts.push_back(described(each));
    return texts;
  };
  std::cout << Json::object({{"inputs", list(model.inputs())}, {"outputs", list(model.outputs())}}).pretty() << "\n";
  return 0;
}
}  // namespace

int run_onnx(const std::string& path, const Options& options, Device device) {
  const OnnxModel model = io::load_onnx(path, {.device = device, .bind = bound_inputs(path, options, device)});
  const bool json = options.flag("json");
  if (options.flag("describe")) return describe(model, json);
  const std::vector<Tensor> inputs = given_inputs(model, options.texts("input"));
  if (const std::optional<std::string> file = options.text("save")) {
    model.save(*file, inputs);
    if (!json) std::cout << "the model for these shapes is in " << *file << "\n";
  }
  const std::vector<Tensor> outputs = model(inputs);
  const std::optional<std::string> prefix = options.text("output");
  std::vector<Json> list;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = model.outputs()[i].name;
    const Shape shape = outputs[i].shape();
    std::vector<Json::Member> one{{"name", name},
                                  {"dtype", dtype_name(outputs[i].dtype())},
                                  {"shape", std::vector<int64_t>(shape.begin(), shape.end())}};
    if (prefix) {
      const std::string file = *prefix + "-" + std::to_string(i) + ".npy";
      io::write_npy(file, outputs[i].dtype() == DType::bf16 ? cast(outputs[i], DType::f32) : outputs[i]);
      one.emplace_back("file", file);
      if (!json) std::cout << "output " << name << " is in " << file << "\n";
    } else if (!json) {
      std::cout << "output " << name << ", " << shape.text() << " " << dtype_name(outputs[i].dtype()) << ":\n"
                << outputs[i] << "\n";
    }
    list.push_back(Json::object(one));
  }
  if (json) std::cout << Json::object({{"device", device.name()}, {"outputs", list}}).pretty() << "\n";
  return 0;
}

}  // namespace plugrad::tool
