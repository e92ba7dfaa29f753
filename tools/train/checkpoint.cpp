#include <plugrad/autograd/autograd.hpp>
#include <plugrad/io/safetensors.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/generator.hpp>
#include <tools/train/trainer.hpp>

#include <charconv>
#include <map>
#include <set>

namespace plugrad::training {
namespace {

constexpr const char* kFormat = "plugrad training 1";
constexpr int64_t kEvaluationColumns = 3;  // step, loss, accuracy

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw Error(Code::io_error, "[" + path + "] " + what);
}

const std::string& metadata_text(const std::string& path, const io::Metadata& metadata, const std::string& key) {
  const auto entry = metadata.find(key);
  if (entry == metadata.end()) fail(path, "is not a checkpoint of plugrad train: its metadata have no '" + key + "'");
  return entry->second;
}

template <class T> T metadata_number(const std::string& path, const io::Metadata& metadata, const std::string& key) {
  const std::string& text = metadata_text(path, metadata, key);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < T{0}) {
    fail(path, "is not a checkpoint of plugrad train: its " + key + " is '" + text + "'");
  }
  return value;
}

// The shortest text that converts back to the same number.
std::string exact_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

void check_format(const std::string& path, const io::Metadata& metadata) {
  const std::string& format = metadata_text(path, metadata, "format");
  if (format != kFormat) fail(path, "has the format '" + format + "', expected '" + kFormat + "'");
}

std::vector<nn::NamedTensor> prefixed(const std::string& prefix, std::vector<nn::NamedTensor> tensors) {
  for (nn::NamedTensor& entry : tensors) entry.name = prefix + entry.name;
  return tensors;
}

std::string kind(const Tensor& tensor) { return std::string(dtype_name(tensor.dtype())) + " " + tensor.shape().text(); }

// Throws unless the file has each wanted tensor in its shape, and no others with that prefix.
void check_tensors(const std::string& path, const io::Safetensors& file, const std::vector<nn::NamedTensor>& wanted,
                   const std::string& prefix) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : wanted) {
    names.insert(name);
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end())
      fail(path, "belongs to a different model: it has no tensor " + name + ", expected " + kind(tensor));
    if (kind(found->second) != kind(tensor)) {
      fail(path,
           "belongs to a different model: tensor " + name + " is " + kind(found->second) + ", expected " + kind(tensor));
    }
  }
  for (const auto& [name, tensor] : file.tensors) {
    if (name.starts_with(prefix) && !names.contains(name)) {
      fail(path, "belongs to a different model: this one has no tensor " + name + ", " + kind(tensor));
    }
  }
}

void copy_into(const std::vector<nn::NamedTensor>& targets, const io::Safetensors& file) {
  const NoGrad unrecorded;
  for (nn::NamedTensor target : targets) target.tensor.copy_(file.tensors.at(target.name));
}

std::vector<double> flatten(const std::vector<Evaluation>& evaluations) {
  std::vector<double> values;
  for (const Evaluation& row : evaluations) {
    values.insert(values.end(), {static_cast<double>(row.step), row.loss, row.accuracy});
  }
  return values;
}

History read_history(const std::string& path, const io::Safetensors& file, int64_t step) {
  const auto losses = file.tensors.find("history.losses"), evaluations = file.tensors.find("history.evaluations");
  if (losses == file.tensors.end() || evaluations == file.tensors.end() || losses->second.dtype() != DType::f32 ||
      losses->second.shape() != Shape{step} || evaluations->second.dtype() != DType::f64 ||
      evaluations->second.rank() != 2 || evaluations->second.size(1) != kEvaluationColumns) {
    fail(path, "is not a checkpoint of plugrad train: its history does not have " + std::to_string(step) + " steps");
  }
  History history{losses->second.to_vector<float>(), {}};
  const std::vector<double> rows = evaluations->second.to_vector<double>();
  for (size_t i = 0; i < rows.size(); i += kEvaluationColumns) {
    history.evaluations.push_back({static_cast<int64_t>(rows[i]), rows[i + 1], rows[i + 2]});
  }
  return history;
}

}  // namespace

