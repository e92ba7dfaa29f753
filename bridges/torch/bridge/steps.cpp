#include <bridge/steps.hpp>

#include <bridge/fallback.hpp>
#include <bridge/generator.hpp>
#include <bridge/kernel.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/steps/compile.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace plugrad_torch {
namespace {
std::mutex mutex;
std::map<int64_t, std::shared_ptr<plugrad::CompiledStep>>& steps() {
  static auto& all = *new std::map<int64_t, std::shared_ptr<plugrad::CompiledStep>>;
  return all;
}
std::shared_ptr<plugrad::CompiledStep> step_at(int64_t number) {
  const std::lock_guard lock(mutex);
  const auto found = steps().find(number);
  TORCH_CHECK(found != steps().end(), "there is no step ", number);
  return found->second;
}

// The arguments and results of the function that a thread records.
thread_local std::vector<T> arguments_inside, results_inside;

// Ends the thread's recording also where the function throws.
class RecordingScope {
 public:
  RecordingScope() : before_(std::exchange(is_recording, true)), strict_("a recorded step") {}
  ~RecordingScope() {
    is_recording = before_;
    arguments_inside.clear(), results_inside.clear();
  }

 private:
  bool before_;
  WithoutFallback strict_;
};

struct Failed {};  // the function failed: its caller knows why

plugrad::StepResults record(const std::vector<P>& arguments, int (*run)()) {
  const RecordingScope scope;
  for (const P& each : arguments) arguments_inside.push_back(alias(each));
  if (run()) throw Failed();
  plugrad::StepResults results;
  for (const T& each : results_inside) results.tensors.push_back(over(each));
  return results;
}
}  // namespace

int64_t new_step(const std::string& name, bool fuse) {
  static int64_t next = 0;
  auto step = std::make_shared<plugrad::CompiledStep>(plugrad::CompileOptions{.name = name, .fuse = fuse});
  const std::lock_guard lock(mutex);
  steps().emplace(++next, std::move(step));
  return next;
}
void delete_step(int64_t step) {
  const std::lock_guard lock(mutex);
  steps().erase(step);
}

std::vector<T> call_step(int64_t number, at::TensorList given, const std::string& constants, int64_t run) {
  const auto step = step_at(number);
  const plugrad::NoGrad unrecorded;
  std::vector<P> arguments;
  for (const T& each : given) arguments.push_back(over(each));
  try {
    std::optional<RandomScope> random;
    if (!is_recording && !given.empty()) random.emplace(std::nullopt, given[0].device().index());
    const plugrad::StepResults made = step->call(
        arguments, constants, [&](const std::vector<P>& x) { return record(x, reinterpret_cast<int (*)()>(run)); });
    std::vector<T> results;
    for (const P& each : made.tensors) results.push_back(alias(each));
    return results;
  } catch (const Failed&) {
    return {};
  } catch (...) {
    classify_exception("a recorded step");
    TORCH_CHECK(false, "plugrad cannot record this step");
  }
}
std::vector<T> step_arguments() { return arguments_inside; }
void set_step_results(at::TensorList results) { results_inside = results.vec(); }

std::vector<int64_t> step_figures(int64_t step) {
  const plugrad::CompileFigures figures = step_at(step)->figures();
  return {static_cast<int64_t>(figures.recorded), static_cast<int64_t>(figures.replayed),
          static_cast<int64_t>(figures.called)};
}
std::string explain_step(int64_t step) { return step_at(step)->explain(); }

}  // namespace plugrad_torch
