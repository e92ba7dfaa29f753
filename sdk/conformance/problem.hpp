// An op with its operands, independent of layouts: the computation and its expected result.
#pragma once
#include <sdk/conformance/expected.hpp>
#include <sdk/conformance/values.hpp>

#include <cstring>

namespace plugrad::conformance {

// The signature for resolve, without the layout class.
struct Question {
  const OpInfo* op;
  std::vector<uint8_t> dtypes;  // outputs, then inputs
  uint32_t flags = 0;

  uint8_t out(int i = 0) const { return dtypes[i]; }
  uint8_t in(int i) const { return dtypes[op->outputs + i]; }
  bool accumulates() const { return flags & PLUGRAD_ACCUMULATE; }
};
std::string text_of(const Question& question);
const plugrad_kernel* resolve(const plugrad_backend& table, plugrad_device* device, const Question& question,
                              uint16_t layout);

struct Problem {
  std::vector<Array> outputs;  // contents before the op; no op may read them, except for in-out operands
  std::vector<Array> inputs;
  std::vector<std::byte> attributes;
  bool large = false;  // tested in few layouts only

  template <class T> void set_attributes(const T& value) {
    attributes.resize(sizeof value);
    std::memcpy(attributes.data(), &value, sizeof value);
  }
  template <class T> T attributes_as() const {
    T value;
    std::memcpy(&value, attributes.data(), sizeof value);
    return value;
  }
};

using Expectations = std::vector<Expectation>;  // one per output
using Problems = std::vector<Problem> (*)(const Question&, Random&);
using Reference = void (*)(const Question&, const Problem&, Expectations&);

struct OpRow {
  uint32_t opcode;
  Problems problems;
  Reference reference;

  const OpInfo& op() const { return *op_info(opcode); }
  bool only_immediates() const { return op().shape == OpShape::generate; }
  // Whether inputs of one element may also be broadcast to the shape of the output.
  bool expands() const { return op().shape == OpShape::update; }
};

// Returns the row of an opcode. Each op of ops.def has a row.
const OpRow& row_of(uint32_t opcode);

// Calls the row's reference, and adds the previous output for ACCUMULATE.
Expectations expectations(const OpRow& row, const Question& question, const Problem& problem);

}  // namespace plugrad::conformance
