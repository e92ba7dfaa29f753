#include <tests/core/gradient_rows.hpp>

namespace plugrad::test {
namespace {
constexpr double kLow = -2, kHigh = 2;

Tensor condition(const Shape& shape) {
  std::vector<bool> bits;
  for (int64_t i = 0; i < shape.count(); ++i) bits.push_back(i % 3 != 1);
  return Tensor::from(bits, shape);
}

Tensor exponents() { return f64({0, 1, 2, 3, -2, -1}, {2, 3}); }
Tensor repeating() { return i64({2, 0, 2, 1, 0, 0, 2, 2}, {4, 2}); }
Tensor fewer_rows() { return i64({3, 3, 0, 1}, {2, 2}); }
Tensor entropy(const Inputs& x, Reduction reduction) { return cross_entropy(x[0], i64({2, 0, 3}), reduction); }
Tensor cat_five(const Inputs& x) { return exp(cat({x[0], x[1], x[2], x[0], x[3]}, -2)); }

using Rows = std::vector<GradientRow>;

Rows arithmetic_rows() {
  return {
      {"add", "Equal", {{2, 3}, {2, 3}}, kLow, kHigh, [](const Inputs& x) { return x[0] + x[1]; }},
      {"add", "Broadcast", {{2, 1, 3}, {4, 1}}, kLow, kHigh, [](const Inputs& x) { return x[0] + x[1]; }},
      {"add", "RankZero", {{}, {3}}, kLow, kHigh, [](const Inputs& x) { return x[0] + x[1]; }},
      {"add", "NumberRight", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return x[0] + 2.5; }},
      {"add", "NumberLeft", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return 2.5 + x[0]; }},
      {"add", "Itself", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return x[0] + x[0]; }},
      {"sub", "Equal", {{2, 3}, {2, 3}}, kLow, kHigh, [](const Inputs& x) { return x[0] - x[1]; }},
      {"sub", "Broadcast", {{3}, {2, 3}}, kLow, kHigh, [](const Inputs& x) { return x[0] - x[1]; }},
      {"sub", "BroadcastRight", {{2, 3}, {1, 1}}, kLow, kHigh, [](const Inputs& x) { return x[0] - x[1]; }},
      {"sub", "NumberRight", {{4}}, kLow, kHigh, [](const Inputs& x) { return x[0] - 1.5; }},
      {"sub", "NumberLeft", {{4}}, kLow, kHigh, [](const Inputs& x) { return 1.5 - x[0]; }},
      {"mul", "Equal", {{2, 3}, {2, 3}}, kLow, kHigh, [](const Inputs& x) { return x[0] * x[1]; }},
      {"mul", "Broadcast", {{2, 1, 3}, {4, 1}}, kLow, kHigh, [](const Inputs& x) { return x[0] * x[1]; }},
      {"mul", "RankZero", {{}, {}}, kLow, kHigh, [](const Inputs& x) { return x[0] * x[1]; }},
      {"mul", "NumberRight", {{4}}, kLow, kHigh, [](const Inputs& x) { return x[0] * 1.5; }},
      {"mul", "NumberLeft", {{4}}, kLow, kHigh, [](const Inputs& x) { return -3 * x[0]; }},
      {"mul", "Square", {{4}}, kLow, kHigh, [](const Inputs& x) { return x[0] * x[0]; }},
      {"div", "Equal", {{2, 3}, {2, 3}}, 0.5, 2.5, [](const Inputs& x) { return x[0] / x[1]; }},
      {"div", "Broadcast", {{3}, {2, 1}}, 0.5, 2.5, [](const Inputs& x) { return x[0] / x[1]; }},
      {"div", "NegativeDenominator", {{3}, {3}}, -2.5, -0.5, [](const Inputs& x) { return x[0] / x[1]; }},
      {"div", "NumberRight", {{4}}, kLow, kHigh, [](const Inputs& x) { return x[0] / 1.5; }},
      {"div", "NumberLeft", {{4}}, 0.5, 2.5, [](const Inputs& x) { return 1.5 / x[0]; }},
  };
}

