#include <plugrad/nn/schedules.hpp>

#include <core/runtime/observe/observed.hpp>
#include <core/runtime/observe/step_part.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace plugrad::nn {
namespace {
void require(bool holds, const char* name, const char* expected) {
  if (!holds) throw Error(Code::invalid, std::string("[") + name + "] expected " + expected);
}

// From a to b along half a cosine; share is the part of the way, 0 .. 1.
double along_cosine(double a, double b, double share) { return b + (a - b) * (1 + std::cos(std::numbers::pi * share)) / 2; }
}  // namespace

LRScheduler::~LRScheduler() {
  if (is_captured_) ++observe::changes;
}

void LRScheduler::step() {
  if (!observe::is_on() || !is_formula()) [[likely]]
    return set_epoch(epoch_ + 1);
  is_captured_ = true;
  const auto by = [this](int64_t epochs) {
    const observe::DoneOnce permitted;  // replays set the same options
    set_epoch(epoch_ + epochs);
  };
  observe::run_part({[by] {
                       by(1);
                       return uint64_t{0};
                     },
                     [] {}, [by] { by(-1); }});
}

void LRScheduler::set_epoch(int64_t epoch) {
  require(epoch >= 0, "lr_scheduler", "an epoch of 0 or more");
  const int64_t before = std::exchange(epoch_, epoch);
  try {
    apply(epoch);
  } catch (...) {
    epoch_ = before;
    throw;
  }
}

void LRScheduler::apply(int64_t epoch) {
  for (size_t i = 0; i < optimizer_.groups(); ++i)
    optimizer_.set_option("lr", rate(optimizer_.initial_rate(i), epoch, i), i);
}

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> rates;
  for (size_t i = 0; i < optimizer_.groups(); ++i) rates.push_back(optimizer_.option("lr", i));
  return rates;
}

