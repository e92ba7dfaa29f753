// Finds the op that makes the first NaN.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace plugrad {

struct AnomalyOptions {
  // Whether an op is an error as well if its result has NaN and no operand has NaN. Only recorded ops are checked.
  bool forward = true;
  // Called for each recorded op. Messages about its gradient contain the text, for example a stack trace.
  std::function<std::string()> where = {};
};

// While this object lives, a gradient that becomes NaN in a backward pass of this thread is an error, and does not change
// any .grad. The error names the gradient's op and the shapes of the op's operands. With AnomalyOptions::forward the same
// holds for results. Each check reads one number from the device, so this is slow. Objects nest; destroy them in reverse
// order.
class PLUGRAD_API DetectAnomaly {
 public:
  explicit DetectAnomaly(AnomalyOptions options = {});
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;
  const AnomalyOptions& options() const { return options_; }

 private:
  AnomalyOptions options_;
  uint32_t mode_;
  const void* outer_;
};

}  // namespace plugrad
