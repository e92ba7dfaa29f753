// The half of Batch that compares results with expectations.
#include <sdk/conformance/trial.hpp>

#include <algorithm>

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

Mismatch compared(const Array& got, const Expectation& expectation) {
  Mismatch mismatch;
  for (int64_t i = 0; i < got.count(); ++i) {
    const uint64_t size = element_size(got.dtype());
    const bool good = expectation.bits ? std::equal(got.element(i), got.element(i) + size, expectation.bits->element(i))
                                       : acceptable(got.dtype(), got.get(i), expectation.elements[i]);
    if (!good) mismatch.add(i);
  }
  return mismatch;
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

bool Batch::compare(const Trial& trial, Tally& tally, const std::string& title) const {
  const std::vector<Array> results = this->results(trial);
  const Expectations expected = expectations(row_, question_, trial.problem);
  for (size_t k = 0; k < results.size(); ++k) {
    const Mismatch mismatch = compared(results[k], expected[k]);
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
