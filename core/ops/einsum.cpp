#include <plugrad/ops/contractions.hpp>

#include <core/ops/argument.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace plugrad {
namespace {
constexpr const char* kEinsum = "einsum";

// A label per axis: a letter, or, for the axes of "...", a number from kDots on, counted from the last axis of "...".
using Labels = std::vector<int>;
constexpr int kDots = 256;

struct Term {
  Tensor x;
  Labels labels;
};

bool contains(const Labels& labels, int label) { return std::ranges::find(labels, label) != labels.end(); }
int axis_labelled(const Term& term, int label) {
  return static_cast<int>(std::ranges::find(term.labels, label) - term.labels.begin());
}
int64_t extent_of(const Term& term, int label) { return term.x.size(axis_labelled(term, label)); }

// --- The equation.

struct Equation {
  std::vector<std::string> inputs;
  bool has_output = false;
  std::string output;
};

Equation parsed(std::string text) {
  std::erase(text, ' ');
  Equation equation;
  const size_t arrow = text.find("->");
  equation.has_output = arrow != std::string::npos;
  if (equation.has_output) equation.output = text.substr(arrow + 2);
  text.resize(std::min(arrow, text.size()));
  for (size_t start = 0, end = 0; end != std::string::npos; start = end + 1) {
    end = text.find(',', start);
    equation.inputs.push_back(text.substr(start, end == std::string::npos ? end : end - start));
  }
  return equation;
}

// dots: the number of axes of "...".
Labels labels_of(const std::string& subscripts, int dots) {
  Labels labels;
  bool seen = false;
  for (size_t i = 0; i < subscripts.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(subscripts[i]);
    if (std::isalpha(c)) {
      labels.push_back(c);
    } else if (!seen && subscripts.compare(i, 3, "...") == 0) {
      seen = true;
      i += 2;
      for (int axis = dots; axis-- > 0;) labels.push_back(kDots + axis);
    } else {
      refuse(kEinsum, "'" + subscripts + "' is not made of letters and at most one '...': write one letter for each axis");
    }
  }
  return labels;
}

Term term_of(const std::string& subscripts, const Tensor& x) {
  require_defined(x, kEinsum);
  const int letters = static_cast<int>(labels_of(subscripts, 0).size());
  const bool has_dots = subscripts.find('.') != std::string::npos;
  if (has_dots ? letters > x.rank() : letters != x.rank())
    refuse(kEinsum, "'" + subscripts + "' has " + std::to_string(letters) + " letters, but the operand has shape " +
                        x.shape().text() + ": write one for each axis, or '...'");
  return {x, labels_of(subscripts, x.rank() - letters)};
}

// For an equation without an output: the axes of "...", and then the letters that appear once, sorted.
Labels implicit_output(const std::vector<Term>& terms) {
  std::map<int, int> seen;
  for (const Term& term : terms)
    for (const int label : term.labels) ++seen[label];
  Labels dots, letters;
  for (const auto& [label, times] : seen) {
    if (label >= kDots) dots.insert(dots.begin(), label);
    else if (times == 1) letters.push_back(label);
  }
  dots.insert(dots.end(), letters.begin(), letters.end());
  return dots;
}

Labels output_of(const Equation& equation, const std::vector<Term>& terms) {
  if (!equation.has_output) return implicit_output(terms);
  int dots = 0;
  for (const Term& term : terms)
    for (const int label : term.labels) dots = std::max(dots, label - kDots + 1);
  const Labels labels = labels_of(equation.output, dots);
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool known = std::ranges::any_of(terms, [&](const Term& term) { return contains(term.labels, labels[i]); });
    if (!known || std::count(labels.begin(), labels.end(), labels[i]) > 1)
      refuse(kEinsum, std::string("the result's '") + static_cast<char>(labels[i]) + "' " +
                          (known ? "appears twice" : "is in no operand") + ": name each of its axes once");
  }
  return labels;
}

void require_extents(const std::vector<Term>& terms) {
  std::map<int, int64_t> extents;
  for (const Term& term : terms)
    for (const int label : term.labels) {
      int64_t& known = extents.try_emplace(label, 1).first->second;
      const int64_t extent = extent_of(term, label);
      if (known != 1 && extent != 1 && extent != known)
        refuse(kEinsum, (label < kDots ? std::string("'") + static_cast<char>(label) + "'" : "an axis of '...'") +
                            " has extents " + std::to_string(known) + " and " + std::to_string(extent) +
                            ": they must be equal, or one of them 1");
      if (extent != 1) known = extent;
    }
}

// --- Operands.

// Axes i and j, of the same label, are replaced by their diagonal as the last axis.
Term with_diagonal(const Term& term, size_t i, size_t j) {
  const int64_t n = term.x.size(static_cast<int>(i));
  if (n != term.x.size(static_cast<int>(j)))
    refuse(kEinsum, std::string("'") + static_cast<char>(term.labels[i]) + "' appears twice for an operand of shape " +
                        term.x.shape().text() + ", in which these axes differ: only equal axes have a diagonal");
  const Tensor last = movedim(term.x, {static_cast<int64_t>(i), static_cast<int64_t>(j)}, {-2, -1});
  Shape flat(std::span(last.shape().begin(), static_cast<size_t>(last.rank() - 2)));
  flat.push_back(n * n);
  Labels labels = term.labels;
  labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(j));
  labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(i));
  labels.push_back(term.labels[i]);
  return {slice(reshape(last, flat), -1, 0, n * n, n + 1), labels};
}

