#include <plugrad/nn/lbfgs.hpp>

#include <core/nn/wolfe_search.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/contractions.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/parts.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <utility>

namespace plugrad::nn {
namespace {
enum {
  kLbfgsRate,
  kLbfgsMaxIter,
  kLbfgsMaxEval,
  kLbfgsToleranceGrad,
  kLbfgsToleranceChange,
  kLbfgsHistorySize,
  kLbfgsStrongWolfe,
  kLbfgsMaximize
};
constexpr double kLeastCurvature = 1e-10;
constexpr double kCounts = 2147483648.0;  // options that count moves or evaluations lie below

double largest(const Tensor& x) { return max(abs(x)).item<double>(); }
}  // namespace

// A move: its step, the change of the gradient, and 1 / <step, change>.
struct LbfgsMove {
  Tensor step, change, inverse;
};

struct LBFGS::History {
  // Keeps a move if its curvature is positive, and forgets the oldest one beyond `most`.
  void keep(const Tensor& step, const Tensor& change, size_t most) {
    const Tensor curvature = dot(change, step);
    if (curvature.item<double>() <= kLeastCurvature) return;
    while (moves.size() >= most) moves.pop_front();
    moves.push_back({step, change, div(1, curvature)});
  }
  // Returns minus the gradient times the estimate of the inverse second derivatives: algorithm 7.4. It reads nothing on the
  // host.
  Tensor direction(const Tensor& gradient) const {
    Tensor rest = neg(gradient);
    std::vector<Tensor> shares(moves.size());
    for (size_t i = moves.size(); i-- > 0;) {
      shares[i] = mul(dot(moves[i].step, rest), moves[i].inverse);
      rest = sub(rest, mul(moves[i].change, shares[i]));
    }
    if (!moves.empty()) {
      const LbfgsMove& last = moves.back();
      rest = div(rest, mul(dot(last.change, last.change), last.inverse));
    }
    for (size_t i = 0; i < moves.size(); ++i) {
      const Tensor share = sub(shares[i], mul(dot(moves[i].change, rest), moves[i].inverse));
      rest = add(rest, mul(moves[i].step, share));
    }
    return rest;
  }

  std::deque<LbfgsMove> moves;
  Tensor gradient, direction_taken;  // before the last move
  double length = 0;                 // of the last move
  int64_t iterations = 0, evaluations = 0;
};

// The work of one step().
class LBFGS::Step {
 public:
  Step(LBFGS& of, const Closure& closure) : history_(*of.history_), parameters_(of.parameters(0)), closure_(closure) {
    for (const std::string& name : of.option_names()) options_.push_back(of.option(name));
  }
  Tensor run();

 private:
  Tensor parameters_as_vector() const {
    std::vector<Tensor> all;
    for (const Tensor& each : parameters_) all.push_back(reshape(each.detach(), {-1}));
    return cat(all, 0);
  }
  Tensor gradient() const {
    std::vector<Tensor> all;
    for (const Tensor& each : parameters_) {
      const Tensor grad = each.grad();
      all.push_back(grad.defined() ? reshape(grad.detach(), {-1}) : zeros({each.count()}, each.dtype(), each.device()));
    }
    const Tensor whole = cat(all, 0);
    return options_[kLbfgsMaximize] != 0 ? neg(whole) : whole;
  }
  void move_to(const Tensor& place) {
    const NoGrad unrecorded;
    int64_t at = 0;
    for (Tensor each : parameters_) {
      each.copy_(reshape(narrow(place, 0, at, each.count()), each.shape()));
      at += each.count();
    }
  }
  double evaluate() {
    ++evaluations_;
    ++history_.evaluations;
    const Tensor loss = closure_();
    if (!first_loss_.defined()) first_loss_ = loss;
    const double value = loss.item<double>();
    return options_[kLbfgsMaximize] != 0 ? -value : value;
  }
  Tensor next_direction(const Tensor& gradient) const;
  void search(LinePoint& now, const Tensor& direction, double first);
  bool is_at_end(const LinePoint& before, const LinePoint& now, const Tensor& direction) const;

