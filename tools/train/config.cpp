#include <tools/train/config.hpp>

#include <plugrad/runtime/error.hpp>
#include <tools/plugrad/json.hpp>

#include <string_view>

namespace plugrad::training {
namespace {

using tool::Json;

// Visits the members in the order of their names, as checkpoints store them.
template <class Config, class Visit> void for_each_member(Config& config, Visit visit) {
  visit("batch", config.batch);
  visit("data", config.data);
  visit("directory", config.directory);
  visit("epochs", config.epochs);
  visit("hidden", config.hidden);
  visit("images", config.images);
  visit("labels", config.labels);
  visit("rate", config.rate);
  visit("seed", config.seed);
  visit("slices", config.slices);
  visit("test_images", config.test_images);
  visit("test_labels", config.test_labels);
}

}  // namespace

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

std::string config_to_json(const TrainingConfig& config) {
  std::vector<Json::Member> members;
  for_each_member(config, [&](const char* name, const auto& value) { members.emplace_back(name, value); });
  return Json::object(members).compact();
}

TrainingConfig config_from_json(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    TrainingConfig config;
    for_each_member(config, [&]<class T>(const char* name, T& value) {
      if (std::string_view(name) == "slices") value = json.value(name, T());  // older files have none
      else value = json.at(name).as<T>();
    });
    return config;
  } catch (const tool::JsonError&) {
    throw Error(Code::io_error, "is not a configuration of plugrad train");
  }
}

}  // namespace plugrad::training