std::vector<double> LRScheduler::base_lrs() const {
  std::vector<double> rates;
  for (size_t i = 0; i < optimizer_.groups(); ++i) rates.push_back(optimizer_.initial_rate(i));
  return rates;
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor)
    : LRScheduler(optimizer), factor_(std::move(factor)) {
  require(static_cast<bool>(factor_), "LambdaLR", "a function of the epoch");
  set_epoch(0);
}
double LambdaLR::rate(double initial, int64_t epoch, size_t) const { return initial * factor_(epoch); }

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  require(step_size > 0 && gamma >= 0, "StepLR", "a step_size of at least 1 and a gamma of 0 or more");
  set_epoch(0);
}
double StepLR::rate(double initial, int64_t epoch, size_t) const {
  const int64_t steps = epoch / step_size_;
  return initial * std::pow(gamma_, static_cast<double>(steps));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  require(std::ranges::is_sorted(milestones_) && gamma >= 0, "MultiStepLR", "rising milestones and a gamma of 0 or more");
  set_epoch(0);
}
double MultiStepLR::rate(double initial, int64_t epoch, size_t) const {
  const auto passed = std::ranges::upper_bound(milestones_, epoch) - milestones_.begin();
  return initial * std::pow(gamma_, static_cast<double>(passed));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) {
  require(gamma >= 0, "ExponentialLR", "a gamma of 0 or more");
  set_epoch(0);
}
double ExponentialLR::rate(double initial, int64_t epoch, size_t) const {
  return initial * std::pow(gamma_, static_cast<double>(epoch));
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters)
    : LRScheduler(optimizer), start_factor_(start_factor), end_factor_(end_factor), total_iters_(total_iters) {
  require(start_factor >= 0 && end_factor >= 0 && total_iters > 0, "LinearLR",
          "factors of 0 or more and total_iters of at least 1");
  set_epoch(0);
}
double LinearLR::rate(double initial, int64_t epoch, size_t) const {
  const double share = static_cast<double>(std::min(epoch, total_iters_)) / static_cast<double>(total_iters_);
  return initial * (start_factor_ + (end_factor_ - start_factor_) * share);
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : LRScheduler(optimizer), factor_(factor), total_iters_(total_iters) {
  require(factor >= 0, "ConstantLR", "a factor of 0 or more");
  set_epoch(0);
}
double ConstantLR::rate(double initial, int64_t epoch, size_t) const {
  return epoch < total_iters_ ? initial * factor_ : initial;
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power)
    : LRScheduler(optimizer), total_iters_(total_iters), power_(power) {
  require(total_iters > 0 && power >= 0, "PolynomialLR", "total_iters of at least 1 and a power of 0 or more");
  set_epoch(0);
}
double PolynomialLR::rate(double initial, int64_t epoch, size_t) const {
  const double share = static_cast<double>(std::min(epoch, total_iters_)) / static_cast<double>(total_iters_);
  return initial * std::pow(1 - share, power_);
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min)
    : LRScheduler(optimizer), t_max_(T_max), eta_min_(eta_min) {
  require(T_max > 0 && eta_min >= 0, "CosineAnnealingLR", "T_max of at least 1 and eta_min of 0 or more");
  set_epoch(0);
}
double CosineAnnealingLR::rate(double initial, int64_t epoch, size_t) const {
  return along_cosine(initial, eta_min_, static_cast<double>(epoch) / static_cast<double>(t_max_));
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult, double eta_min)
    : LRScheduler(optimizer), t_0_(T_0), t_mult_(T_mult), eta_min_(eta_min) {
  require(T_0 > 0 && T_mult > 0 && eta_min >= 0, "CosineAnnealingWarmRestarts",
          "T_0 and T_mult of at least 1 and eta_min of 0 or more");
  set_epoch(0);
}
double CosineAnnealingWarmRestarts::rate(double initial, int64_t epoch, size_t) const {
  int64_t length = t_0_;
  if (t_mult_ == 1) epoch %= length;
  while (epoch >= length) {
    epoch -= length;
    length *= t_mult_;
  }
  return along_cosine(initial, eta_min_, static_cast<double>(epoch) / static_cast<double>(length));
}

// --- One cycle.

namespace {
// The optimiser's option for the momentum; empty without cycle_momentum.
std::string momentum_of(const Optimizer& optimizer, bool cycle_momentum, const char* schedule) {
  if (!cycle_momentum) return {};
  const std::vector<std::string> names = optimizer.option_names();
  for (const char* each : {"momentum", "beta1"})
    if (std::ranges::find(names, each) != names.end() && optimizer.option(each) > 0) return each;
  require(false, schedule, "an optimiser with a momentum, or cycle_momentum=false");
  return {};
}

// A rate for each group, from one for all or one for each.
std::vector<double> of_groups(std::vector<double> rates, const Optimizer& optimizer, const char* schedule) {
  if (rates.size() == 1) rates.resize(optimizer.groups(), rates[0]);
  require(rates.size() == optimizer.groups(), schedule, "a rate for all groups, or one for each");
  for (const double each : rates) require(each >= 0 && std::isfinite(each), schedule, "finite rates of 0 or more");
  return rates;
}
}  // namespace

CyclicLR::CyclicLR(Optimizer& optimizer, std::vector<double> base_lrs, std::vector<double> max_lrs,
                   const CyclicOptions& options)
    : LRScheduler(optimizer), base_lrs_(of_groups(std::move(base_lrs), optimizer, "CyclicLR")),
      max_lrs_(of_groups(std::move(max_lrs), optimizer, "CyclicLR")), options_(options),
      momentum_(momentum_of(optimizer, options.cycle_momentum, "CyclicLR")) {
  require(options.step_size_up > 0 && options.step_size_down.value_or(1) > 0 && options.gamma > 0, "CyclicLR",
          "step_size_up and step_size_down of at least 1, and a gamma above 0");
  set_epoch(0);
}

// The part of the way from base to max at an epoch.
double CyclicLR::height(int64_t epoch) const {
  const double up = static_cast<double>(options_.step_size_up);
  const double down = static_cast<double>(options_.step_size_down.value_or(options_.step_size_up));
  const double at = static_cast<double>(epoch), cycle = std::floor(at / (up + down));
  const double within = at / (up + down) - cycle, top = up / (up + down);
  const double part = within <= top ? within / top : (1 - within) / (1 - top);
  if (options_.mode == CyclicOptions::Mode::triangular2) return part / std::pow(2.0, cycle);
  return options_.mode == CyclicOptions::Mode::exp_range ? part * std::pow(options_.gamma, at) : part;
}

double CyclicLR::rate(double, int64_t epoch, size_t group) const {
  return base_lrs_[group] + (max_lrs_[group] - base_lrs_[group]) * height(epoch);
}

void CyclicLR::apply(int64_t epoch) {
  LRScheduler::apply(epoch);
  if (momentum_.empty()) return;
  const double momentum = options_.max_momentum - (options_.max_momentum - options_.base_momentum) * height(epoch);
  for (size_t i = 0; i < optimizer_.groups(); ++i) optimizer_.set_option(momentum_, momentum, i);
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, double max_lr, int64_t total_steps, const OneCycleOptions& options)
    : LRScheduler(optimizer), max_lr_(max_lr), total_steps_(total_steps), options_(options),
      momentum_(momentum_of(optimizer, options.cycle_momentum, "OneCycleLR")) {
  require(max_lr >= 0 && total_steps > 0 && options.pct_start >= 0 && options.pct_start <= 1 && options.div_factor > 0 &&
              options.final_div_factor > 0,
          "OneCycleLR", "max_lr of 0 or more, total_steps of at least 1, pct_start in [0, 1] and positive factors");
  set_epoch(0);
}

// From low up to high, and down to last, or, in three phases, to low and then to last.
double OneCycleLR::between(int64_t epoch, double low, double high, double last) const {
  require(epoch <= total_steps_, "OneCycleLR", "at most total_steps calls of step()");
  const double at = static_cast<double>(std::min(epoch, total_steps_ - 1)), end = static_cast<double>(total_steps_ - 1);
  const double top = options_.pct_start * static_cast<double>(total_steps_) - 1, bottom = 2 * top;
  const auto way = [&](double a, double b, double from, double to) {
    const double share = to > from ? (at - from) / (to - from) : 1;
    return options_.linear ? a + (b - a) * share : along_cosine(a, b, share);
  };
  if (at <= top) return way(low, high, 0, top);
  if (!options_.three_phase) return way(high, last, top, end);
  return at <= bottom ? way(high, low, top, bottom) : way(low, last, bottom, end);
}

double OneCycleLR::rate(double, int64_t epoch, size_t) const {
  const double low = max_lr_ / options_.div_factor;
  return between(epoch, low, max_lr_, low / options_.final_div_factor);
}

void OneCycleLR::apply(int64_t epoch) {
  LRScheduler::apply(epoch);
  if (momentum_.empty()) return;
  const double momentum = between(epoch, options_.max_momentum, options_.base_momentum, options_.max_momentum);
  for (size_t i = 0; i < optimizer_.groups(); ++i) optimizer_.set_option(momentum_, momentum, i);
}

// --- Several schedules.

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  const bool fits = !schedulers_.empty() && milestones_.size() + 1 == schedulers_.size() &&
                    std::ranges::is_sorted(milestones_) && std::ranges::find(schedulers_, nullptr) == schedulers_.end();
  require(fits, "SequentialLR", "schedules, and a rising milestone between each two of them");
  for (const auto& each : schedulers_)
    require(&each->optimizer_ == &optimizer, "SequentialLR", "schedules of the same optimiser");
  set_epoch(0);
}

