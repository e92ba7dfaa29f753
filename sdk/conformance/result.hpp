// The result of a case, as it travels from a worker to the program that supervises it.
#pragma once
#include <sdk/conformance/message.hpp>
#include <sdk/conformance/session.hpp>

namespace plugrad::conformance {

struct Result {
  uint64_t cases = 0, failures = 0, declined = 0;
  std::vector<std::string> lines, skips;
  std::vector<MatrixRow> matrix;
  double seconds = 0;  // that the case took, with all that its process does for it; known to the supervisor alone
};

Result result_of(const Tally& tally, std::vector<MatrixRow> matrix);
Message message_of(const Result& result);
// Throws std::runtime_error for a message that message_of did not make.
Result result_in(const Message& message);

}  // namespace plugrad::conformance
