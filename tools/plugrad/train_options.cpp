#include <tools/plugrad/train_options.hpp>

#include <tools/plugrad/files.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace plugrad::tool {
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

// Sets the number to the option's value, if it was given.
template <class Number> void read_whole(const Options& options, const std::string& name, int64_t least, Number& number) {
  const std::optional<int64_t> value = options.whole(name);
  if (!value) return;
  if (*value < least)
    throw UsageError("--" + name + " must be at least " + std::to_string(least) + ", got " + std::to_string(*value));
  number = static_cast<Number>(*value);
}

// The same for a path. Makes the path absolute.
void read_path(const Options& options, const std::string& name, std::string& path) {
  if (const auto value = options.text(name)) path = absolute_path(*value);
}

void apply_network_options(const Options& options, training::TrainingConfig& config) {
  if (const auto widths = options.text("hidden")) config.hidden = parse_widths(*widths);
  read_whole(options, "epochs", 1, config.epochs);
  read_whole(options, "batch", 1, config.batch);
  read_whole(options, "seed", 0, config.seed);
  read_whole(options, "slices", 1, config.slices);
  config.rate = options.real("rate").value_or(config.rate);
  if (!(config.rate > 0) || !std::isfinite(config.rate)) throw UsageError("--rate must be above 0");
}

// With different batches or a different order, the completed steps would belong to a different run.
void check_same_run(const training::TrainingConfig& before, const training::TrainingConfig& now) {
  const auto check = [](const std::string& option, auto was, auto is) {
    if (was != is) throw UsageError(option + " cannot change when a run is resumed; this one has " + std::to_string(was));
  };
  check("--batch", before.batch, now.batch);
  check("--seed", before.seed, now.seed);
  check("--slices", before.slices, now.slices);
}

}  // namespace

void add_data_options(Options& options, bool training) {
  options.add_text("data", "NAME", "fashion-mnist, moons (points in the plane), or idx (your own files)");
  options.add_text("data-dir", "DIR", "where fashion-mnist's four files are, if not where Debian puts them");
  options.add_text("images", "FILE", "idx: images of unsigned bytes (n, rows, columns), plain or .gz");
  options.add_text("labels", "FILE", "idx: their labels (n)");
  if (!training) return;
  options.add_text("test-images", "FILE", "idx: images for evaluation (the training images)");
  options.add_text("test-labels", "FILE", "idx: their labels");
}

void apply_data_options(const Options& options, training::TrainingConfig& config) {
  read_path(options, "data-dir", config.directory);
  read_path(options, "images", config.images);
  read_path(options, "labels", config.labels);
  read_path(options, "test-images", config.test_images);
  read_path(options, "test-labels", config.test_labels);
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

void add_train_options(Options& options) {
  add_data_options(options, true);
  options.add_text("device", "NAME", "cpu (default), or another one from plugrad devices");
  options.add_text("hidden", "N,N,...", "widths of the hidden layers (512,512; moons: 16,16), or none");
  options.add_whole("epochs", "N", "passes over all samples (10; moons: 100)");
  options.add_whole("batch", "N", "samples per step (256; moons: 32)");
  options.add_real("rate", "R", "Adam's learning rate at the start; falls to 0 (1e-3; moons: 1e-2)");
  options.add_whole("seed", "N", "seed of weights and of the order of samples (1)");
  options.add_whole("steps", "N", "stop after this many steps, as if interrupted there");
  options.add_text("out", "DIR",
                   "where checkpoint.safetensors, losses.csv, loss.svg and results.json go; replaced where they exist "
                   "(plugrad-run; with --resume: the checkpoint's folder)");
  options.add_whole("checkpoint-every", "N", "steps between checkpoints (at the end of each epoch, at most one a second)");
  options.add_text("resume", "FILE", "continue from a checkpoint, with its options; the number of ranks may be another");
  options.add_whole("ranks", "N", "train on N processes of this machine, as plugrad launch -n N does");
  options.add_whole("slices", "N", "cut each batch into N parts, whose sums are the same on 1, 2, 4, .. up to N ranks");
  options.add_flag("deterministic", "the same bits in each run, on devices that can choose");
  options.add_flag("compile", "record the passes of a step and replay them, with the same bits");
}

TrainRequest read_train_request(const Options& options) {
  TrainRequest request;
  request.out = "plugrad-run";
  const std::optional<std::string> data = options.text("data");
  if (const auto resume = options.text("resume")) {
    request.resume = *resume;
    const training::CheckpointOrigin origin = training::read_origin(*resume);
    request.config = origin.config;
    request.device = origin.device;
    request.out = folder_of(*resume);
    if (data && *data != origin.config.data) {
      throw UsageError("--data cannot change when a run is resumed; this one has " + origin.config.data);
    }
  } else {
    request.config = training::default_config(data.value_or("fashion-mnist"));
  }
  const training::TrainingConfig before = request.config;
  apply_data_options(options, request.config);
  apply_network_options(options, request.config);
  if (!request.resume.empty()) check_same_run(before, request.config);
  request.device = options.text("device").value_or(request.device);
  request.out = options.text("out").value_or(request.out);
  read_whole(options, "steps", 1, request.steps);
  read_whole(options, "checkpoint-every", 1, request.checkpoint_every);
  request.json = options.flag("json");
  request.deterministic = options.flag("deterministic");
  request.compile = options.flag("compile");
  return request;
}

}  // namespace plugrad::tool
