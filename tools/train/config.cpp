#include <tools/train/config.hpp>

#include <plugrad/runtime/error.hpp>

#include <nlohmann/json.hpp>

namespace plugrad::training {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingConfig, data, directory, images, labels, test_images, test_labels, hidden, epochs,
                                   batch, rate, seed)

TrainingConfig default_config(const std::string& data) {
  TrainingConfig config;
  config.data = data;
  if (data == "fashion-mnist" || data == "idx") return config;
  if (data != "moons") {
    throw Error(Code::invalid, "no data called '" + data + "': expected fashion-mnist, moons or idx");
  }
  config.hidden = {16, 16};
  config.epochs = 100;
  config.batch = 32;
  config.rate = 1e-2;
  return config;
}

std::string config_to_json(const TrainingConfig& config) { return nlohmann::json(config).dump(); }

TrainingConfig config_from_json(const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<TrainingConfig>();
  } catch (const nlohmann::json::exception&) {
    throw Error(Code::io_error, "is not a configuration of plugrad train");
  }
}

}  // namespace plugrad::training