Rows power_rows() {
  return {
      {"pow", "Equal", {{2, 3}, {2, 3}}, 0.5, 2.5, [](const Inputs& x) { return pow(x[0], x[1]); }},
      {"pow", "Broadcast", {{2, 1}, {3}}, 0.5, 2.5, [](const Inputs& x) { return pow(x[0], x[1]); }},
      {"pow", "ConstantExponents", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return pow(x[0], exponents()); }, {0}},
      {"pow", "Cube", {{4}}, kLow, kHigh, [](const Inputs& x) { return pow(x[0], 3); }, {0}},
      {"pow", "Square", {{4}}, kLow, kHigh, [](const Inputs& x) { return pow(x[0], 2); }},
      {"pow", "First", {{4}}, kLow, kHigh, [](const Inputs& x) { return pow(x[0], 1); }},
      {"pow", "Zeroth", {{4}}, kLow, kHigh, [](const Inputs& x) { return pow(x[0], 0); }},
      {"pow", "Half", {{4}}, 0.5, 2.5, [](const Inputs& x) { return pow(x[0], 0.5); }},
      {"pow", "Negative", {{4}}, 0.5, 2.5, [](const Inputs& x) { return pow(x[0], -1.5); }},
      {"pow", "OfNumber", {{4}}, kLow, kHigh, [](const Inputs& x) { return pow(2.5, x[0]); }},
      {"pow", "OfZero", {{4}}, 0.5, 2.5, [](const Inputs& x) { return pow(0, x[0]); }},
  };
}

Rows choice_rows() {
  return {
      {"maximum", "Equal", {{2, 3}, {2, 3}}, kLow, kHigh, [](const Inputs& x) { return maximum(x[0], x[1]); }, {}, true},
      {"maximum", "Broadcast", {{2, 1}, {3}}, kLow, kHigh, [](const Inputs& x) { return maximum(x[0], x[1]); }, {}, true},
      {"maximum", "Number", {{5}}, kLow, kHigh, [](const Inputs& x) { return maximum(x[0], 0.25); }, {0.25}},
      {"minimum", "Equal", {{2, 3}, {2, 3}}, kLow, kHigh, [](const Inputs& x) { return minimum(x[0], x[1]); }, {}, true},
      {"minimum", "Broadcast", {{3}, {2, 1}}, kLow, kHigh, [](const Inputs& x) { return minimum(x[0], x[1]); }, {}, true},
      {"minimum", "Number", {{5}}, kLow, kHigh, [](const Inputs& x) { return minimum(x[0], 0.25); }, {0.25}},
      {"where",
       "Equal",
       {{2, 3}, {2, 3}},
       kLow,
       kHigh,
       [](const Inputs& x) {
         return where(condition({2, 3}), x[0], x[1]);
       }},
      {"where",
       "Broadcast",
       {{3}, {2, 1}},
       kLow,
       kHigh,
       [](const Inputs& x) {
         return where(condition({2, 2, 1}), x[0], x[1]);
       }},
      {"where", "NumberElse", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return where(condition({3}), x[0], 4); }},
      {"where",
       "NumberThen",
       {{2, 3}},
       kLow,
       kHigh,
       [](const Inputs& x) {
         return where(condition({2, 1}), -4, x[0]);
       }},
  };
}

