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

// A value from a file, for a message: not all of it if it is long.
std::string shown(const std::string& text) {
  constexpr size_t kMost = 60;
  return "'" + text.substr(0, kMost) + (text.size() > kMost ? "...'" : "'");
}

template <class T> T metadata_number(const std::string& path, const io::Metadata& metadata, const std::string& key) {
  const std::string& text = metadata_text(path, metadata, key);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < T{0}) {
    fail(path, "is not a checkpoint of plugrad train: its " + key + " is " + shown(text));
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
  if (format != kFormat) fail(path, "has the format " + shown(format) + ", expected '" + kFormat + "'");
}

std::vector<nn::NamedTensor> prefixed(const std::string& prefix, std::vector<nn::NamedTensor> tensors) {
  for (nn::NamedTensor& entry : tensors) entry.name = prefix + entry.name;
  return tensors;
}

std::string kind(DType dtype, const Shape& shape) { return std::string(dtype_name(dtype)) + " " + shape.text(); }

// Throws unless the file has each wanted tensor in its shape, and no other tensor with the prefix. Reads no tensor.
void check_tensors(const std::string& path, const io::SafetensorsFile& file, const std::vector<nn::NamedTensor>& wanted,
                   const std::string& prefix) {
  std::set<std::string> names;
  const auto& entries = file.header().tensors;
  for (const auto& [name, tensor] : wanted) {
    names.insert(name);
    const auto found = entries.find(name);
    const std::string expected = kind(tensor.dtype(), tensor.shape());
    if (found == entries.end())
      fail(path, "belongs to a different model: it has no tensor " + name + ", expected " + expected);
    if (const std::string given = kind(found->second.dtype, found->second.shape); given != expected)
      fail(path, "belongs to a different model: tensor " + name + " is " + given + ", expected " + expected);
  }
  for (const auto& [name, entry] : entries) {
    if (name.starts_with(prefix) && !names.contains(name)) {
      fail(path,
           "belongs to a different model: this one has no tensor " + shown(name) + ", " + kind(entry.dtype, entry.shape));
    }
  }
}

// Reads all before it changes any.
void copy_into(const std::vector<nn::NamedTensor>& targets, const io::SafetensorsFile& file, Device device) {
  const NoGrad unrecorded;
  std::vector<Tensor> values;
  for (const nn::NamedTensor& target : targets) values.push_back(file.get(target.name, device));
  for (size_t i = 0; i < targets.size(); ++i) Tensor(targets[i].tensor).copy_(values[i]);
}

std::vector<double> flatten(const std::vector<Evaluation>& evaluations) {
  std::vector<double> values;
  for (const Evaluation& row : evaluations) {
    values.insert(values.end(), {static_cast<double>(row.step), row.loss, row.accuracy});
  }
  return values;
}

History read_history(const std::string& path, const io::SafetensorsFile& file, int64_t step, Device device) {
  const auto& entries = file.header().tensors;
  const auto losses = entries.find("history.losses"), evaluations = entries.find("history.evaluations");
  if (losses == entries.end() || evaluations == entries.end() || losses->second.dtype != DType::f32 ||
      losses->second.shape != Shape{step} || evaluations->second.dtype != DType::f64 ||
      evaluations->second.shape.rank() != 2 || evaluations->second.shape[1] != kEvaluationColumns) {
    fail(path, "is not a checkpoint of plugrad train: its history does not have " + std::to_string(step) + " steps");
  }
  History history{file.get("history.losses", device).to_vector<float>(), {}};
  const std::vector<double> rows = file.get("history.evaluations", device).to_vector<double>();
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
  const io::SafetensorsFile file(path);
  const io::Metadata& metadata = file.header().metadata;
  check_format(path, metadata);
  const auto parameters = prefixed("model.", network_->named_parameters());
  check_tensors(path, file, parameters, "model.");
  check_tensors(path, file, prefixed("optimizer.", optimizer_->state()), "optimizer.");
  const auto samples = metadata_number<int64_t>(path, metadata, "samples");
  if (samples != train_->size()) {
    fail(path,
         "was trained on " + std::to_string(samples) + " samples, but this data set has " + std::to_string(train_->size()));
  }
  const auto steps = metadata_number<int64_t>(path, metadata, "step");
  const GeneratorState generator{metadata_number<uint64_t>(path, metadata, "generator_seed"),
                                 metadata_number<uint64_t>(path, metadata, "generator_offset")};
  History history = read_history(path, file, steps, device_);
  std::vector<nn::NamedTensor> state = optimizer_->state();
  for (nn::NamedTensor& entry : state) entry.tensor = file.get("optimizer." + entry.name, device_);
  copy_into(parameters, file, device_);
  optimizer_->load_state(state, steps);
  schedule_->set_epoch(steps);
  set_generator_state(device_, generator);
  history_ = std::move(history);
}

void load_network(const std::string& path, const nn::Sequential& network, Device device) {
  const io::SafetensorsFile file(path);
  const auto parameters = prefixed("model.", network.named_parameters());
  check_tensors(path, file, parameters, "model.");
  copy_into(parameters, file, device);
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
