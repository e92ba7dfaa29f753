#include <tools/plugrad/report.hpp>

#include <tools/plugrad/files.hpp>
#include <tools/train/loss_plot.hpp>

#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>

namespace plugrad::tool {
namespace {

using Json = nlohmann::ordered_json;

// JSON has neither NaN nor infinity.
Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// Keeps every digit of the value's type, with a decimal point in every locale.
template <class T> std::string text_of(T value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace

std::string results_json(const training::Trainer& trainer, const RunSummary& summary) {
  const Device device = trainer.device();
  const training::History& history = trainer.history();
  const std::optional<Mapping> mapping = mapping_of(device.plugin());
  Json results;
  results[trainer.has_test() ? "test_accuracy" : "train_accuracy"] = summary.evaluation.accuracy;
  if (trainer.has_test()) results["test_loss"] = finite_or_null(summary.evaluation.loss);
  results["train_loss"] = history.losses.empty() ? Json(nullptr) : finite_or_null(training::recent_loss(history));
  results["epochs"] = trainer.epoch();
  results["steps"] = trainer.step();
  results["seconds"] = summary.seconds;
  results["training_seconds"] = summary.training_seconds;
  results["images_per_second"] = summary.samples_per_second;
  results["device"] = device.name();
  results["device_description"] = device.description();
  results["plugin"] = device.plugin();
  results["plugin_mapped"] = mapping ? Json(mapping->file) : Json(nullptr);
  results["plugin_mapping"] = mapping ? Json(mapping->line) : Json(nullptr);
  results["parameters"] = trainer.parameter_count();
  results["network"] = trainer.network().text();
  results["resumed_from"] = summary.resumed_from;
  results["interrupted"] = summary.interrupted;
  results["config"] = Json::parse(training::config_to_json(trainer.config()));
  return results.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string losses_csv(const training::History& history) {
  std::string text = "step,loss,test_loss,test_accuracy\n";
  auto evaluation = history.evaluations.begin();
  for (size_t i = 0; i < history.losses.size(); ++i) {
    const auto step = static_cast<int64_t>(i + 1);
    text += std::to_string(step) + "," + text_of(history.losses[i]) + ",";
    if (evaluation != history.evaluations.end() && evaluation->step == step) {
      text += text_of(evaluation->loss) + "," + text_of(evaluation->accuracy) + "\n";
      ++evaluation;
    } else {
      text += ",\n";
    }
  }
  return text;
}

std::string loss_svg(const training::Trainer& trainer, const training::Evaluation& evaluation) {
  training::LossPlot plot;
  char accuracy[64];
  std::snprintf(accuracy, sizeof accuracy, ", %s accuracy %.2f%%", trainer.has_test() ? "test" : "training",
                100 * evaluation.accuracy);
  plot.title = trainer.config().data + " on " + trainer.device().name() + accuracy;
  std::ostringstream subtitle;
  subtitle << trainer.parameter_count() << " parameters, Adam at " << trainer.config().rate << ", batch "
           << trainer.config().batch << ", " << trainer.config().epochs << " epochs, " << trainer.device().description();
  plot.subtitle = subtitle.str();
  const training::History& history = trainer.history();
  for (size_t i = 0; i < history.losses.size(); ++i) plot.loss.push_back({static_cast<int64_t>(i + 1), history.losses[i]});
  for (const training::Evaluation& row : history.evaluations) plot.accuracy.push_back({row.step, row.accuracy});
  return training::loss_plot_svg(plot);
}

}  // namespace plugrad::tool
