// An op with its operands, apart from any layout: what is to be computed, and what must come out.
#pragma once
#include <sdk/conformance/expected.hpp>
#include <sdk/conformance/values.hpp>

#include <cstring>

namespace plugrad::conformance {

// What is asked of the plugin, but for the layout class.
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
  std::vector<Array> outputs;  // what they hold before: NaN and the like, save where the op reads them
  std::vector<Array> inputs;
  std::vector<std::byte> attributes;
  bool large = false;  // tried in few layouts only

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

// The row of an opcode; there is one for each op of ops.def.
const OpRow& row_of(uint32_t opcode);

// reference, and what ACCUMULATE adds to it.
Expectations expectations(const OpRow& row, const Question& question, const Problem& problem);

}  // namespace plugrad::conformance
