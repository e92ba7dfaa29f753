#include <sdk/conformance/op_rows.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::conformance {
namespace {

struct Sizes {
  Shape batch, keys;  // of query, and of key and value
  int64_t l, s, e, v;
  bool causal = false, masked = false;
};

const std::vector<Sizes>& sizes() {
  static const std::vector<Sizes> list = {
      {{}, {}, 1, 1, 1, 1},
      {{}, {}, 3, 4, 2, 5, false, true},
      {{}, {}, 5, 3, 4, 2, true},
      {{2}, {2}, 7, 7, 3, 3, true, true},
      {{2, 3}, {2, 3}, 2, 9, 8, 4},
      {{2, 2, 3}, {2, 2, 1}, 5, 6, 4, 3, true},
      {{2, 3}, {2, 1}, 1, 17, 5, 6, false, true},
      {{4}, {1}, 1, 9, 8, 8},
      {{3, 2}, {1, 2}, 4, 3, 2, 2, false, true},
      {{}, {}, 1, 300, 16, 20, false, true},
      {{}, {}, 200, 140, 9, 5, true},
      {{2}, {2}, 60, 260, 33, 17, false, true},
  };
  return list;
}

Shape with(const Shape& batch, int64_t rows, int64_t columns) {
  Shape shape = batch;
  shape.insert(shape.end(), {rows, columns});
  return shape;
}

// Some keys hidden; in every fifth row, all of them.
Array mask_of(uint8_t dtype, const Shape& shape, bool masked, Random& random) {
  Array mask(dtype, shape);
  for (int64_t i = 0; i < mask.count(); ++i) mask.set(i, 0);
  if (!masked) return mask;
  const int64_t s = shape.back();
  const Array numbers = random_array(dtype, shape, {-2, 2}, random);
  for (int64_t i = 0; i < mask.count(); ++i) mask.set(i, i / s % 5 == 3 || numbers.get(i) > 1 ? -HUGE_VALL : numbers.get(i));
  return mask;
}

// The matrices of a batch.
struct Place {
  int64_t query, key;  // numbers of matrices
};
Place place_of(const Shape& query, const Shape& key, int64_t batch) {
  Place place{batch, 0};
  int64_t step = 1;
  for (int d = static_cast<int>(query.size()) - 3; d >= 0; --d) {
    if (key[d] > 1) place.key += batch % query[d] * step;
    step *= key[d];
    batch /= query[d];
  }
  return place;
}

// A problem's numbers as long double, and the scores of a row with bounds of their rounding errors.
class Attention {
 public:
  Attention(const Problem& problem, int first) : p_(problem), first_(first) {
    const Shape& query = operand(0).shape();
    l = query[query.size() - 2], e = query.back();
    s = operand(2).shape()[query.size() - 2], v = operand(2).shape().back();
    batches = operand(0).count() / (l * e);
    attributes = problem.attributes_as<plugrad_attention>();
  }
  const Array& operand(int i) const { return p_.inputs[first_ + i]; }
  Place place(int64_t batch) const { return place_of(operand(0).shape(), operand(1).shape(), batch); }
  long double query(int64_t batch, int64_t i, int64_t c) const { return operand(0).get((batch * l + i) * e + c); }
  long double key(int64_t matrix, int64_t j, int64_t c) const { return operand(1).get((matrix * s + j) * e + c); }
  long double value(int64_t matrix, int64_t j, int64_t c) const { return operand(2).get((matrix * s + j) * v + c); }

  struct Row {
    std::vector<long double> scores;
    long double magnitude = 1;  // the largest sum of abs of a finite score's terms
  };
  Row row(int64_t batch, int64_t i) const {
    Row row;
    for (int64_t j = 0; j < s; ++j) {
      long double score = 0, terms = 0;
      for (int64_t c = 0; c < e; ++c) {
        const long double term = query(batch, i, c) * key(place(batch).key, j, c) * attributes.scale;
        score += term;
        terms += std::fabs(term);
      }
      const long double mask = attributes.causal && j > i ? -HUGE_VALL : operand(3).get((batch * l + i) * s + j);
      row.scores.push_back(score + mask);
      if (std::isfinite(mask)) row.magnitude = std::max(row.magnitude, terms + std::fabs(mask));
    }
    return row;
  }
  // A bound of a weight's relative error, from the error of a score and of the sums behind it.
  long double relative_error(uint8_t dtype, const Row& row) const {
    return 4 * (16 * limits_of(dtype).epsilon + sum_factor(dtype, e)) * row.magnitude + 2 * sum_factor(dtype, s) + halved();
  }

  // The relative error of a rounding to a half: matrix units take their factors as halves.
  long double halved() const {
    const uint8_t dtype = operand(0).dtype();
    return summed_in(dtype) == dtype ? 0 : limits_of(dtype).epsilon / 2;
  }

  int64_t l, s, e, v, batches;
  plugrad_attention attributes;

 private:
  const Problem& p_;
  int first_;
};

struct Softmax {
  long double lse;
  std::vector<long double> weights;
};
Softmax softmax(const std::vector<long double>& scores) {
  const long double largest = *std::ranges::max_element(scores);
  Softmax result{-HUGE_VALL, std::vector<long double>(scores.size())};
  if (largest == -HUGE_VALL) return result;
  long double sum = 0;
  for (const long double x : scores) sum += std::exp(x - largest);
  result.lse = largest + std::log(sum);
  for (size_t j = 0; j < scores.size(); ++j) result.weights[j] = std::exp(scores[j] - result.lse);
  return result;
}

// Adds up a gradient and the sum of abs of its terms.
struct Total {
  long double value = 0, bound = 0;
  void add(long double term, long double error) {
    value += term;
    bound += error;
  }
};

void store(Expectation& expected, const std::vector<Total>& totals, uint8_t dtype) {
  for (size_t i = 0; i < totals.size(); ++i)
    expected.elements[i] = {totals[i].value, totals[i].bound + limits_of(dtype).epsilon * std::fabs(totals[i].value), true,
                            false};
}

}  // namespace

