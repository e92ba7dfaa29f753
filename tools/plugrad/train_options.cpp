#include <tools/plugrad/train_options.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

namespace plugrad::tool {
namespace po = boost::program_options;
namespace {

std::vector<int64_t> parse_widths(const std::string& text) {
  std::vector<int64_t> widths;
  if (text == "none") return widths;
  const char* next = text.data();
  const char* const end = next + text.size();
  while (true) {
    int64_t width = 0;
    const auto [stop, error] = std::from_chars(next, end, width);
    constexpr int64_t kMost = 1 << 20;
    if (error != std::errc{} || width < 1 || width > kMost || (stop != end && *stop != ',')) {
      throw UsageError("--hidden '" + text + "' is not a list of widths; expected, for example, 512,512, or none");
    }
    widths.push_back(width);
    if (stop == end) return widths;
    next = stop + 1;
  }
}

int64_t at_least(const po::variables_map& values, const std::string& name, int64_t least) {
  const auto value = values[name].as<int64_t>();
  if (value < least)
    throw UsageError("--" + name + " must be at least " + std::to_string(least) + ", got " + std::to_string(value));
  return value;
}

std::string absolute(const po::variables_map& values, const std::string& name) {
  return std::filesystem::absolute(values[name].as<std::string>()).string();
}

void apply_network_options(const po::variables_map& values, training::TrainingConfig& config) {
  if (values.count("hidden")) config.hidden = parse_widths(values["hidden"].as<std::string>());
  if (values.count("epochs")) config.epochs = at_least(values, "epochs", 1);
  if (values.count("batch")) config.batch = at_least(values, "batch", 1);
  if (values.count("seed")) config.seed = static_cast<uint64_t>(at_least(values, "seed", 0));
  if (values.count("rate")) config.rate = values["rate"].as<double>();
  if (!(config.rate > 0) || !std::isfinite(config.rate)) throw UsageError("--rate must be above 0");
}

// With other batches or another order, the steps already made would belong to a different run.
void check_same_run(const training::TrainingConfig& before, const training::TrainingConfig& now) {
  const auto check = [](const std::string& option, auto was, auto is) {
    if (was != is) throw UsageError(option + " cannot change when a run is resumed; this one has " + std::to_string(was));
  };
  check("--batch", before.batch, now.batch);
  check("--seed", before.seed, now.seed);
}

}  // namespace

void add_data_options(po::options_description& options, bool training) {
  auto add = options.add_options();
  const auto text = [] { return po::value<std::string>(); };
  add("data", text()->value_name("NAME"), "fashion-mnist, moons (points in the plane), or idx (your own files)");
  add("data-dir", text()->value_name("DIR"), "where fashion-mnist's four files are, if not where Debian puts them");
  add("images", text()->value_name("FILE"), "idx: images of unsigned bytes (n, rows, columns), plain or .gz");
  add("labels", text()->value_name("FILE"), "idx: their labels (n)");
  if (!training) return;
  add("test-images", text()->value_name("FILE"), "idx: images for evaluation (the training images)");
  add("test-labels", text()->value_name("FILE"), "idx: their labels");
}

void apply_data_options(const po::variables_map& values, training::TrainingConfig& config) {
  if (values.count("data-dir")) config.directory = absolute(values, "data-dir");
  if (values.count("images")) config.images = absolute(values, "images");
  if (values.count("labels")) config.labels = absolute(values, "labels");
  if (values.count("test-images")) config.test_images = absolute(values, "test-images");
  if (values.count("test-labels")) config.test_labels = absolute(values, "test-labels");
  if (config.data == "idx" && (config.images.empty() || config.labels.empty())) {
    throw UsageError("--data idx needs --images FILE and --labels FILE");
  }
  if (config.test_images.empty() != config.test_labels.empty()) {
    throw UsageError("--test-images and --test-labels go together");
  }
  if (config.data != "idx" && !(config.images.empty() && config.labels.empty() && config.test_images.empty())) {
    throw UsageError("--images and --labels are for --data idx");
  }
  if (config.data != "fashion-mnist" && !config.directory.empty()) {
    throw UsageError("--data-dir is for --data fashion-mnist");
  }
}

po::options_description train_options() {
  po::options_description options;
  add_data_options(options, true);
  auto add = options.add_options();
  const auto whole = [] { return po::value<int64_t>()->value_name("N"); };
  add("device", po::value<std::string>()->value_name("NAME"), "cpu (default), or another one from plugrad devices");
  add("hidden", po::value<std::string>()->value_name("N,N,..."),
      "widths of the hidden layers (512,512; moons: 16,16), or none");
  add("epochs", whole(), "passes over all samples (10; moons: 100)");
  add("batch", whole(), "samples per step (256; moons: 32)");
  add("rate", po::value<double>()->value_name("R"), "Adam's learning rate at the start; falls to 0 (1e-3; moons: 1e-2)");
  add("seed", whole(), "seed of weights and of the order of samples (1)");
  add("steps", whole(), "stop after this many steps, as if interrupted there");
  add("out", po::value<std::string>()->value_name("DIR"),
      "where checkpoint.safetensors, losses.csv, loss.svg and results.json go; replaced where they exist (plugrad-run; "
      "with --resume: the checkpoint's folder)");
  add("checkpoint-every", whole(), "steps between checkpoints (at the end of each epoch, at most one a second)");
  add("resume", po::value<std::string>()->value_name("FILE"), "continue from a checkpoint, with its options");
  return options;
}

TrainRequest read_train_request(const po::variables_map& values) {
  TrainRequest request;
  request.out = "plugrad-run";
  if (values.count("resume")) {
    request.resume = values["resume"].as<std::string>();
    const training::CheckpointOrigin origin = training::read_origin(request.resume);
    request.config = origin.config;
    request.device = origin.device;
    const std::filesystem::path folder = std::filesystem::path(request.resume).parent_path();
    request.out = folder.empty() ? "." : folder.string();
    if (values.count("data") && values["data"].as<std::string>() != origin.config.data) {
      throw UsageError("--data cannot change when a run is resumed; this one has " + origin.config.data);
    }
  } else {
    request.config = training::default_config(values.count("data") ? values["data"].as<std::string>() : "fashion-mnist");
  }
  const training::TrainingConfig before = request.config;
  apply_data_options(values, request.config);
  apply_network_options(values, request.config);
  if (!request.resume.empty()) check_same_run(before, request.config);
  if (values.count("device")) request.device = values["device"].as<std::string>();
  if (values.count("out")) request.out = values["out"].as<std::string>();
  if (values.count("steps")) request.steps = at_least(values, "steps", 1);
  if (values.count("checkpoint-every")) request.checkpoint_every = at_least(values, "checkpoint-every", 1);
  request.json = values["json"].as<bool>();
  return request;
}

}  // namespace plugrad::tool
