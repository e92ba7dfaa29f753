// The result of a case, sent from a worker to its supervisor.
#pragma once
#include <sdk/conformance/message.hpp>
#include <sdk/conformance/session.hpp>

namespace plugrad::conformance {

struct Result {
  uint64_t cases = 0, failures = 0, declined = 0;
  std::vector<std::string> lines, skips;
  std::vector<MatrixRow> matrix;
  double seconds = 0;  // the time of the case, with all work of its process for it; only the supervisor knows it
};

Result result_of(const Tally& tally, std::vector<MatrixRow> matrix);
Message message_of(const Result& result);
// Throws std::runtime_error for a message not made by message_of.
Result result_in(const Message& message);

}  // namespace plugrad::conformance
