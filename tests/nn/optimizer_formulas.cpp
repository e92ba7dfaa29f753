#include <tests/nn/optimizer_formulas.hpp>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

namespace plugrad::test {
namespace {

// An element's state between steps: the two slots that most optimisers have, and a third one.
struct State {
  double a = 0, b = 0, c = 0;
};
// Makes a step of an element: p, its state, the gradient, and the number of the step.
using Element = std::function<void(double& p, State& state, double grad, int step)>;

Loop loop_of(Element element) {
  return [element = std::move(element), states = std::vector<State>(kStart.size())](Numbers& p, const Numbers& grad,
                                                                                    int step) mutable {
    for (size_t i = 0; i < p.size(); ++i) element(p[i], states[i], grad[i], step);
  };
}

template <class Kind, class Options> Formula formula(const char* name, double rate, Options options, Element element) {
  return {name, [=](std::vector<Tensor> p) { return std::make_unique<Kind>(std::move(p), rate, options); },
          [element = std::move(element)] { return loop_of(element); }};
}

Formula sgd(const char* name, double rate, nn::SGDOptions o) {
  return formula<nn::SGD>(name, rate, o, [=](double& p, State& s, double grad, int step) {
    double g = (o.maximize ? -grad : grad) + o.weight_decay * p;
    if (o.momentum != 0) {
      s.a = step == 1 ? g : o.momentum * s.a + (1 - o.dampening) * g;
      g = o.nesterov ? g + o.momentum * s.a : s.a;
    }
    p -= rate * g;
  });
}

template <class Kind> Formula adam(const char* name, double rate, nn::AdamOptions o) {
  const bool decoupled = o.decoupled_weight_decay || std::is_same_v<Kind, nn::AdamW>;
  return formula<Kind>(name, rate, o, [=](double& p, State& s, double grad, int step) {
    if (o.maximize) grad = -grad;
    if (decoupled) p *= 1 - rate * o.weight_decay;
    const double g = decoupled ? grad : grad + o.weight_decay * p;
    s.a = o.beta1 * s.a + (1 - o.beta1) * g;
    s.b = o.beta2 * s.b + (1 - o.beta2) * g * g;
    s.c = o.amsgrad ? std::max(s.c, s.b) : s.b;
    const double corrected = std::sqrt(s.c) / std::sqrt(1 - std::pow(o.beta2, step)) + o.epsilon;
    p -= rate / (1 - std::pow(o.beta1, step)) * s.a / corrected;
  });
}

Formula rmsprop(const char* name, double rate, nn::RMSpropOptions o) {
  return formula<nn::RMSprop>(name, rate, o, [=](double& p, State& s, double grad, int) {
    const double g = (o.maximize ? -grad : grad) + o.weight_decay * p;
    s.a = o.alpha * s.a + (1 - o.alpha) * g * g;
    s.b = o.alpha * s.b + (1 - o.alpha) * g;
    const double variance = o.centered ? s.a - s.b * s.b : s.a;
    s.c = o.momentum * s.c + g / (std::sqrt(variance) + o.epsilon);
    p -= rate * s.c;
  });
}

double sign_of(double x) { return static_cast<double>(x > 0) - static_cast<double>(x < 0); }

Formula lion(const char* name, double rate, nn::LionOptions o) {
  return formula<nn::Lion>(name, rate, o, [=](double& p, State& s, double grad, int) {
    if (o.maximize) grad = -grad;
    p -= rate * (sign_of(o.beta1 * s.a + (1 - o.beta1) * grad) + o.weight_decay * p);
    s.a = o.beta2 * s.a + (1 - o.beta2) * grad;
  });
}

Formula nadam(const char* name, double rate, nn::NAdamOptions o) {
  const auto momentum = [=](int step) { return o.beta1 * (1 - 0.5 * std::pow(0.96, step * o.momentum_decay)); };
  return formula<nn::NAdam>(name, rate, o, [=](double& p, State& s, double grad, int step) {
    if (o.maximize) grad = -grad;
    if (o.decoupled_weight_decay) p *= 1 - rate * o.weight_decay;
    const double g = o.decoupled_weight_decay ? grad : grad + o.weight_decay * p;
    s.a = o.beta1 * s.a + (1 - o.beta1) * g;
    s.b = o.beta2 * s.b + (1 - o.beta2) * g * g;
    s.c = (step == 1 ? 1 : s.c) * momentum(step);
    const double scale = std::sqrt(s.b / (1 - std::pow(o.beta2, step))) + o.epsilon, next = momentum(step + 1);
    p -= rate * ((1 - momentum(step)) / (1 - s.c) * g + next / (1 - s.c * next) * s.a) / scale;
  });
}

Formula radam(const char* name, double rate, nn::RAdamOptions o) {
  return formula<nn::RAdam>(name, rate, o, [=](double& p, State& s, double grad, int step) {
    if (o.maximize) grad = -grad;
    if (o.decoupled_weight_decay) p *= 1 - rate * o.weight_decay;
    const double g = o.decoupled_weight_decay ? grad : grad + o.weight_decay * p;
    s.a = o.beta1 * s.a + (1 - o.beta1) * g;
    s.b = o.beta2 * s.b + (1 - o.beta2) * g * g;
    const double mean = s.a / (1 - std::pow(o.beta1, step)), unbiased = 1 - std::pow(o.beta2, step);
    const double longest = 2 / (1 - o.beta2) - 1, length = longest - 2 * step * std::pow(o.beta2, step) / unbiased;
    double scale = 1;
    if (length > 5)
      scale = std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) *
              std::sqrt(unbiased) / (std::sqrt(s.b) + o.epsilon);
    p -= rate * mean * scale;
  });
}

Formula adamax(const char* name, double rate, nn::AdamaxOptions o) {
  return formula<nn::Adamax>(name, rate, o, [=](double& p, State& s, double grad, int step) {
    const double g = (o.maximize ? -grad : grad) + o.weight_decay * p;
    s.a = o.beta1 * s.a + (1 - o.beta1) * g;
    s.b = std::max(o.beta2 * s.b, std::abs(g) + o.epsilon);
    p -= rate / (1 - std::pow(o.beta1, step)) * s.a / s.b;
  });
}

Formula adagrad(const char* name, double rate, nn::AdagradOptions o) {
  return formula<nn::Adagrad>(name, rate, o, [=](double& p, State& s, double grad, int step) {
    const double g = (o.maximize ? -grad : grad) + o.weight_decay * p;
    s.a = (step == 1 ? o.initial_accumulator_value : s.a) + g * g;
    p -= rate / (1 + (step - 1) * o.lr_decay) * g / (std::sqrt(s.a) + o.epsilon);
  });
}

Formula adadelta(const char* name, double rate, nn::AdadeltaOptions o) {
  return formula<nn::Adadelta>(name, rate, o, [=](double& p, State& s, double grad, int) {
    const double g = (o.maximize ? -grad : grad) + o.weight_decay * p;
    s.a = o.rho * s.a + (1 - o.rho) * g * g;
    const double move = std::sqrt(s.b + o.epsilon) / std::sqrt(s.a + o.epsilon) * g;
    s.b = o.rho * s.b + (1 - o.rho) * move * move;
    p -= rate * move;
  });
}

Formula rprop(const char* name, double rate, nn::RpropOptions o) {
  return formula<nn::Rprop>(name, rate, o, [=](double& p, State& s, double grad, int step) {
    double g = o.maximize ? -grad : grad;
    const double turn = g * s.a, factor = turn > 0 ? o.eta_plus : turn < 0 ? o.eta_minus : 1;
    s.b = std::clamp((step == 1 ? rate : s.b) * factor, o.step_size_min, o.step_size_max);
    if (turn < 0) g = 0;
    p -= sign_of(g) * s.b;
    s.a = g;
  });
}

Formula asgd(const char* name, double rate, nn::ASGDOptions o) {
  return formula<nn::ASGD>(name, rate, o, [=](double& p, State&, double grad, int step) {
    const double g = (o.maximize ? -grad : grad) + o.weight_decay * p;
    const double eta = step == 1 ? rate : rate / std::pow(1 + o.lambda * rate * (step - 1), o.alpha);
    p = p * (1 - o.lambda * eta) - eta * g;
  });
}

std::vector<Formula> formulas_of_relatives() {
  return {nadam("nadam", 0.01, {}),
          nadam("nadam with decay", 0.01, {.epsilon = 1e-3, .weight_decay = 0.5, .momentum_decay = 0.1}),
          nadam("nadam with decoupled decay", 0.01, {.weight_decay = 0.5, .decoupled_weight_decay = true, .maximize = true}),
          radam("radam", 0.01, {}),
          radam("radam with decay", 0.01, {.beta1 = 0.5, .beta2 = 0.75, .epsilon = 1e-2, .weight_decay = 0.25}),
          radam("radam with decoupled decay", 0.01, {.weight_decay = 0.5, .decoupled_weight_decay = true, .maximize = true}),
          adamax("adamax", 0.01, {}),
          adamax("adamax with decay", 0.01, {.beta1 = 0.75, .beta2 = 0.5, .epsilon = 1e-2, .weight_decay = 0.25}),
          adamax("adamax, maximize", 0.01, {.maximize = true}),
          adagrad("adagrad", 0.01, {}),
          adagrad("adagrad with decay", 0.125,
                  {.lr_decay = 0.25, .weight_decay = 0.25, .initial_accumulator_value = 0.5, .maximize = true}),
          adadelta("adadelta", 0.5, {}),
          adadelta("adadelta with decay", 1, {.rho = 0.75, .epsilon = 1e-2, .weight_decay = 0.25, .maximize = true}),
          rprop("rprop", 0.0625, {}),
          rprop("rprop with limits", 0.0625,
                {.eta_minus = 0.25, .eta_plus = 1.5, .step_size_min = 0.03125, .step_size_max = 0.125, .maximize = true}),
          asgd("asgd", 0.125, {}),
          asgd("asgd with decay", 0.125, {.lambda = 0.25, .alpha = 0.5, .t0 = 3, .weight_decay = 0.25, .maximize = true})};
}
}  // namespace

