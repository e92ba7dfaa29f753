// plugrad train.
#include <plugrad/io/file.hpp>
#include <plugrad/runtime/error.hpp>
#include <tools/plugrad/files.hpp>
#include <tools/plugrad/interrupt.hpp>
#include <tools/plugrad/options.hpp>
#include <tools/plugrad/progress.hpp>
#include <tools/plugrad/report.hpp>
#include <tools/plugrad/train_options.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string_view>

namespace plugrad::tool {
namespace {

constexpr const char* kExamples =
    "  plugrad train                                   # Fashion-MNIST on the CPU, into plugrad-run/\n"
    "  plugrad train --device cuda:0 --hidden 1024,1024 --epochs 20 --out wide\n"
    "  plugrad train --data moons --seed 7 --json\n"
    "  plugrad train --data idx --images x.idx.gz --labels y.idx.gz --test-images tx.idx.gz --test-labels ty.idx.gz\n"
    "  plugrad train --resume plugrad-run/checkpoint.safetensors   # after Ctrl-C\n";

std::string shell_quoted(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_-./+:,@").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

class Session {
 public:
  explicit Session(const TrainRequest& request)
      : request_(request), start_(std::chrono::steady_clock::now()), device_(request.device),
        trainer_(request.config, training::load_data(request.config), device_) {
    if (!request.resume.empty()) trainer_.load(request.resume);
    summary_.resumed_from = trainer_.step();
    last_step_ = request.steps > 0 ? std::min(request.steps, trainer_.total_steps()) : trainer_.total_steps();
    create_folder(request.out);
    const io::AtomicFile fails_early_where_nothing_can_be_written(path("checkpoint.safetensors"));
  }

  int run() {
    const InterruptGuard guard;
    announce();
    if (trainer_.step() < last_step_) trainer_.try_evaluation();
    train();
    finish();
    if (request_.json) std::cout << results_json(trainer_, summary_);
    if (!summary_.interrupted) return 0;
    std::cerr << "interrupted after step " << trainer_.step() << "; everything is saved; continue with:\n  "
              << resume_command() << "\n";
    constexpr int kSignalled = 128;
    return kSignalled + InterruptGuard::pending();
  }

 private:
  std::string path(const std::string& name) const { return joined_path(request_.out, name); }

  std::string resume_command() const {
    std::string command = "plugrad train --resume " + shell_quoted(path("checkpoint.safetensors"));
    if (request_.steps > 0) command += " --steps " + std::to_string(request_.steps);
    if (request_.checkpoint_every > 0) command += " --checkpoint-every " + std::to_string(request_.checkpoint_every);
    return command;
  }

  void announce() const {
    std::cerr << trainer_.config().data << " on " << device_.name() << " (" << device_.description()
              << "): " << trainer_.network().text() << ", " << trainer_.parameter_count() << " parameters\n";
    if (trainer_.step() > 0)
      std::cerr << "resumed after step " << trainer_.step() << " of " << trainer_.total_steps() << "\n";
  }

  // The number of steps until the next checkpoint in --checkpoint-every steps, at most to the end of the run.
  int64_t until_checkpoint() const {
    const int64_t every = request_.checkpoint_every;
    return std::min(last_step_ - trainer_.step(), every > 0 ? every - trainer_.step() % every : last_step_);
  }

  // An epoch of a few milliseconds does not justify a wait for the disk.
  bool checkpoint_due(double seconds_since_last) const {
    if (request_.checkpoint_every > 0) return trainer_.step() % request_.checkpoint_every == 0;
    return trainer_.step() % trainer_.steps_per_epoch() == 0 && seconds_since_last >= 1;
  }

  void train() {
    constexpr int64_t kStepsPerLook = 20;
    Progress progress(trainer_, last_step_);
    const int64_t first_sample = trainer_.samples_seen();
    double saved_at = 0;
    trainer_.evaluate_epoch();  // of a run interrupted after it had saved an epoch
    while (trainer_.step() < last_step_ && !InterruptGuard::pending()) {
      trainer_.run_epoch_steps(std::min(kStepsPerLook, until_checkpoint()), [] { return InterruptGuard::pending() != 0; });
      if (trainer_.step() == last_step_ || checkpoint_due(progress.seconds() - saved_at)) {
        trainer_.save(path("checkpoint.safetensors"));
        saved_at = progress.seconds();
      }
      trainer_.evaluate_epoch();
      progress.update();
    }
    progress.clear();
    summary_.interrupted = trainer_.step() < last_step_;
    trainer_.save(path("checkpoint.safetensors"));
    summary_.training_seconds = progress.seconds();
    summary_.samples_per_second =
        static_cast<double>(trainer_.samples_seen() - first_sample) / std::max(summary_.training_seconds, 1e-9);
  }

  void finish() {
    const auto& evaluations = trainer_.history().evaluations;
    const bool known = !evaluations.empty() && evaluations.back().step == trainer_.step();
    summary_.evaluation = known ? evaluations.back() : trainer_.evaluate();
    summary_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    io::write_file(path("losses.csv"), losses_csv(trainer_.history()));
    io::write_file(path("loss.svg"), loss_svg(trainer_, summary_.evaluation));
    io::write_file(path("results.json"), results_json(trainer_, summary_));
    if (request_.json || summary_.interrupted) return;
    char text[160];
    std::snprintf(text, sizeof text, "%s accuracy %.2f%%, loss %.4f, after %lld steps in %.1f s (%.0f images/s)\n",
                  trainer_.has_test() ? "test" : "training", 100 * summary_.evaluation.accuracy, summary_.evaluation.loss,
                  static_cast<long long>(trainer_.step()), summary_.seconds, summary_.samples_per_second);
    std::cout << text << "written to " << request_.out << ": checkpoint.safetensors, losses.csv, loss.svg, results.json\n";
  }

  TrainRequest request_;
  std::chrono::steady_clock::time_point start_;
  Device device_;
  training::Trainer trainer_;
  RunSummary summary_;
  int64_t last_step_ = 0;
};

}  // namespace

int train_command(const Arguments& arguments) {
  Options options("plugrad train");
  add_train_options(options);
  options.parse(arguments);
  if (options.flag("help")) {
    options.print_help(
        {"plugrad train [--data NAME] [--device NAME] [options]",
         "Trains a network of linear layers with ReLU between them, by Adam with a cosine schedule. Progress goes to\n"
         "stderr. Ctrl-C saves and prints how to continue; a second one ends at once. So do SIGTERM, SIGHUP and a closed "
         "pipe.",
         kExamples});
    return 0;
  }
  return Session(read_train_request(options)).run();
}

}  // namespace plugrad::tool
