// The half of Batch that compares results with expectations.
#include <sdk/conformance/op_rows.hpp>
#include <sdk/conformance/session.hpp>
#include <sdk/conformance/trial.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::conformance {
namespace {

std::string bound_text(const Expected& expected) {
  char text[64];
  if (expected.bound == 0) return "exact";
  std::snprintf(text, sizeof text, "%.3Lg", expected.bound);
  return text;
}

std::string bits_text(const Array& array, int64_t i) {
  std::string text = "0x";
  for (uint64_t b = element_size(array.dtype()); b-- > 0;) {
    char two[4];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(array.element(i)[b]));
    text += two;
  }
  return text;
}

struct Mismatch {
  int64_t count = 0, first = 0;
  void add(int64_t i) {
    if (count++ == 0) first = i;
  }
};

bool is_good(const Array& got, const Expectation& expectation, int64_t i) {
  const uint64_t size = element_size(got.dtype());
  if (expectation.bits) return std::equal(got.element(i), got.element(i) + size, expectation.bits->element(i));
  return acceptable(got.dtype(), got.get(i), expectation.elements[i]);
}

template <class Good> Mismatch mismatch_of(const Array& got, const Good& good) {
  Mismatch mismatch;
  for (int64_t i = 0; i < got.count(); ++i)
    if (!good(i)) mismatch.add(i);
  return mismatch;
}

// Returns how many numbers a device may flush in the computation of an element of the result.
int64_t terms_of(const OpInfo& op, const Problem& problem) {
  constexpr int64_t kOfFormula = 4;
  if (op.shape == OpShape::elementwise || op.shape == OpShape::update) return kOfFormula;
  return kOfFormula + problem.inputs[0].count();
}

void flush(Array& array) {
  if (!is_floating(array.dtype())) return;
  const long double normal = limits_of(array.dtype()).smallest_normal;
  for (int64_t i = 0; i < array.count(); ++i)
    if (const long double x = array.get(i); std::fabs(x) < normal) array.set(i, std::copysign(0.0L, x));
}

std::string described(const Trial& trial, const Array& got, const Expectation& expectation, const Mismatch& mismatch) {
  const int64_t i = mismatch.first;
  std::string text = " index=" + text_of(unravelled(i, got.shape())) + " expected=";
  if (expectation.bits) {
    text += bits_text(*expectation.bits, i) + " got=" + bits_text(got, i) + " bound=bits";
  } else {
    const Expected& expected = expectation.elements[i];
    text +=
        text_of(got.dtype(), expected.value) + " got=" + text_of(got.dtype(), got.get(i)) + " bound=" + bound_text(expected);
  }
  for (size_t k = 0; k < trial.problem.inputs.size(); ++k)
    if (trial.problem.inputs[k].shape() == got.shape())
      text += " in" + std::to_string(k) + "=" + text_of(trial.problem.inputs[k].dtype(), trial.problem.inputs[k].get(i));
  if (mismatch.count == 1) return text;
  return text + " (and " + std::to_string(mismatch.count - 1) + " more of " + std::to_string(got.count()) + ")";
}

}  // namespace

std::string text_of(const Trial& trial) {
  std::string text = "shape=";
  for (size_t k = 0; k < trial.problem.inputs.size(); ++k) text += (k ? "x" : "") + text_of(trial.problem.inputs[k].shape());
  text += "->" + text_of(trial.problem.outputs[0].shape()) + " layouts=";
  for (size_t k = 0; k < trial.arrangement.operands.size(); ++k) {
    const Placement& placement = trial.arrangement.operands[k];
    text += std::string(k ? "," : "") + form_name(placement.form) + (placement.unaligned ? "+unaligned" : "");
  }
  if (trial.arrangement.in_place >= 0) text += " in place of input " + std::to_string(trial.arrangement.in_place);
  return text;
}

Expectations Batch::expected_of(const Trial& trial) const {
  Expectations expected = expectations(row_, question_, trial.problem);
  const bool is_iota = question_.op->opcode == PLUGRAD_OP_IOTA && question_.out() == PLUGRAD_F32;
  const Question in_f64 = question_for(PLUGRAD_OP_IOTA, PLUGRAD_F64);
  if (is_iota && !resolve(device_.table(), device_.handle(), in_f64, PLUGRAD_IMMEDIATE))
    allow_iota_in_f32(trial.problem, expected);
  return expected;
}

Expectations Batch::flushed_of(const Trial& trial) const {
  Trial flushed = trial;
  for (Array& array : flushed.problem.inputs) flush(array);
  for (Array& array : flushed.problem.outputs) flush(array);
  return expected_of(flushed);
}

bool Batch::compare(const Trial& trial, Tally& tally, const std::string& title) const {
  const std::vector<Array> results = this->results(trial);
  const Expectations expected = expected_of(trial);
  for (size_t k = 0; k < results.size(); ++k) {
    Mismatch mismatch = mismatch_of(results[k], [&](int64_t i) { return is_good(results[k], expected[k], i); });
    const bool may_flush = device_.flushes_denormals() && !question_.op->keeps_denormals() && !expected[k].bits;
    if (mismatch.count && may_flush && is_floating(results[k].dtype())) {
      const Expectations flushed = flushed_of(trial);
      const int64_t terms = terms_of(*question_.op, trial.problem);
      mismatch = mismatch_of(results[k], [&](int64_t i) {
        const auto fits = [&](const Expected& e) {
          return acceptable_if_flushed(results[k].dtype(), results[k].get(i), e, terms);
        };
        return fits(expected[k].elements[i]) || fits(flushed[k].elements[i]);
      });
    }
    if (!mismatch.count) continue;
    const std::string output = results.size() > 1 ? " output=" + std::to_string(k) : "";
    tally.fail(title + " " + text_of(trial) + output + described(trial, results[k], expected[k], mismatch));
    return false;
  }
  return true;
}

int Batch::verify(Tally& tally, const std::string& title) {
  verify_surroundings(tally, title);  // first, because a stray write may be the reason for wrong values
  int declined = 0;
  for (size_t t = 0; t < trials_.size(); ++t) {
    const Trial& trial = trials_[t];
    tally.count();
    if (trial.changed) tally.fail(title + " " + text_of(trial) + ": run wrote to the host's views or attributes");
    if (trial.outcome.ok()) {
      compare(trial, tally, title);
    } else if (trial.outcome.status == PLUGRAD_UNSUPPORTED || trial.outcome.status == PLUGRAD_OUT_OF_MEMORY) {
      ++declined;
      if (outputs_.touched(static_cast<int>(t)))
        tally.fail(title + " " + text_of(trial) + ": run returned " + trial.outcome.text() + ", but wrote to its output");
    } else {
      tally.fail(title + " " + text_of(trial) + ": run returned " + trial.outcome.text());
    }
  }
  return declined;
}

void Batch::verify_surroundings(Tally& tally, const std::string& title) const {
  const auto note = [&](const Image& image, const char* what) {
    for (const Image::Stray& stray : image.strays())
      tally.fail(title + " " + text_of(trials_[stray.owner]) + " " + what + ": " + stray.text);
  };
  note(outputs_, "output");
  note(inputs_, "input");
  note(workspaces_, "workspace");
}

}  // namespace plugrad::conformance