std::vector<Problem> attention_problems(const Question& question, Random& random) {
  std::vector<Problem> list;
  const uint8_t dtype = question.out();
  for (const Sizes& n : sizes()) {
    Problem problem;
    problem.large = count_of(n.batch) * n.l * n.s * (n.e + n.v) > 20000;
    problem.outputs.emplace_back(dtype, with(n.batch, n.l, n.v));
    problem.outputs.emplace_back(question.dtypes[1], with(n.batch, n.l, 1));
    problem.inputs.push_back(random_array(dtype, with(n.batch, n.l, n.e), {-2, 2}, random));
    problem.inputs.push_back(random_array(dtype, with(n.keys, n.s, n.e), {-2, 2}, random));
    problem.inputs.push_back(random_array(dtype, with(n.keys, n.s, n.v), {-2, 2}, random));
    problem.inputs.push_back(mask_of(dtype, with(n.batch, n.l, n.s), n.masked, random));
    problem.set_attributes(plugrad_attention{sizeof(plugrad_attention), n.causal ? 1u : 0u, 0.375});
    list.push_back(std::move(problem));
  }
  return list;
}

void attention_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Attention a(problem, 0);
  const uint8_t dtype = question.out();
  std::vector<Total> out, lse;
  for (int64_t b = 0; b < a.batches; ++b)
    for (int64_t i = 0; i < a.l; ++i) {
      const Attention::Row row = a.row(b, i);
      const Softmax soft = softmax(row.scores);
      const long double error = a.relative_error(dtype, row);
      const long double rounded = std::isfinite(soft.lse) ? limits_of(dtype).epsilon * std::fabs(soft.lse) : 0;
      lse.push_back({soft.lse, error + rounded});
      for (int64_t c = 0; c < a.v; ++c) {
        Total total;
        for (int64_t j = 0; j < a.s; ++j) {
          const long double term = soft.weights[j] * a.value(a.place(b).key, j, c);
          total.add(term, std::fabs(term) * error);
        }
        out.push_back(total);
      }
    }
  store(expected[0], out, dtype);
  for (size_t i = 0; i < lse.size(); ++i) expected[1].elements[i] = {lse[i].value, lse[i].bound, true, false};
}

std::vector<Problem> attention_backward_problems(const Question& question, Random& random) {
  std::vector<Problem> list = attention_problems(question, random);
  const uint8_t dtype = question.out();
  for (Problem& problem : list) {
    const Attention a(problem, 0);
    Array lse(question.dtypes.back(), problem.outputs[1].shape());
    for (int64_t i = 0; i < lse.count(); ++i) lse.set(i, softmax(a.row(i / a.l, i % a.l).scores).lse);
    const Shape shape = problem.outputs[0].shape();
    problem.outputs.clear();
    for (int k = 0; k < 3; ++k) problem.outputs.emplace_back(dtype, problem.inputs[k].shape());
    problem.inputs.insert(problem.inputs.begin(), random_array(dtype, shape, {-2, 2}, random));
    problem.inputs.push_back(random_array(dtype, shape, {-2, 2}, random));
    problem.inputs.push_back(std::move(lse));
  }
  return list;
}

void attention_backward_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Attention a(problem, 1);
  const uint8_t dtype = question.out();
  const Array &grad = problem.inputs[0], &out = problem.inputs[5], &lse = problem.inputs[6];
  std::vector<Total> query(problem.outputs[0].count()), key(problem.outputs[1].count()), value(problem.outputs[2].count());
  for (int64_t row = 0; row < a.batches * a.l; ++row) {
    const int64_t b = row / a.l, matrix = a.place(b).key;
    const Attention::Row scores = a.row(b, row % a.l);
    const long double error = a.relative_error(dtype, scores) + 16 * limits_of(dtype).epsilon * std::fabs(lse.get(row)) +
                              4 * sum_factor(dtype, a.v) + 4 * sum_factor(dtype, a.l * a.batches) + a.halved();
    for (int64_t j = 0; j < a.s; ++j) {
      if (scores.scores[j] == -HUGE_VALL || lse.get(row) == -HUGE_VALL) continue;
      const long double weight = std::exp(scores.scores[j] - lse.get(row));
      long double change = 0, terms = 0;
      for (int64_t c = 0; c < a.v; ++c) {
        const long double g = grad.get(row * a.v + c), x = a.value(matrix, j, c), y = out.get(row * a.v + c);
        change += g * x - g * y;
        terms += std::fabs(g * x) + std::fabs(g * y);
        value[(matrix * a.s + j) * a.v + c].add(weight * g, std::fabs(weight * g) * error);
      }
      const long double slope = weight * change * a.attributes.scale, size = weight * terms * std::fabs(a.attributes.scale);
      for (int64_t c = 0; c < a.e; ++c) {
        const long double k = a.key(matrix, j, c), q = a.query(b, row % a.l, c);
        query[row * a.e + c].add(slope * k, std::fabs(size * k) * error);
        key[(matrix * a.s + j) * a.e + c].add(slope * q, std::fabs(size * q) * error);
      }
    }
  }
  store(expected[0], query, dtype);
  store(expected[1], key, dtype);
  store(expected[2], value, dtype);
}

}  // namespace plugrad::conformance
