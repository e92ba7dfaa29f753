#include <bridge/fallback.hpp>

#include <ATen/Context.h>
#include <ATen/native/CPUFallback.h>
#include <bridge/kernel.hpp>
#include <plugrad/runtime/policy.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <sstream>

namespace plugrad_torch {
namespace {
std::mutex mutex;
std::map<std::string, int64_t>& fallback_counts() {
  static auto& all = *new std::map<std::string, int64_t>;
  return all;
}
std::atomic<int64_t> kernels{0};
thread_local const char* refused_in = nullptr;
thread_local const char* declined = nullptr;

void collect_tensors(const c10::IValue& value, std::vector<T>& tensors) {
  if (value.isTensor()) tensors.push_back(value.toTensor());
  else if (value.isTensorList())
    for (const T& each : value.toTensorVector()) tensors.push_back(each);
  else if (value.isOptionalTensorList())
    for (const OptT& each : value.toOptionalTensorVector())
      if (each) tensors.push_back(*each);
}

// Lengths and indices may lie on the CPU, as PyTorch allows for its own devices.
bool may_be_elsewhere(const T& x) { return is_number(x) || (x.is_cpu() && at::isIntegralType(x.scalar_type(), true)); }

void require_one_device(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  std::vector<T> tensors;
  for (const c10::IValue& each : stack) collect_tensors(each, tensors);
  const auto first = std::ranges::find_if(tensors, [](const T& x) { return x.defined() && is_ours(x); });
  if (first == tensors.end()) return;
  for (const T& each : tensors)
    TORCH_CHECK(!each.defined() || each.device() == first->device() || may_be_elsewhere(each),
                "Expected all tensors to be on the same device, but found at least two devices, ", first->device(), " and ",
                each.device(), "! (in ", op.operator_name(), ")");
}

std::string description(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  std::ostringstream text;
  text << op.operator_name() << " (";
  std::vector<T> tensors;
  for (const c10::IValue& each : stack) collect_tensors(each, tensors);
  for (const T& each : tensors)
    if (each.defined()) text << (&each == tensors.data() ? "" : ", ") << each.scalar_type() << " " << each.sizes();
  text << ")";
  if (declined) text << " with " << declined;
  return text.str();
}

std::string name_of(const c10::OperatorHandle& op) { return toString(op.operator_name()); }

void apply_policy(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(!refused_in, "plugrad has no kernel for ", description(op, stack), ", and ", refused_in,
                              " cannot contain an op that runs on the CPU");
  const plugrad::Fallback policy = plugrad::fallback();
  TORCH_CHECK_NOT_IMPLEMENTED(policy != plugrad::Fallback::error, "plugrad has no kernel for ", description(op, stack),
                              ", and PLUGRAD_FALLBACK=error forbids running it on the CPU: set it to warn or allow");
  const std::lock_guard lock(mutex);
  if (++fallback_counts()[name_of(op)] == 1 && policy == plugrad::Fallback::warn)
    TORCH_WARN("plugrad has no kernel for ", description(op, stack), ": it runs on the CPU");
}

// Ops that only devices implement: the CPU's kernel has another name.
bool run_overrideable(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string& name = op.operator_name().name;
  const char* other = name == "aten::convolution_overrideable"            ? "aten::convolution"
                      : name == "aten::convolution_backward_overrideable" ? "aten::convolution_backward"
                                                                          : nullptr;
  if (!other) return false;
  if (name == "aten::convolution_backward_overrideable")  // convolution_backward also takes the sizes of the bias
    stack->insert(stack->begin() + 3, c10::IValue(std::vector<int64_t>{stack->at(2).toTensor().size(0)}));
  at::native::cpu_fallback(c10::Dispatcher::singleton().findSchemaOrThrow(other, ""), stack);
  return true;
}
}  // namespace

void begin_kernel() {
  kernels.fetch_add(1, std::memory_order_relaxed);
  static std::atomic<bool> last{false};
  const bool deterministic = at::globalContext().deterministicAlgorithms();
  if (deterministic == last.load(std::memory_order_relaxed)) return;
  last.store(deterministic, std::memory_order_relaxed);
  plugrad::set_deterministic(deterministic);
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  require_one_device(op, *stack);
  apply_policy(op, *stack);
  declined = nullptr;
  if (!run_overrideable(op, stack)) at::native::cpu_fallback(op, stack);
}

void classify_exception(const char* op) {
  try {
    throw;
  } catch (const Unsupported& lacking) {
    declined = lacking.what;
  } catch (const plugrad::Error& error) {
    switch (error.code()) {
      case plugrad::Code::unsupported: declined = "this device"; return;
      case plugrad::Code::index_error: C10_THROW_ERROR(IndexError, error.what());
      case plugrad::Code::out_of_memory: C10_THROW_ERROR(OutOfMemoryError, error.what());
      default: TORCH_CHECK(false, error.what(), " (in ", op, ")");
    }
  }
}

Counts counts() {
  const std::lock_guard lock(mutex);
  return {{fallback_counts().begin(), fallback_counts().end()}, kernels.load()};
}
void reset_counts() {
  const std::lock_guard lock(mutex);
  fallback_counts().clear();
  kernels.store(0);
}

WithoutFallback::WithoutFallback(const char* where) : before_(std::exchange(refused_in, where)) {}
WithoutFallback::~WithoutFallback() { refused_in = before_; }

}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&plugrad_torch::run_on_cpu>());
}
