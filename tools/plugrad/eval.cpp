// plugrad eval.
#include <plugrad/runtime/error.hpp>
#include <tools/plugrad/options.hpp>
#include <tools/plugrad/train_options.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

namespace plugrad::tool {
namespace po = boost::program_options;
namespace {

struct Verdict {
  training::Evaluation evaluation;
  int64_t count = 0;
  std::string data, device;
};

// Evaluates given files as they are, and a data set's test part otherwise.
Verdict judge(const std::string& checkpoint, const po::variables_map& values) {
  const training::CheckpointOrigin origin = training::read_origin(checkpoint);
  training::TrainingConfig config = origin.config;
  if (values.count("data") && values["data"].as<std::string>() != config.data) {
    config = training::default_config(values["data"].as<std::string>());
    config.hidden = origin.config.hidden;
    config.seed = origin.config.seed;
  }
  apply_data_options(values, config);
  const bool own_files = values.count("images") > 0;
  if (own_files) config.test_images = config.test_labels = "";
  const Device device(values.count("device") ? values["device"].as<std::string>() : origin.device);
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
  po::options_description own;
  own.add_options()("checkpoint", po::value<std::string>()->value_name("FILE"), "a file that plugrad train wrote");
  add_data_options(own, false);
  own.add_options()("device", po::value<std::string>()->value_name("NAME"),
                    "where to compute (the device it was trained on)");
  const po::options_description options = with_common(own);
  const po::variables_map values = parse_options("plugrad eval", arguments, options);
  if (values["help"].as<bool>()) {
    print_help(
        {"plugrad eval --checkpoint FILE [--data NAME] [options]",
         "Prints the loss and accuracy of a network on the test set of its data set, or on other data.",
         "  plugrad eval --checkpoint plugrad-run/checkpoint.safetensors\n"
         "  plugrad eval --checkpoint run/checkpoint.safetensors --data idx --images x.idx.gz --labels y.idx.gz --json\n"},
        options);
    return 0;
  }
  if (!values.count("checkpoint")) throw UsageError("--checkpoint FILE is missing (see plugrad eval --help)");
  const Verdict verdict = judge(values["checkpoint"].as<std::string>(), values);
  const double loss = verdict.evaluation.loss, accuracy = verdict.evaluation.accuracy;
  if (values["json"].as<bool>()) {
    using Json = nlohmann::ordered_json;
    std::cout << Json{{"loss", std::isfinite(loss) ? Json(loss) : Json(nullptr)},
                      {"accuracy", accuracy},
                      {"count", verdict.count},
                      {"data", verdict.data},
                      {"device", verdict.device}}
                     .dump(2)
              << "\n";
  } else {
    char text[160];
    std::snprintf(text, sizeof text, "loss %.4f, accuracy %.2f%% of %lld on %s\n", loss, 100 * accuracy,
                  static_cast<long long>(verdict.count), verdict.device.c_str());
    std::cout << text;
  }
  return 0;
}

}  // namespace plugrad::tool
