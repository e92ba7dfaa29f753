#include <sdk/conformance/op_rows.hpp>

#include <cassert>
#include <cmath>

namespace plugrad::conformance {

const OpRow& row_of(uint32_t opcode) {
  static constexpr auto kAll = [] {
    std::array<OpRow, std::size(kOps)> all{};
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = {kOps[i].opcode, elementwise_problems, function_reference};
      for (const OpRow& row : kOpRows)
        if (row.opcode == kOps[i].opcode) all[i] = row;
    }
    return all;
  }();
  for (const OpRow& row : kAll)
    if (row.opcode == opcode) return row;
  assert(!"an opcode of ops.def was expected");
  return kAll[0];
}

std::string text_of(const Question& question) {
  std::string text = question.op->name;
  for (size_t i = 0; i < question.dtypes.size(); ++i)
    text += std::string(i ? "," : " ") + dtype_label_of(question.dtypes[i]);
  if (question.flags & PLUGRAD_ACCUMULATE) text += " +accumulate";
  if (question.flags & PLUGRAD_TF32) text += " +tf32";
  if (question.flags & PLUGRAD_DETERMINISTIC) text += " +deterministic";
  return text;
}

const plugrad_kernel* resolve(const plugrad_backend& table, plugrad_device* device, const Question& question,
                              uint16_t layout) {
  plugrad_signature signature{};
  signature.struct_size = sizeof signature;
  signature.opcode = question.op->opcode;
  signature.flags = question.flags;
  signature.layout = layout;
  signature.outputs = question.op->outputs;
  signature.inputs = question.op->inputs;
  std::copy(question.dtypes.begin(), question.dtypes.end(), signature.dtypes);
  return table.resolve(device, &signature);
}

namespace {

// Kernels of halves compute in f32, and round each result once. A cast is not computed.
Question computed_in(const Question& question) {
  Question wide = question;
  for (uint8_t& dtype : wide.dtypes)
    if (is_floating(dtype) && question.op->opcode != PLUGRAD_OP_CAST) dtype = summed_in(dtype);
  return wide;
}

// Returns the sum of an op's result and the output's previous value. The result may be rounded before the addition, or not.
Expected added(uint8_t dtype, Expected e, long double held) {
  if (e.bound == 0 || summed_in(dtype) != dtype) e.bound += ulp_bound(dtype, std::fabs(e.value) + e.bound, 0.5);
  e.value += held;
  e.bound += ulp_bound(dtype, std::fabs(e.value) + e.bound, 0.5);
  e.any_zero_sign = true;
  return e;
}
Expected added(uint8_t dtype, Expected e, int64_t held) {
  const uint64_t wrapping = static_cast<uint64_t>(held) + static_cast<uint64_t>(static_cast<int64_t>(e.value));
  e.value = static_cast<long double>(wrapped(dtype, static_cast<int64_t>(wrapping)));
  return e;
}

void add_output(const Array& before, Expectation& expected) {
  const uint8_t dtype = before.dtype();
  for (int64_t i = 0; i < before.count(); ++i) {
    Expected& e = expected.elements[i];
    e = is_floating(dtype) ? added(dtype, e, before.get(i)) : added(dtype, e, before.integer(i));
  }
}

}  // namespace

Expectations expectations(const OpRow& row, const Question& question, const Problem& problem) {
  Expectations list;
  for (const Array& output : problem.outputs) list.push_back({std::vector<Expected>(output.count()), {}});
  const Question wide = computed_in(question);
  row.reference(wide, problem, list);
  const bool sums = row.reference == sum_reference || row.reference == matmul_reference;  // their references add terms
  const bool rounds_each_sum = row.reference == scatter_add_reference || row.reference == scatter_sum_reference;
  for (int k = 0; k < static_cast<int>(list.size()); ++k) {
    if (k == 0 && question.accumulates() && !sums) add_output(problem.outputs[0], list[0]);
    else if (wide.out(k) != question.out(k) && !rounds_each_sum)
      for (Expected& e : list[k].elements) e = rounded_once(question.out(k), e);
  }
  return list;
}

}  // namespace plugrad::conformance
