// plugrad eval.
#include <plugrad/runtime/error.hpp>
#include <tools/plugrad/json.hpp>
#include <tools/plugrad/options.hpp>
#include <tools/plugrad/train_options.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace plugrad::tool {
namespace {

struct Verdict {
  training::Evaluation evaluation;
  int64_t count = 0;
  std::string data, device;
};

// Evaluates given files as they are, and a data set's test part otherwise.
Verdict judge(const std::string& checkpoint, const Options& options) {
  const training::CheckpointOrigin origin = training::read_origin(checkpoint);
  training::TrainingConfig config = origin.config;
  if (const auto data = options.text("data"); data && *data != config.data) {
    config = training::default_config(*data);
    config.hidden = origin.config.hidden;
    config.seed = origin.config.seed;
  }
  apply_data_options(options, config);
  if (options.text("images")) config.test_images = config.test_labels = "";
  const Device device(options.text("device").value_or(origin.device));
  const training::Data data = training::load_data(config);
  const training::Samples& samples = data.has_test ? data.test : data.train;
  const int64_t outputs = std::max(data.outputs, config.data == origin.config.data ? origin.outputs : 0);
  const auto network = training::make_mlp(samples.features, config.hidden, outputs, device);
  training::load_network(checkpoint, *network, device);
  const TensorDataset uploaded = training::on_device(samples, origin.normalisation, data.objective, device);
  return {training::evaluate(*network, uploaded, data.objective), samples.count, config.data, device.name()};
}

}  // namespace

int eval_command(const Arguments& arguments) {
  Options options("plugrad eval");
  options.add_text("checkpoint", "FILE", "a file that plugrad train wrote");
  add_data_options(options, false);
  options.add_text("device", "NAME", "where to compute (the device it was trained on)");
  options.parse(arguments);
  if (options.flag("help")) {
    options.print_help(
        {"plugrad eval --checkpoint FILE [--data NAME] [options]",
         "Prints the loss and accuracy of a network on the test set of its data set, or on other data.",
         "  plugrad eval --checkpoint plugrad-run/checkpoint.safetensors\n"
         "  plugrad eval --checkpoint run/checkpoint.safetensors --data idx --images x.idx.gz --labels y.idx.gz --json\n"});
    return 0;
  }
  const std::optional<std::string> checkpoint = options.text("checkpoint");
  if (!checkpoint) throw UsageError("--checkpoint FILE is missing (see plugrad eval --help)");
  const Verdict verdict = judge(*checkpoint, options);
  const double loss = verdict.evaluation.loss, accuracy = verdict.evaluation.accuracy;
  if (options.flag("json")) {
    const Json results = Json::object({{"loss", loss},
                                       {"accuracy", accuracy},
                                       {"count", verdict.count},
                                       {"data", verdict.data},
                                       {"device", verdict.device}});
    std::cout << results.pretty() << "\n";
  } else {
    char text[160];
    std::snprintf(text, sizeof text, "loss %.4f, accuracy %.2f%% of %lld on %s\n", loss, 100 * accuracy,
                  static_cast<long long>(verdict.count), verdict.device.c_str());
    std::cout << text;
  }
  return 0;
}

}  // namespace plugrad::tool