// Returns the index of an epoch's schedule, and the epoch within this schedule.
std::pair<size_t, int64_t> SequentialLR::place(int64_t epoch) const {
  const auto passed = std::ranges::upper_bound(milestones_, epoch) - milestones_.begin();
  const size_t at = static_cast<size_t>(passed);
  return {at, at ? epoch - milestones_[at - 1] : epoch};
}
double SequentialLR::rate(double initial, int64_t epoch, size_t group) const {
  const auto [at, local] = place(epoch);
  return schedulers_[at]->rate(initial, local, group);
}
void SequentialLR::apply(int64_t epoch) {
  const auto [at, local] = place(epoch);
  schedulers_[at]->set_epoch(local);
}

// --- By a metric.

SWALR::SWALR(Optimizer& optimizer, std::vector<double> swa_lrs, int64_t anneal_epochs, bool linear)
    : LRScheduler(optimizer), swa_lrs_(of_groups(std::move(swa_lrs), optimizer, "SWALR")), anneal_epochs_(anneal_epochs),
      linear_(linear) {
  require(anneal_epochs >= 0, "SWALR", "anneal_epochs of 0 or more");
}

// The part of the way to swa_lr at an epoch.
double SWALR::share(int64_t epoch) const {
  if (epoch == 0) return 0;
  if (epoch >= anneal_epochs_) return 1;
  const double part = static_cast<double>(epoch) / static_cast<double>(anneal_epochs_);
  return linear_ ? part : along_cosine(0, 1, part);
}

