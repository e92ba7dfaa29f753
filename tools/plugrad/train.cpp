// plugrad train.
#include <plugrad/distributed/collectives.hpp>
#include <plugrad/io/file.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/policy.hpp>
#include <tools/launch/ranks.hpp>
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
#include <optional>
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

// Joins the group of the ranks that a launcher started. ranks: the number that the user asked for; 0: any.
std::optional<distributed::Group> joined(int64_t ranks) {
  if (!distributed::is_launched()) return {};
  const distributed::Group group = distributed::init_process_group();
  if (ranks && ranks != group.size())
    throw UsageError("--ranks " + std::to_string(ranks) + ", but the launcher started " + std::to_string(group.size()) +
                     ": leave out one of them");
  return group;
}

class Session {
 public:
  explicit Session(const TrainRequest& request)
      : request_(request), start_(std::chrono::steady_clock::now()), device_(request.device),
        trainer_(request.config, training::load_data(request.config), device_) {
    if (!request.resume.empty()) trainer_.load(request.resume);
    if (request.compile) trainer_.compile();
    summary_.resumed_from = trainer_.step();
    last_step_ = request.steps > 0 ? std::min(request.steps, trainer_.total_steps()) : trainer_.total_steps();
    if (!is_first_) return;
    create_folder(request.out);
    const io::AtomicFile fails_early_where_nothing_can_be_written(path("checkpoint.safetensors"));
  }

  int run() {
    const InterruptGuard guard;
    if (is_first_) announce();
    if (trainer_.step() < last_step_) trainer_.try_evaluation();
    train();
    finish();
    if (request_.json && is_first_) std::cout << results_json(trainer_, summary_);
    if (!summary_.interrupted) return 0;
    constexpr int kSignalled = 128;
    if (!is_first_) return kSignalled + asked_;
    std::cerr << "interrupted after step " << trainer_.step() << "; everything is saved; continue with:\n  "
              << resume_command() << "\n";
    return kSignalled + asked_;
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
              << "): " << trainer_.network().text() << ", " << trainer_.parameter_count() << " parameters";
    if (group_) std::cerr << ", on " << group_->size() << " ranks (" << group_->engine() << ")";
    std::cerr << "\n";
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

  // The signal that asks the program to end, or 0: the same on all ranks, because all end after the same step.
  int asked() {
    asked_ = InterruptGuard::pending();
    if (group_ && group_->size() > 1) {
      const Tensor signal = full({1}, asked_, DType::i32, device_);
      distributed::all_reduce(signal, distributed::ReduceOp::max);
      asked_ = static_cast<int>(signal.item<int64_t>());
    }
    return asked_;
  }

  void save() const {
    if (is_first_) trainer_.save(path("checkpoint.safetensors"));
  }

  void train() {
    constexpr int64_t kStepsPerLook = 20;
    Progress progress(trainer_, last_step_, is_first_);
    const bool alone = !group_ || group_->size() == 1;
    const auto stop = [&] { return alone && InterruptGuard::pending() != 0; };
    const int64_t first_sample = trainer_.samples_seen();
    double saved_at = 0;
    trainer_.evaluate_epoch();  // of a run interrupted after it had saved an epoch
    while (trainer_.step() < last_step_ && !asked()) {
      trainer_.run_epoch_steps(std::min(kStepsPerLook, until_checkpoint()), stop);
      if (trainer_.step() == last_step_ || checkpoint_due(progress.seconds() - saved_at)) {
        save();
        saved_at = progress.seconds();
      }
      trainer_.evaluate_epoch();
      progress.update();
    }
    progress.clear();
    summary_.interrupted = trainer_.step() < last_step_;
    save();
    summary_.training_seconds = progress.seconds();
    summary_.samples_per_second =
        static_cast<double>(trainer_.samples_seen() - first_sample) / std::max(summary_.training_seconds, 1e-9);
  }

  void finish() {
    const auto& evaluations = trainer_.history().evaluations;
    const bool known = !evaluations.empty() && evaluations.back().step == trainer_.step();
    summary_.evaluation = known ? evaluations.back() : trainer_.evaluate();
    summary_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (!is_first_) return;
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
  std::optional<distributed::Group> group_ = joined(request_.ranks);  // of a launched process
  bool is_first_ = !group_ || group_->rank() == 0;                    // the rank that writes and prints
  int asked_ = 0;
  std::chrono::steady_clock::time_point start_;
  Device device_;
  training::Trainer trainer_;
  RunSummary summary_;
  int64_t last_step_ = 0;
};

// Starts this command once for each rank.
int run_on_ranks(const Arguments& arguments, int64_t ranks) {
  constexpr int64_t kMost = 4096;
  if (ranks < 1 || ranks > kMost)
    throw UsageError("--ranks " + std::to_string(ranks) + ": 1 to " + std::to_string(kMost) + " expected");
  std::vector<std::string> words{"/proc/self/exe", "train"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_ranks(words, static_cast<int>(ranks), std::chrono::seconds(5));
}

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
  const std::optional<int64_t> ranks = options.whole("ranks");
  if (ranks && !distributed::is_launched()) return run_on_ranks(arguments, *ranks);
  TrainRequest request = read_train_request(options);
  request.ranks = ranks.value_or(0);
  set_deterministic(request.deterministic);
  return Session(request).run();
}

}  // namespace plugrad::tool
