#include <plugrad/nn/module.hpp>
#include <plugrad/runtime/error.hpp>

namespace plugrad::nn {

Module::~Module() = default;

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> tensors;
  for (NamedTensor& entry : named_parameters()) tensors.push_back(std::move(entry.tensor));
  return tensors;
}

void Module::clear_grad() {
  for (Tensor& parameter : parameters()) parameter.clear_grad();
}

void Module::to(Device device) {
  for (Tensor& parameter : parameters()) parameter.move_to_(device);
}

std::shared_ptr<Module> relu() { return std::make_shared<Activation>("ReLU", plugrad::relu); }
std::shared_ptr<Module> tanh() { return std::make_shared<Activation>("Tanh", plugrad::tanh); }
std::shared_ptr<Module> sigmoid() { return std::make_shared<Activation>("Sigmoid", plugrad::sigmoid); }

Tensor Sequential::forward(const Tensor& x) const {
  Tensor value = x;
  for (const auto& module : modules_) value = module->forward(value);
  return value;
}

std::string Sequential::text() const {
  std::string text = "Sequential(";
  for (size_t i = 0; i < modules_.size(); ++i) text += (i ? ", " : "") + modules_[i]->text();
  return text + ")";
}

std::vector<NamedTensor> Sequential::named_parameters() const {
  std::vector<NamedTensor> all;
  for (size_t i = 0; i < modules_.size(); ++i) {
    for (NamedTensor& entry : modules_[i]->named_parameters()) {
      all.push_back({std::to_string(i) + "." + entry.name, std::move(entry.tensor)});
    }
  }
  return all;
}

}  // namespace plugrad::nn