double SWALR::rate(double initial, int64_t epoch, size_t group) const {
  return swa_lrs_[group] * share(epoch) + initial * (1 - share(epoch));
}

// The rates at the begin of the way follow from the current rates, so that a resumed training needs the epoch only.
void SWALR::apply(int64_t epoch) {
  const double before = share(std::exchange(applied_, epoch));
  for (size_t i = 0; i < optimizer_.groups(); ++i) {
    const double now = optimizer_.option("lr", i);
    const double first = before == 1 ? now : (now - before * swa_lrs_[i]) / (1 - before);
    optimizer_.set_option("lr", rate(std::max(0.0, first), epoch, i), i);
  }
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options)
    : optimizer_(optimizer), options_(options),
      best_(options.max ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity()) {
  require(options.factor >= 0 && options.factor < 1 && options.patience >= 0 && options.min_lr >= 0, "ReduceLROnPlateau",
          "a factor in [0, 1), and patience and min_lr of 0 or more");
}

bool ReduceLROnPlateau::better(double metric) const {
  const double by = options_.relative ? std::abs(best_) * options_.threshold : options_.threshold;
  if (std::isinf(best_)) return options_.max ? metric > best_ : metric < best_;
  return options_.max ? metric > best_ + by : metric < best_ - by;
}

void ReduceLROnPlateau::reduce() {
  for (size_t i = 0; i < optimizer_.groups(); ++i) {
    const double now = optimizer_.option("lr", i), reduced = std::max(now * options_.factor, options_.min_lr);
    if (now - reduced > options_.eps) optimizer_.set_option("lr", reduced, i);
  }
}

std::vector<double> ReduceLROnPlateau::rates() const {
  std::vector<double> rates;
  for (size_t i = 0; i < optimizer_.groups(); ++i) rates.push_back(optimizer_.option("lr", i));
  return rates;
}

void ReduceLROnPlateau::load_state(const State& state) {
  require(state.num_bad_epochs >= 0 && state.cooldown_counter >= 0 && state.last_epoch >= 0, "ReduceLROnPlateau",
          "a state whose numbers of epochs are 0 or more");
  best_ = state.best;
  bad_ = state.num_bad_epochs;
  cooling_ = state.cooldown_counter;
  epoch_ = state.last_epoch;
}

void ReduceLROnPlateau::step(double metric) {
  ++epoch_;
  const bool improved = better(metric);
  if (improved) best_ = metric;
  bad_ = improved ? 0 : bad_ + 1;
  if (cooling_ > 0) {
    --cooling_;
    bad_ = 0;
  }
  if (bad_ <= options_.patience) return;
  reduce();
  cooling_ = options_.cooldown;
  bad_ = 0;
}

}  // namespace plugrad::nn
