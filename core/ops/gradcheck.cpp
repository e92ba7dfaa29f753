// Gradients against central differences.
#include <core/ops/argument.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/derivatives.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <algorithm>
#include <sstream>

namespace plugrad {
namespace {
using Tensors = std::vector<Tensor>;

// f of the inputs that require a gradient; the remaining inputs are constant.
struct Partial {
  const TensorFunction& f;
  const Tensors& inputs;
  std::vector<size_t> places;  // of the varying inputs

  Tensors varying() const {
    Tensors all;
    for (const size_t place : places) all.push_back(inputs[place]);
    return all;
  }
  // The floating results.
  Tensors operator()(const Tensors& x) const {
    Tensors all = inputs;
    for (size_t i = 0; i < places.size(); ++i) all[places[i]] = x[i];
    Tensors results = f(all);
    std::erase_if(results, [](const Tensor& each) { return !is_inexact(each.dtype()); });
    return results;
  }
};

Partial partial(const char* name, const TensorFunction& f, const Tensors& inputs) {
  Partial made{f, inputs, {}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    require_defined(inputs[i], name);
    if (inputs[i].requires_grad()) made.places.push_back(i);
  }
  if (made.places.empty()) refuse(name, "no input requires a gradient: call requires_grad_() on one");
  return made;
}

// f's results after a single element of an input has moved by `step`.
Tensors moved(const Partial& f, size_t input, int64_t position, double step) {
  Tensors x;
  for (const Tensor& each : f.varying()) x.push_back(clone(each.detach()));
  {
    const NoGrad unrecorded;
    Tensor element = slice(reshape(x[input], {-1}), 0, position, position + 1);
    element.copy_(add(element, step));
  }
  for (Tensor& each : x) each.requires_grad_();
  Tensors results = f(x);
  for (Tensor& each : results) each = each.detach();
  return results;
}

// The central differences of each result along each element of an input: (elements of the result, elements of the input).
Tensors differences(const Partial& f, size_t input, double eps) {
  std::vector<Tensors> columns;
  const int64_t count = f.inputs[f.places[input]].count();
  for (int64_t i = 0; i < count; ++i) {
    const Tensors above = moved(f, input, i, eps), below = moved(f, input, i, -eps);
    columns.resize(above.size());
    for (size_t j = 0; j < above.size(); ++j) columns[j].push_back(reshape(div(sub(above[j], below[j]), 2 * eps), {-1}));
  }
  Tensors all;
  for (const Tensors& each : columns) all.push_back(stack(each, 1));
  return all;
}

std::string position_text(int64_t flat, const Shape& shape) {
  Shape position = shape;
  for (int i = shape.rank(); i-- > 0; flat /= shape[static_cast<size_t>(i)])
    position[static_cast<size_t>(i)] = flat % shape[static_cast<size_t>(i)];
  return position.text();
}

struct Compared {
  const char* name;
  size_t result, input;
  Shape result_shape, input_shape;
};

double element(const Tensor& x, int64_t position) {
  return slice(reshape(x, {-1}), 0, position, position + 1).item<double>();
}

// Throws for the first element of the gradient, a matrix, that differs from the differences.
void require_close(const Compared& what, const Tensor& gradient, const Tensor& difference, const GradcheckOptions& options) {
  const Tensor differs = logical_not(isclose(cast(gradient, difference.dtype()), difference, options.rtol, options.atol));
  if (!any(differs).item<bool>()) return;
  const int64_t first = argmax(reshape(cast(differs, DType::f32), {-1})).item<int64_t>();
  const int64_t columns = difference.size(1);
  std::ostringstream text;
  text.precision(10);
  text << "the gradient of result " << what.result << " at " << position_text(first / columns, what.result_shape)
       << " for input " << what.input << " at " << position_text(first % columns, what.input_shape) << " is "
       << element(gradient, first) << ", but differences say " << element(difference, first);
  if (difference.dtype() != DType::f64)
    text << ": the elements are " << dtype_name(difference.dtype()) << ", for which eps " << options.eps
         << " may be too small; use f64";
  refuse(what.name, text.str());
}

void check(const char* name, const Partial& f, const GradcheckOptions& options) {
  const EnableGrad recorded;
  if (!(options.eps > 0)) refuse(name, "eps is " + number_text(options.eps) + ": give more than 0");
  const Tensors x = f.varying();
  const auto jacobians = jacobian(f, x);
  for (size_t j = 0; j < x.size(); ++j) {
    const Tensors difference = differences(f, j, options.eps);
    for (size_t i = 0; i < difference.size(); ++i) {
      const Tensor& exact = jacobians[i][j];
      Shape shape;
      for (int axis = 0; axis < exact.rank() - x[j].rank(); ++axis) shape.push_back(exact.size(axis));
      if (exact.count())
        require_close({name, i, f.places[j], shape, x[j].shape()}, reshape(exact, difference[i].shape()), difference[i],
                      options);
    }
  }
}

// A seed with different elements.
Tensor chosen_seed(const Tensor& result) {
  const double count = static_cast<double>(std::max<int64_t>(result.count(), 1));
  const Tensor ramp = arange(0, result.count(), 1, DType::i64, result.device());
  return reshape(cast(add(div(cast(ramp, DType::f32), count), 0.5), result.dtype()), result.shape());
}
}  // namespace

void gradcheck(const TensorFunction& f, const Tensors& inputs, GradcheckOptions options) {
  check("gradcheck", partial("gradcheck", f, inputs), options);
}

void gradgradcheck(const TensorFunction& f, const Tensors& inputs, const Tensors& seeds, GradcheckOptions options) {
  const Partial of_inputs = partial("gradgradcheck", f, inputs);
  const EnableGrad recorded;
  Tensors all = of_inputs.varying();
  const size_t count = all.size();
  const Tensors results = of_inputs(all);
  if (!seeds.empty() && seeds.size() != results.size())
    refuse("gradgradcheck", std::to_string(seeds.size()) + " seeds for " + std::to_string(results.size()) +
                                " floating results: give one for each");
  for (size_t i = 0; i < results.size(); ++i)
    all.push_back((seeds.empty() ? chosen_seed(results[i]) : seeds[i].detach()).requires_grad_());
  const TensorFunction slope = [&](const Tensors& given) {
    const Tensors x(given.begin(), given.begin() + static_cast<ptrdiff_t>(count));
    const Tensors v(given.begin() + static_cast<ptrdiff_t>(count), given.end());
    return vjp(of_inputs, x, v, true).second;
  };
  check("gradgradcheck", partial("gradgradcheck", slope, all), options);
}

}  // namespace plugrad