Term with_distinct_labels(Term term) {
  for (size_t i = 0; i < term.labels.size(); ++i)
    for (size_t j = i + 1; j < term.labels.size(); ++j)
      if (term.labels[i] == term.labels[j]) return with_distinct_labels(with_diagonal(term, i, j));
  return term;
}

// The sum over all labels except `kept`.
Term summed(const Term& term, const std::set<int>& kept) {
  Shape axes;
  Labels labels;
  for (const int label : term.labels) {
    if (kept.contains(label)) labels.push_back(label);
    else axes.push_back(axis_labelled(term, label));
  }
  return axes.empty() ? term : Term{sum(term.x, axes), labels};
}

// The term without its axes of extent 1 whose label has a different extent in `other`.
Term without_stretched(const Term& term, const Term& other) {
  Shape axes;
  Labels labels;
  for (const int label : term.labels) {
    if (extent_of(term, label) == 1 && contains(other.labels, label) && extent_of(other, label) != 1)
      axes.push_back(axis_labelled(term, label));
    else labels.push_back(label);
  }
  return axes.empty() ? term : Term{squeeze(term.x, axes), labels};
}

// --- Products of two terms.

// The labels of a product: batch: in both terms, kept; inner: in both terms, summed over; left, right: in a single term.
struct Roles {
  Labels batch, inner, left, right;
};

Roles roles_of(const Term& a, const Term& b, const std::set<int>& kept) {
  Roles roles;
  for (const int label : a.labels) {
    if (!contains(b.labels, label)) roles.left.push_back(label);
    else (kept.contains(label) ? roles.batch : roles.inner).push_back(label);
  }
  for (const int label : b.labels)
    if (!contains(a.labels, label)) roles.right.push_back(label);
  return roles;
}

// The term with an axis for each of these groups of labels.
Tensor grouped(const Term& term, const std::vector<Labels>& groups) {
  Shape order, extents;
  for (const Labels& group : groups) {
    int64_t count = 1;
    for (const int label : group) {
      order.push_back(axis_labelled(term, label));
      count *= extent_of(term, label);
    }
    extents.push_back(count);
  }
  return reshape(permute(term.x, order), extents);
}

// a (batch, left, inner) and b (batch, inner, right). Without inner labels, a product of elements is enough.
Tensor multiplied(const Tensor& a, const Tensor& b, const Roles& roles) {
  if (roles.inner.empty()) return mul(a, b);
  if (!roles.left.empty() || !roles.right.empty() || roles.batch.empty()) return matmul(a, b);
  const Tensor products = mul(at_least_f32(a), at_least_f32(transpose(b)));
  return cast(sum(products, {-1}, true), promote_types(a.dtype(), b.dtype()));
}

Term product(const Term& first, const Term& second, const std::set<int>& kept) {
  const Term x = without_stretched(first, second), y = without_stretched(second, first);
  std::set<int> in_first = kept, in_second = kept;
  in_first.insert(y.labels.begin(), y.labels.end());
  in_second.insert(x.labels.begin(), x.labels.end());
  const Term a = summed(x, in_first), b = summed(y, in_second);
  const Roles roles = roles_of(a, b, kept);
  const Tensor out = multiplied(grouped(a, {roles.batch, roles.left, roles.inner}),
                                grouped(b, {roles.batch, roles.inner, roles.right}), roles);
  Term result{out, {}};
  Shape extents;
  for (const Labels& group : {roles.batch, roles.left, roles.right})
    for (const int label : group) {
      extents.push_back(extent_of(contains(a.labels, label) ? a : b, label));
      result.labels.push_back(label);
    }
  result.x = reshape(out, extents);
  return result;
}

// The labels of the result and of the terms from `next` on.
std::set<int> kept_labels(const Labels& output, const std::vector<Term>& terms, size_t next) {
  std::set<int> kept(output.begin(), output.end());
  for (; next < terms.size(); ++next) kept.insert(terms[next].labels.begin(), terms[next].labels.end());
  return kept;
}
}  // namespace

Tensor einsum(const std::string& text, const std::vector<Tensor>& operands) {
  const Equation equation = parsed(text);
  if (operands.empty() || equation.inputs.size() != operands.size())
    refuse(kEinsum, "'" + text + "' has " + std::to_string(equation.inputs.size()) + " operands, but " +
                        std::to_string(operands.size()) + " were given: give one for each");
  if (operands.size() > 2 &&
      std::ranges::all_of(operands, [&](const Tensor& each) { return are_halves(operands.front(), each); })) {
    std::vector<Tensor> wide;
    for (const Tensor& each : operands) wide.push_back(at_least_f32(each));
    return cast(einsum(text, wide), operands.front().dtype());
  }
  std::vector<Term> terms;
  for (size_t i = 0; i < operands.size(); ++i) terms.push_back(term_of(equation.inputs[i], operands[i]));
  const Labels output = output_of(equation, terms);
  for (Term& term : terms) term = with_distinct_labels(term);
  require_extents(terms);
  Term result = terms.front();
  for (size_t i = 1; i < terms.size(); ++i) result = product(result, terms[i], kept_labels(output, terms, i + 1));
  result = summed(result, kept_labels(output, {}, 0));
  Shape order;
  for (const int label : output) order.push_back(axis_labelled(result, label));
  return permute(result.x, order);
}

}  // namespace plugrad