Numbers gradient(int step) {
  Numbers g;
  for (size_t i = 0; i < kStart.size(); ++i)
    g.push_back(static_cast<double>((step * 7 + static_cast<int>(i) * 5) % 11 - 5) / 8);
  return g;
}

std::vector<Formula> formulas() {
  std::vector<Formula> all{
      sgd("plain", 0.1, {}),
      sgd("decay", 0.1, {.weight_decay = 0.25}),
      sgd("momentum", 0.05, {.momentum = 0.9}),
      sgd("momentum and decay", 0.05, {.momentum = 0.9, .weight_decay = 0.125}),
      sgd("nesterov", 0.05, {.momentum = 0.75, .nesterov = true}),
      sgd("nesterov and decay", 0.05, {.momentum = 0.75, .weight_decay = 0.5, .nesterov = true}),
      sgd("dampening", 0.05, {.momentum = 0.75, .weight_decay = 0.5, .dampening = 0.25}),
      sgd("maximize", 0.05, {.momentum = 0.75, .weight_decay = 0.5, .maximize = true}),
      adam<nn::Adam>("adam", 0.01, {}),
      adam<nn::Adam>("adam with decay", 0.01, {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.5}),
      adam<nn::Adam>("adam with decoupled decay", 0.01,
                     {.weight_decay = 0.5, .maximize = true, .decoupled_weight_decay = true}),
      adam<nn::Adam>("amsgrad", 0.01, {.beta2 = 0.5, .weight_decay = 0.5, .amsgrad = true}),
      adam<nn::AdamW>("adamw", 0.01, {.weight_decay = 0.01}),
      adam<nn::AdamW>("adamw with much decay", 0.1, {.beta1 = 0.5, .beta2 = 0.9, .epsilon = 1e-4, .weight_decay = 0.75}),
      adam<nn::AdamW>("adamw, amsgrad", 0.01, {.beta2 = 0.5, .weight_decay = 0.5, .amsgrad = true, .maximize = true}),
      rmsprop("rmsprop", 0.01, {.epsilon = 1e-3}),
      rmsprop("rmsprop, centered", 0.01, {.alpha = 0.75, .epsilon = 0.125, .weight_decay = 0.25, .centered = true}),
      rmsprop("rmsprop with momentum", 0.01, {.alpha = 0.9, .epsilon = 1e-2, .momentum = 0.5, .maximize = true}),
      lion("lion", 0.0625, {}),
      lion("lion with decay", 0.0625, {.beta1 = 0.75, .beta2 = 0.5, .weight_decay = 0.5, .maximize = true})};
  const std::vector<Formula> relatives = formulas_of_relatives();
  all.insert(all.end(), relatives.begin(), relatives.end());
  return all;
}

}  // namespace plugrad::test
