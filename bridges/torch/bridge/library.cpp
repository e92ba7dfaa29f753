// What the Python side calls, as ops of the library "plugrad_torch". The file has no Python ABI: it serves all versions of
// Python.
#include <torch/library.h>
#include <bridge/devices.hpp>
#include <bridge/fallback.hpp>
#include <bridge/generator.hpp>
#include <bridge/steps.hpp>
#include <plugrad/runtime/policy.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <plugrad/sdk/ops.hpp>

namespace plugrad_torch {
namespace {
std::vector<std::string> fallback_names() {
  std::vector<std::string> names;
  for (const auto& [name, count] : counts().fallbacks) names.push_back(name);
  return names;
}
std::vector<int64_t> fallback_numbers() {
  std::vector<int64_t> numbers;
  for (const auto& [name, count] : counts().fallbacks) numbers.push_back(count);
  return numbers;
}
int64_t kernel_count() { return counts().kernels; }

void set_fallback(const std::string& policy) {
  if (policy == "error") plugrad::set_fallback(plugrad::Fallback::error);
  else if (policy == "warn") plugrad::set_fallback(plugrad::Fallback::warn);
  else if (policy == "allow") plugrad::set_fallback(plugrad::Fallback::allow);
  else TORCH_CHECK_VALUE(false, "there is no policy '", policy, "'; the policies are: error warn allow");
}

// In the order of plugrad::DeviceCounters.
std::vector<int64_t> device_counters(int64_t index) {
  const plugrad::DeviceCounters c = device_at(static_cast<c10::DeviceIndex>(index)).counters();
  std::vector<int64_t> numbers;
  for (const uint64_t each :
       {c.kernels, c.layout_copies, c.widened, c.decompositions, c.host_fallbacks, c.uploads, c.downloads})
    numbers.push_back(static_cast<int64_t>(each));
  return numbers;
}
std::string device_description(int64_t index) { return device_at(static_cast<c10::DeviceIndex>(index)).description(); }
void set_option(const std::string& device, const std::string& key, const std::string& value) {
  plugrad::set_device_options(device, {{key, value}});
}
at::Generator generator(int64_t index) { return default_generator(static_cast<c10::DeviceIndex>(index)); }
void manual_seed(int64_t index, int64_t seed) { generator(index).set_current_seed(static_cast<uint64_t>(seed)); }
int64_t initial_seed(int64_t index) { return static_cast<int64_t>(generator(index).current_seed()); }
at::Tensor generator_state(int64_t index) { return generator(index).get_state(); }
void set_generator_state(int64_t index, const at::Tensor& state) { generator(index).set_state(state); }
void load_plugin(const std::string& path) { plugrad::load_plugin(path); }
std::string tier1_ops() {
  std::string names;
  for (const plugrad::OpInfo& each : plugrad::kOps)
    if (each.tier == 1) names += (names.empty() ? "" : ",") + std::string(each.name);
  return names;
}
void finish() { plugrad::finish_all(); }
std::vector<std::string> names() { return device_names(); }
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY(plugrad_torch, library) {
  using namespace plugrad_torch;
  library.def("devices", &names);
  library.def("device_description", &device_description);
  library.def("device_counters", &device_counters);
  library.def("set_option(str device, str key, str value) -> ()", &set_option);
  library.def("manual_seed(int device, int seed) -> ()", &manual_seed);
  library.def("initial_seed", &initial_seed);
  library.def("generator_state", &generator_state);
  library.def("set_generator_state(int device, Tensor state) -> ()", &set_generator_state);
  library.def("load_plugin(str path) -> ()", &load_plugin);
  library.def("tier1_ops", &tier1_ops);
  library.def("fallback_names", &fallback_names);
  library.def("fallback_numbers", &fallback_numbers);
  library.def("kernel_count", &kernel_count);
  library.def("reset_counts() -> ()", &reset_counts);
  library.def("set_fallback(str policy) -> ()", &set_fallback);
  library.def("finish() -> ()", &finish);
  library.def("new_step", &new_step);
  library.def("delete_step(int step) -> ()", &delete_step);
  library.def("call_step", &call_step);
  library.def("step_arguments", &step_arguments);
  library.def("set_step_results(Tensor[] results) -> ()", &set_step_results);
  library.def("step_figures", &step_figures);
  library.def("explain_step", &explain_step);
}
