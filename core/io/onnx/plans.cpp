#include <core/io/onnx/plans.hpp>

#include <algorithm>
#include <utility>

namespace plugrad::io::onnx {
namespace {
constexpr size_t kMostPlans = 256;
constexpr uint64_t kMostPlanBytes = uint64_t{256} << 20;

uint64_t bytes_of(const Tensor& tensor) { return static_cast<uint64_t>(tensor.count() * item_size(tensor.dtype())); }

uint64_t bytes_of(const Plan& plan) {
  uint64_t total = 0;
  for (const Tensor& each : plan.made) total += bytes_of(each);
  for (const Values& results : plan.results)
    for (const Value& each : results)
      if (each.tensor.defined()) total += bytes_of(each.tensor);
  return total;
}
}  // namespace

std::string key_text(const Values& inputs) {
  std::string key;
  for (const Value& each : inputs) {
    if (each.tensor.defined()) key += std::string(dtype_name(each.tensor.dtype())) + each.tensor.shape().text();
    key += each.sequence ? "[" + key_text(*each.sequence) + "];" : ";";
  }
  return key;
}

std::list<Plans::Entry>::iterator Plans::place_of(const std::string& key) {
  return std::ranges::find_if(all_, [&](const Entry& each) { return each.plan->key == key; });
}

std::shared_ptr<const KeptPlan> Plans::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = place_of(key);
  if (found == all_.end()) return nullptr;
  all_.splice(all_.begin(), all_, found);
  return found->plan;
}

void Plans::add(KeptPlan plan) {
  const uint64_t bytes = plan.plan ? bytes_of(*plan.plan) : 0;
  const std::lock_guard lock(mutex_);
  if (place_of(plan.key) != all_.end()) return;  // another thread was faster
  all_.push_front({std::make_shared<KeptPlan>(std::move(plan)), bytes});
  bytes_ += bytes;
  while (all_.size() > 1 && (all_.size() > kMostPlans || bytes_ > kMostPlanBytes)) {
    bytes_ -= all_.back().bytes;
    all_.pop_back();
  }
}

void Plans::refuse(const std::string& key, const std::string& why) {
  const std::lock_guard lock(mutex_);
  const auto found = place_of(key);
  if (found == all_.end()) return;
  KeptPlan refused = *found->plan;
  refused.unrecordable = why;
  found->plan = std::make_shared<KeptPlan>(std::move(refused));
}

void Plans::drop_others(const std::string& key) {
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [&](const Entry& each) { return each.plan->key != key; });
  bytes_ = all_.empty() ? 0 : all_.front().bytes;
}

std::string Plans::explain() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const Entry& each : all_)
    if (!each.plan->unrecordable.empty())
      text += "inputs " + each.plan->key + " run op by op: " + each.plan->unrecordable + "\n";
  return text;
}

}  // namespace plugrad::io::onnx
