// plugrad trial.
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/generator.hpp>
#include <plugrad/runtime/numbers.hpp>
#include <plugrad/runtime/policy.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <tools/plugrad/json.hpp>
#include <tools/plugrad/options.hpp>
#include <tools/trial/models.hpp>
#include <tools/trial/target.hpp>

#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>

namespace plugrad::tool {
namespace {

struct Verdict {
  TrialResult result;
  double seconds = 0;
  std::string error;  // why it does not train; "" if it does
};

Verdict tried(const TrialModel& model, Device device) {
  Verdict verdict;
  const auto begun = std::chrono::steady_clock::now();
  try {
    manual_seed(1);
    verdict.result = model.train(device);
    device.sync();
    const TrialResult& result = verdict.result;
    if (!std::isfinite(result.last_loss) || result.accuracy < model.accuracy)
      verdict.error = "after " + std::to_string(result.steps) + " steps the accuracy is " +
                      fixed_text(100 * result.accuracy, 1) + "%, expected at least " + fixed_text(100 * model.accuracy, 0) +
                      "%: the loss went from " + fixed_text(result.first_loss, 3) + " to " + fixed_text(result.last_loss, 3);
  } catch (const Error& error) {
    verdict.error = one_line(error.what());
  }
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return verdict;
}

Json to_json(const TrialModel& model, const Verdict& verdict) {
  const TrialResult& result = verdict.result;
  return Json::object({{"model", model.name},
                       {"description", model.description},
                       {"trains", verdict.error.empty()},
                       {"error", verdict.error},
                       {"steps", result.steps},
                       {"first_loss", result.first_loss},
                       {"last_loss", result.last_loss},
                       {"accuracy", result.accuracy},
                       {"seconds", verdict.seconds}});
}

void print(const TrialModel& model, const Verdict& verdict) {
  const TrialResult& result = verdict.result;
  std::cout << std::left << std::setw(12) << model.name;
  if (!verdict.error.empty()) std::cout << "FAIL  " << verdict.error << "\n";
  else
    std::cout << "ok    " << result.steps << " steps in " << fixed_text(verdict.seconds, 2) << " s, loss "
              << fixed_text(result.first_loss, 3) << " to " << fixed_text(result.last_loss, 3) << ", accuracy "
              << fixed_text(100 * result.accuracy, 1) << "%\n";
  std::cout << std::flush;
}

OptionList options_in(const std::vector<std::string>& texts) {
  OptionList list;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == text.npos) throw UsageError("--option " + text + ": expected KEY=VALUE");
    list.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return list;
}

int run_trial(const std::string& name, const OptionList& options, bool json) {
  set_fallback(Fallback::error);
  if (!options.empty()) set_device_options(name, options);
  const Device device(name);
  set_default_device(device);
  if (!json) std::cout << device.name() << ": " << device.description() << "\n";
  std::vector<Json> all;
  bool trains = true;
  for (const TrialModel& model : trial_models()) {
    const Verdict verdict = tried(model, device);
    trains &= verdict.error.empty();
    if (json) all.push_back(to_json(model, verdict));
    else print(model, verdict);
  }
  if (json) std::cout << Json::object({{"device", device.name()}, {"models", all}}).pretty() << "\n";
  return trains ? 0 : 1;
}

}  // namespace

int trial_command(const Arguments& arguments) {
  Options options("plugrad trial");
  options.add_whole("device", "N", "which device of the file's plugin", 0);
  options.add_texts("option", "KEY=VALUE", "an option for opening the device; may be repeated");
  options.parse(arguments, 1);
  if (options.flag("help")) {
    options.print_help(
        {"plugrad trial DEVICE|FILE [--device N] [--option KEY=VALUE] [--json]",
         "Trains three small models on a device, or on the device of a plugin's file, to show that training works\n"
         "there: a multilayer perceptron, a convolutional network and a transformer. No op may run elsewhere. The\n"
         "exit status is 1 if a model does not learn.",
         "  plugrad trial cuda:0\n  plugrad trial build/libplugrad-backend-npu.so\n"});
    return 0;
  }
  if (options.words().empty())
    throw UsageError("a device or a plugin's file is missing: plugrad trial DEVICE|FILE (see plugrad trial --help)");
  return run_trial(device_of(options.words()[0], *options.whole("device")), options_in(options.texts("option")),
                   options.flag("json"));
}

}  // namespace plugrad::tool
