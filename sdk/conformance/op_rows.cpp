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

Expectations expectations(const OpRow& row, const Question& question, const Problem& problem) {
  Expectations list;
  for (const Array& output : problem.outputs) list.push_back({std::vector<Expected>(output.count()), {}});
  row.reference(question, problem, list);
  const bool sums = row.reference == sum_reference || row.reference == matmul_reference;  // their references add terms
  if (!question.accumulates() || sums) return list;
  const Array& before = problem.outputs[0];
  for (int64_t i = 0; i < before.count(); ++i) {
    Expected& e = list[0].elements[i];
    const long double held = before.get(i);
    if (!is_floating(before.dtype())) {
      const uint64_t wrapping =
          static_cast<uint64_t>(before.integer(i)) + static_cast<uint64_t>(static_cast<int64_t>(e.value));
      e.value = static_cast<long double>(wrapped(before.dtype(), static_cast<int64_t>(wrapping)));
      continue;
    }
    e.bound += 2 * limits_of(before.dtype()).epsilon * (std::fabs(held) + std::fabs(e.value));
    e.value += held;
    e.any_zero_sign = true;
  }
  return list;
}

}  // namespace plugrad::conformance
