#include <tools/plugrad/report.hpp>

#include <plugrad/distributed/process_group.hpp>
#include <tools/plugrad/files.hpp>
#include <tools/plugrad/json.hpp>
#include <tools/train/loss_plot.hpp>

#include <charconv>
#include <cstdio>
#include <sstream>

namespace plugrad::tool {
namespace {

// Keeps every digit of the value's type, with a decimal point in every locale.
template <class T> std::string text_of(T value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string hexadecimal(uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

}  // namespace

std::string results_json(const training::Trainer& trainer, const RunSummary& summary) {
  const Device device = trainer.device();
  const training::History& history = trainer.history();
  const std::optional<Mapping> mapping = mapping_of(device.plugin());
  std::vector<Json::Member> results = {
      {trainer.has_test() ? "test_accuracy" : "train_accuracy", summary.evaluation.accuracy}};
  if (trainer.has_test()) results.emplace_back("test_loss", summary.evaluation.loss);
  results.insert(results.end(), {{"train_loss", training::recent_loss(history)},
                                 {"epochs", trainer.epoch()},
                                 {"steps", trainer.step()},
                                 {"seconds", summary.seconds},
                                 {"training_seconds", summary.training_seconds},
                                 {"images_per_second", summary.samples_per_second},
                                 {"device", device.name()},
                                 {"device_description", device.description()},
                                 {"plugin", device.plugin()},
                                 {"plugin_mapped", mapping ? Json(mapping->file) : Json(nullptr)},
                                 {"plugin_mapping", mapping ? Json(mapping->line) : Json(nullptr)},
                                 {"parameters", trainer.parameter_count()},
                                 {"network", trainer.network().text()},
                                 {"digest", hexadecimal(trainer.digest())},
                                 {"ranks", distributed::is_initialized() ? distributed::get_world_size() : 1},
                                 {"resumed_from", summary.resumed_from},
                                 {"interrupted", summary.interrupted},
                                 {"config", Json::parse(training::config_to_json(trainer.config()))}});
  return Json::object(results).pretty() + "\n";
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