Rows function_rows() {
  return {
      {"neg", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return -x[0]; }},
      {"abs", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return abs(x[0]); }, {0}},
      {"abs", "Squared", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return abs(x[0]) * x[0]; }, {0}},
      {"sign", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return sign(x[0]); }, {0}},
      {"sqrt", "Plain", {{2, 3}}, 0.5, 2.5, [](const Inputs& x) { return sqrt(x[0]); }},
      {"exp", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return exp(x[0]); }},
      {"log", "Plain", {{2, 3}}, 0.5, 2.5, [](const Inputs& x) { return log(x[0]); }},
      {"tanh", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return tanh(x[0]); }},
      {"tanh", "RankZero", {{}}, kLow, kHigh, [](const Inputs& x) { return tanh(x[0]); }},
      {"tanh", "Twice", {{4}}, kLow, kHigh, [](const Inputs& x) { return tanh(tanh(x[0]) * x[0]); }},
      {"sigmoid", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return sigmoid(x[0]); }},
      {"sigmoid", "Twice", {{4}}, kLow, kHigh, [](const Inputs& x) { return sigmoid(sigmoid(x[0]) * x[0]); }},
      {"erf", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return erf(x[0]); }},
      {"relu", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return relu(x[0]); }, {0}},
      {"relu", "Squared", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return relu(x[0]) * x[0]; }, {0}},
      {"cast",
       "ToSingleAndBack",
       {{2, 3}},
       kLow,
       kHigh,
       [](const Inputs& x) { return cast(cast(x[0], DType::f32), DType::f64); }},
      {"floor", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return floor(x[0]) * x[0]; }, {-2, -1, 0, 1, 2}},
      {"ceil", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return ceil(x[0]) * x[0]; }, {-2, -1, 0, 1, 2}},
      {"trunc", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return trunc(x[0]) * x[0]; }, {-2, -1, 0, 1, 2}},
      {"round", "Plain", {{2, 3}}, -2.3, 2.2, [](const Inputs& x) { return round(x[0]) * x[0]; }, {-1.5, -0.5, 0.5, 1.5}},
      {"square", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return square(x[0]); }},
      {"reciprocal", "Plain", {{2, 3}}, 0.5, 2.5, [](const Inputs& x) { return reciprocal(x[0]); }},
      {"rsqrt", "Plain", {{2, 3}}, 0.5, 2.5, [](const Inputs& x) { return rsqrt(x[0]); }},
      {"exp2", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return exp2(x[0]); }},
      {"log2", "Plain", {{2, 3}}, 0.5, 2.5, [](const Inputs& x) { return log2(x[0]); }},
      {"log10", "Plain", {{2, 3}}, 0.5, 2.5, [](const Inputs& x) { return log10(x[0]); }},
      {"expm1", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return expm1(x[0]); }},
      {"log1p", "Plain", {{2, 3}}, -0.5, 2.5, [](const Inputs& x) { return log1p(x[0]); }},
      {"clone", "Plain", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return clone(x[0]) * x[0]; }},
      {"to",
       "AndBack",
       {{2, 3}},
       kLow,
       kHigh,
       [](const Inputs& x) { return to(exp(to(x[0], other_device())), x[0].device()); }},
  };
}

Rows view_rows() {
  return {
      {"reshape",
       "View",
       {{2, 6}},
       kLow,
       kHigh,
       [](const Inputs& x) {
         return exp(reshape(x[0], {3, -1}));
       }},
      {"reshape", "ToRankZero", {{1, 1}}, kLow, kHigh, [](const Inputs& x) { return exp(reshape(x[0], {})); }},
      {"permute",
       "Plain",
       {{2, 3, 4}},
       kLow,
       kHigh,
       [](const Inputs& x) {
         return exp(permute(x[0], {2, 0, -2}));
       }},
      {"transpose", "Plain", {{2, 3, 2}}, kLow, kHigh, [](const Inputs& x) { return exp(transpose(x[0], 0, -1)); }},
      {"slice", "Forward", {{5, 3}}, kLow, kHigh, [](const Inputs& x) { return exp(slice(x[0], 0, 1, 5, 2)); }},
      {"slice", "Backward", {{2, 5}}, kLow, kHigh, [](const Inputs& x) { return exp(slice(x[0], -1, 4, -6, -2)); }},
      {"slice", "Empty", {{4}}, kLow, kHigh, [](const Inputs& x) { return sum(slice(x[0], 0, 3, 1)) + sum(exp(x[0])); }},
      {"slice",
       "Overlapping",
       {{5}},
       kLow,
       kHigh,
       [](const Inputs& x) { return slice(x[0], 0, 0, 4) * slice(x[0], 0, 1, 5); }},
      {"select", "Middle", {{2, 3, 2}}, kLow, kHigh, [](const Inputs& x) { return exp(select(x[0], 1, -2)); }},
      {"expand",
       "Plain",
       {{2, 1}},
       kLow,
       kHigh,
       [](const Inputs& x) {
         return exp(expand(x[0], {3, -1, 4}));
       }},
      {"expand",
       "RankZero",
       {{}},
       kLow,
       kHigh,
       [](const Inputs& x) {
         return exp(expand(x[0], {2, 3}));
       }},
      {"squeeze", "All", {{1, 3, 1}}, kLow, kHigh, [](const Inputs& x) { return exp(squeeze(x[0])); }},
      {"squeeze", "One", {{1, 3, 1}}, kLow, kHigh, [](const Inputs& x) { return exp(squeeze(x[0], {-1})); }},
      {"unsqueeze", "Middle", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return exp(unsqueeze(x[0], 1)); }},
      {"contiguous",
       "OfTransposed",
       {{2, 3}},
       kLow,
       kHigh,
       [](const Inputs& x) { return exp(contiguous(transpose(x[0]))); }},
  };
}