void Trainer::save(const std::string& path) const {
  std::map<std::string, Tensor> tensors;
  for (auto& [name, tensor] : prefixed("model.", network_->named_parameters())) tensors[name] = tensor;
  for (auto& [name, tensor] : prefixed("optimizer.", optimizer_->state())) tensors[name] = tensor;
  const auto rows = static_cast<int64_t>(history_.evaluations.size());
  tensors["history.losses"] = Tensor::from(history_.losses, {step()}, device_);
  tensors["history.evaluations"] = Tensor::from(flatten(history_.evaluations), {rows, kEvaluationColumns}, device_);
  const GeneratorState generator = generator_state(device_);
  const io::Metadata metadata = {{"format", kFormat},
                                 {"config", config_to_json(config_)},
                                 {"device", device_.name()},
                                 {"step", std::to_string(step())},
                                 {"epoch", std::to_string(epoch())},
                                 {"position", std::to_string(step() % steps_per_epoch() * config_.batch)},
                                 {"samples", std::to_string(train_->size())},
                                 {"outputs", std::to_string(outputs_)},
                                 {"mean", exact_text(normalisation_.mean)},
                                 {"deviation", exact_text(normalisation_.deviation)},
                                 {"generator_seed", std::to_string(generator.seed)},
                                 {"generator_offset", std::to_string(generator.offset)}};
  io::write_safetensors(path, tensors, metadata);
}

void Trainer::load(const std::string& path) {
  const io::Safetensors file = io::read_safetensors(path, device_);
  check_format(path, file.metadata);
  const auto parameters = prefixed("model.", network_->named_parameters());
  check_tensors(path, file, parameters, "model.");
  check_tensors(path, file, prefixed("optimizer.", optimizer_->state()), "optimizer.");
  const auto samples = metadata_number<int64_t>(path, file.metadata, "samples");
  if (samples != train_->size()) {
    fail(path,
         "was trained on " + std::to_string(samples) + " samples, but this data set has " + std::to_string(train_->size()));
  }
  const auto steps = metadata_number<int64_t>(path, file.metadata, "step");
  const GeneratorState generator{metadata_number<uint64_t>(path, file.metadata, "generator_seed"),
                                 metadata_number<uint64_t>(path, file.metadata, "generator_offset")};
  History history = read_history(path, file, steps);
  std::vector<nn::NamedTensor> state = optimizer_->state();
  for (nn::NamedTensor& entry : state) entry.tensor = file.tensors.at("optimizer." + entry.name);
  optimizer_->load_state(state, steps);
  schedule_->set_epoch(steps);
  copy_into(parameters, file);
  set_generator_state(device_, generator);
  history_ = std::move(history);
}

void load_network(const std::string& path, const nn::Sequential& network, Device device) {
  const io::Safetensors file = io::read_safetensors(path, device);
  const auto parameters = prefixed("model.", network.named_parameters());
  check_tensors(path, file, parameters, "model.");
  copy_into(parameters, file);
}

CheckpointOrigin read_origin(const std::string& path) {
  const io::Metadata metadata = io::read_safetensors_header(path).metadata;
  check_format(path, metadata);
  CheckpointOrigin origin;
  try {
    origin.config = config_from_json(metadata_text(path, metadata, "config"));
  } catch (const Error& error) {
    fail(path, std::string("is not a checkpoint of plugrad train: its config ") + error.what());
  }
  origin.device = metadata_text(path, metadata, "device");
  origin.step = metadata_number<int64_t>(path, metadata, "step");
  origin.outputs = metadata_number<int64_t>(path, metadata, "outputs");
  origin.normalisation = {metadata_number<double>(path, metadata, "mean"),
                          metadata_number<double>(path, metadata, "deviation")};
  return origin;
}

}  // namespace plugrad::training
