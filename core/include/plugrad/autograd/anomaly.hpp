// Finds the op that makes the first NaN.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace plugrad {

struct AnomalyOptions {
  // Whether an op is an error as well if its result has NaN and no operand has. Only recorded ops are looked at.
  bool forward = true;
  // Called for each op that is recorded. Messages about its gradient contain the text, for example a stack trace.
  std::function<std::string()> where = {};
};

// For its lifetime, gradients that become NaN in a backward pass of this thread are an error, which names the op whose
// gradient it is and the shapes of its operands; they do not change any .grad. With AnomalyOptions::forward the same holds
// for results. Each check reads one number from the device, so this is slow. Objects nest; destroy them in reverse order.
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