Rows joining_rows() {
  return {
      {"cat", "Three", {{2, 2}, {2, 1}, {2, 3}}, kLow, kHigh, [](const Inputs& x) { return exp(cat(x, 1)); }},
      {"cat", "FiveWithOneTwice", {{1, 2}, {2, 2}, {1, 2}, {3, 2}}, kLow, kHigh, cat_five},
      {"stack", "Three", {{2, 2}, {2, 2}, {2, 2}}, kLow, kHigh, [](const Inputs& x) { return exp(stack(x, -1)); }},
      {"stack", "RankZero", {{}, {}, {}, {}}, kLow, kHigh, [](const Inputs& x) { return exp(stack(x)); }},
  };
}

Rows reduction_rows() {
  return {
      {"sum", "All", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return exp(sum(x[0])); }},
      {"sum",
       "OuterAndInner",
       {{2, 3, 2}},
       kLow,
       kHigh,
       [](const Inputs& x) {
         return exp(sum(x[0], {0, -1}));
       }},
      {"sum", "Kept", {{2, 3, 2}}, kLow, kHigh, [](const Inputs& x) { return exp(sum(x[0], {1}, true)) * x[0]; }},
      {"sum", "RankZero", {{}}, kLow, kHigh, [](const Inputs& x) { return exp(sum(x[0])); }},
      {"sum", "AxisOfRankZero", {{}}, kLow, kHigh, [](const Inputs& x) { return exp(sum(x[0], {0})); }},
      {"mean", "All", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return exp(mean(x[0])); }},
      {"mean", "Middle", {{2, 3, 2}}, kLow, kHigh, [](const Inputs& x) { return exp(mean(x[0], {1})); }},
      {"mean", "Kept", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return exp(x[0] - mean(x[0], {-1}, true)); }},
      {"max", "All", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return exp(max(x[0])); }, {}, true},
      {"max",
       "OuterAndInner",
       {{2, 3, 2}},
       kLow,
       kHigh,
       [](const Inputs& x) {
         return exp(max(x[0], {0, 2}));
       },
       {},
       true},
      {"max", "Kept", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return exp(x[0] - max(x[0], {1}, true)); }, {}, true},
      {"min", "All", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return exp(min(x[0])); }, {}, true},
      {"min", "Outer", {{2, 3}}, kLow, kHigh, [](const Inputs& x) { return exp(min(x[0], {-2})); }, {}, true},
  };
}