  History& history_;
  std::vector<Tensor> parameters_;
  const Closure& closure_;
  std::vector<double> options_;
  Tensor first_loss_;
  int evaluations_ = 0;
};

Tensor LBFGS::Step::next_direction(const Tensor& gradient) const {
  if (history_.direction_taken.defined())
    history_.keep(mul(history_.direction_taken, history_.length), sub(gradient, history_.gradient),
                  static_cast<size_t>(options_[kLbfgsHistorySize]));
  return history_.direction(gradient);
}

void LBFGS::Step::search(LinePoint& now, const Tensor& direction, double first) {
  const Tensor start = parameters_as_vector();
  const auto at = [&](double length) {
    move_to(add(start, mul(direction, length)));
    const double loss = evaluate();
    const Tensor grad = gradient();
    return LinePoint{length, loss, dot(grad, direction).item<double>(), grad};
  };
  now = wolfe_search(at, now, first, static_cast<int>(options_[kLbfgsMaxEval]) - evaluations_,
                     options_[kLbfgsToleranceChange] / largest(direction));
  move_to(add(start, mul(direction, now.length)));
}

bool LBFGS::Step::is_at_end(const LinePoint& before, const LinePoint& now, const Tensor& direction) const {
  return evaluations_ >= options_[kLbfgsMaxEval] || largest(now.gradient) <= options_[kLbfgsToleranceGrad] ||
         largest(direction) * now.length <= options_[kLbfgsToleranceChange] ||
         std::abs(now.loss - before.loss) < options_[kLbfgsToleranceChange];
}

Tensor LBFGS::Step::run() {
  LinePoint now{0, evaluate(), 0, gradient()};
  if (largest(now.gradient) <= options_[kLbfgsToleranceGrad]) return first_loss_;
  const int moves = static_cast<int>(options_[kLbfgsMaxIter]);
  for (int i = 1; i <= moves; ++i) {
    const bool is_first = ++history_.iterations == 1;
    const Tensor direction = next_direction(now.gradient);
    const double scale = is_first ? std::min(1.0, 1 / sum(abs(now.gradient)).item<double>()) : 1;
    const LinePoint before{0, now.loss, dot(now.gradient, direction).item<double>(), now.gradient};
    history_.gradient = before.gradient;
    history_.direction_taken = direction;
    history_.length = scale * options_[kLbfgsRate];
    if (before.slope > -options_[kLbfgsToleranceChange]) break;
    now = before;
    if (options_[kLbfgsStrongWolfe] != 0) {
      search(now, direction, history_.length);
      history_.length = now.length;
    } else {
      move_to(add(parameters_as_vector(), mul(direction, history_.length)));
      if (i == moves) break;
      now = {history_.length, evaluate(), 0, gradient()};
    }
    if (is_at_end(before, now, direction)) break;
  }
  return first_loss_;
}

LBFGS::LBFGS(ParameterGroups parameters, double lr, LBFGSOptions options)
    : Optimizer("lbfgs",
                {{"lr", lr},
                 {"max_iter", static_cast<double>(options.max_iter), kCounts, 1, true},
                 {"max_eval", options.max_eval ? *options.max_eval : std::floor(options.max_iter * 1.25), kCounts, 1, true},
                 {"tolerance_grad", options.tolerance_grad},
                 {"tolerance_change", options.tolerance_change},
                 {"history_size", static_cast<double>(options.history_size), kCounts, 1, true},
                 flag("strong_wolfe", options.strong_wolfe),
                 flag("maximize", options.maximize)},
                {}),
      history_(std::make_unique<History>()) {
  add_groups(std::move(parameters));
}

LBFGS::~LBFGS() = default;

void LBFGS::check(std::span<const double> options, const std::vector<Tensor>& tensors) const {
  if (groups() > 0 && !parameters(0).empty() && !tensors.empty() && !parameters(0)[0].is_same(tensors[0]))
    throw Error(Code::invalid,
                "[lbfgs] all parameters must be in one group, because the method treats them as a single vector");
  if (options[kLbfgsRate] == 0) throw Error(Code::invalid, "[lbfgs] lr is 0: expected a positive number");
  for (const Tensor& each : tensors)
    if (each.defined() && (each.dtype() != tensors[0].dtype() || each.device() != tensors[0].device()))
      throw Error(Code::invalid, std::string("[lbfgs] a parameter is ") + dtype_name(each.dtype()) + " on " +
                                     each.device().name() + ", the first one " + dtype_name(tensors[0].dtype()) + " on " +
                                     tensors[0].device().name() + ": give parameters of one dtype on one device");
}

void LBFGS::step() {
  throw Error(Code::invalid, "[lbfgs] step needs a closure that computes the loss and its gradient again");
}

Tensor LBFGS::step(const Closure& closure) {
  ++steps_;
  return Step(*this, closure).run();
}

int64_t LBFGS::evaluations() const { return history_->evaluations; }

std::vector<NamedTensor> LBFGS::state() const {
  const History& h = *history_;
  const Device device = parameters(0)[0].device();
  const auto number = [&](double value) { return Tensor::from(std::vector<double>{value}, {}, device); };
  std::vector<NamedTensor> all{{"n_iter.0", number(static_cast<double>(h.iterations))},
                               {"func_evals.0", number(static_cast<double>(h.evaluations))}};
  if (!h.direction_taken.defined()) return all;
  all.insert(all.end(), {{"t.0", number(h.length)}, {"d.0", h.direction_taken}, {"prev_flat_grad.0", h.gradient}});
  for (size_t i = 0; i < h.moves.size(); ++i) {
    all.push_back({"old_dirs.0." + std::to_string(i), h.moves[i].change});
    all.push_back({"old_stps.0." + std::to_string(i), h.moves[i].step});
  }
  return all;
}

namespace {
const Tensor* found(const std::vector<NamedTensor>& state, const std::string& name) {
  const auto entry = std::ranges::find(state, name, &NamedTensor::name);
  return entry == state.end() || !entry->tensor.defined() ? nullptr : &entry->tensor;
}

double number_in(const std::vector<NamedTensor>& state, const std::string& name) {
  const Tensor* const tensor = found(state, name);
  if (!tensor || tensor->count() != 1)
    throw Error(Code::invalid,
                "[load_state] number " + name + (tensor ? " is a tensor of several elements" : " is missing"));
  return tensor->item<double>();
}

int64_t count_in(const std::vector<NamedTensor>& state, const std::string& name) {
  const double count = number_in(state, name);
  if (!(count >= 0 && count <= 1e12))
    throw Error(Code::invalid, "[load_state] number " + name + " is " + std::to_string(count) + ": expected 0 to 1e12");
  return static_cast<int64_t>(count);
}

// Returns a copy of a vector of the state, which must have the parameters' number of elements and dtype.
Tensor vector_in(const std::vector<NamedTensor>& state, const std::string& name, int64_t count, const Tensor& like) {
  const Tensor* const tensor = found(state, name);
  if (!tensor) throw Error(Code::invalid, "[load_state] tensor " + name + " is missing");
  if (tensor->shape() != Shape{count} || tensor->dtype() != like.dtype())
    throw Error(Code::invalid, "[load_state] tensor " + name + " is " + dtype_name(tensor->dtype()) + " " +
                                   tensor->shape().text() + ", expected " + dtype_name(like.dtype()) + " " +
                                   Shape{count}.text());
  Tensor copy = zeros({count}, like.dtype(), like.device());
  copy.copy_(*tensor);
  return copy;
}
}  // namespace

void LBFGS::load_state(const std::vector<NamedTensor>& given, int64_t steps) {
  const NoGrad unrecorded;
  const std::vector<Tensor> tensors = all_parameters();
  int64_t count = 0;
  for (const Tensor& each : tensors) count += each.count();
  auto loaded = std::make_unique<History>();
  loaded->iterations = count_in(given, "n_iter.0");
  loaded->evaluations = count_in(given, "func_evals.0");
  if (found(given, "d.0")) {
    loaded->direction_taken = vector_in(given, "d.0", count, tensors[0]);
    loaded->gradient = vector_in(given, "prev_flat_grad.0", count, tensors[0]);
    loaded->length = number_in(given, "t.0");
  }
  for (size_t i = 0; found(given, "old_dirs.0." + std::to_string(i)); ++i)
    loaded->keep(vector_in(given, "old_stps.0." + std::to_string(i), count, tensors[0]),
                 vector_in(given, "old_dirs.0." + std::to_string(i), count, tensors[0]), SIZE_MAX);
  Optimizer::load_state({}, steps);
  history_ = std::move(loaded);
}

}  // namespace plugrad::nn