Rows softmax_rows() {
  return {
      {"cumsum", "First", {{3, 2}}, kLow, kHigh, [](const Inputs& x) { return exp(cumsum(x[0], 0)); }},
      {"cumsum", "Last", {{2, 5}}, kLow, kHigh, [](const Inputs& x) { return exp(cumsum(x[0], -1)); }},
      {"cumprod", "First", {{3, 2}}, kLow, kHigh, [](const Inputs& x) { return cumprod(x[0], 0); }},
      {"cumprod", "Last", {{2, 5}}, kLow, kHigh, [](const Inputs& x) { return cumprod(x[0], -1); }},
      {"log_softmax", "Last", {{2, 4}}, kLow, kHigh, [](const Inputs& x) { return log_softmax(x[0]); }},
      {"log_softmax", "First", {{3, 2}}, kLow, kHigh, [](const Inputs& x) { return exp(log_softmax(x[0], 0)); }},
      {"log_softmax", "Middle", {{2, 3, 2}}, kLow, kHigh, [](const Inputs& x) { return exp(log_softmax(x[0], 1)); }},
      {"cross_entropy", "Mean", {{3, 4}}, kLow, kHigh, [](const Inputs& x) { return entropy(x, Reduction::mean); }},
      {"cross_entropy", "Sum", {{3, 4}}, kLow, kHigh, [](const Inputs& x) { return exp(entropy(x, Reduction::sum)); }},
      {"cross_entropy", "None", {{3, 4}}, kLow, kHigh, [](const Inputs& x) { return exp(entropy(x, Reduction::none)); }},
  };
}

Rows product_rows() {
  return {
      {"matmul", "Matrices", {{2, 3}, {3, 4}}, kLow, kHigh, [](const Inputs& x) { return matmul(x[0], x[1]); }},
      {"matmul", "Square", {{3, 3}}, kLow, kHigh, [](const Inputs& x) { return matmul(x[0], x[0]); }},
      {"matmul", "Batches", {{2, 2, 3}, {2, 3, 2}}, kLow, kHigh, [](const Inputs& x) { return matmul(x[0], x[1]); }},
      {"matmul",
       "BroadcastBatches",
       {{2, 1, 2, 3}, {3, 3, 2}},
       kLow,
       kHigh,
       [](const Inputs& x) { return matmul(x[0], x[1]); }},
      {"matmul", "MatrixIntoBatch", {{2, 3}, {2, 3, 2}}, kLow, kHigh, [](const Inputs& x) { return matmul(x[0], x[1]); }},
      {"matmul", "VectorMatrix", {{3}, {3, 2}}, kLow, kHigh, [](const Inputs& x) { return matmul(x[0], x[1]); }},
      {"matmul", "BatchVector", {{2, 2, 3}, {3}}, kLow, kHigh, [](const Inputs& x) { return matmul(x[0], x[1]); }},
      {"matmul", "VectorBatch", {{3}, {2, 3, 2}}, kLow, kHigh, [](const Inputs& x) { return matmul(x[0], x[1]); }},
      {"matmul", "Vectors", {{3}, {3}}, kLow, kHigh, [](const Inputs& x) { return matmul(x[0], x[1]); }},
  };
}

Rows index_rows() {
  return {
      {"gather", "Repeating", {{3, 2}}, kLow, kHigh, [](const Inputs& x) { return exp(gather(x[0], 0, repeating())); }},
      {"gather", "FewerRows", {{3, 4}}, kLow, kHigh, [](const Inputs& x) { return exp(gather(x[0], -1, fewer_rows())); }},
      {"scatter_add",
       "Repeating",
       {{3, 2}, {4, 2}},
       kLow,
       kHigh,
       [](const Inputs& x) { return exp(scatter_add(x[0], 0, repeating(), x[1])); }},
      {"scatter_add",
       "FewerRows",
       {{3, 4}, {2, 2}},
       kLow,
       kHigh,
       [](const Inputs& x) { return exp(scatter_add(x[0], 1, fewer_rows(), x[1])); }},
  };
}
}  // namespace

const std::vector<GradientRow>& gradient_rows() {
  static const std::vector<GradientRow>& rows = *[] {
    auto* all = new std::vector<GradientRow>;
    for (Rows (*family)() : {arithmetic_rows, power_rows, choice_rows, function_rows, view_rows, joining_rows,
                             reduction_rows, softmax_rows, product_rows, index_rows})
      for (GradientRow& row : family()) all->push_back(std::move(row));
    for (GradientRow& row : composite_rows()) all->push_back(std::move(row));
    return all;
  }();
  return rows;
}

}  // namespace plugrad::test
