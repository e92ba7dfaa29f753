#include <plugrad/ops/raw.hpp>

#include <core/ops/backward.hpp>
#include <core/ops/run.hpp>
#include <core/ops/write.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/sdk/extent.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace plugrad {
namespace {
constexpr const char* kName = "run_into";
constexpr size_t kMostInputs = 3;

const OpInfo& op_for(uint32_t opcode, size_t inputs) {
  const OpInfo* const op = op_info(opcode);
  const auto serves = [](const OpInfo& it) {
    const bool has_attributes =
        it.shape == OpShape::contraction && it.opcode != PLUGRAD_OP_MATMUL && it.opcode != PLUGRAD_OP_MATMUL_ADD;
    const bool is_known = it.shape == OpShape::elementwise || it.shape == OpShape::copy || it.shape == OpShape::reduction ||
                          it.shape == OpShape::contraction || it.opcode == PLUGRAD_OP_FILL;
    return is_known && !has_attributes && it.outputs == 1 && it.inputs <= kMostInputs;
  };
  if (!op || !serves(*op))
    refuse(kName, "opcode " + std::to_string(opcode) + " is " + (op ? op->name : "unknown") +
                      ": expected an elementwise op, a copy, a reduction, FILL, MATMUL or MATMUL_ADD");
  if (op->inputs != inputs)
    refuse(kName, std::string(op->name) + " takes " + std::to_string(op->inputs) + " inputs, but " + std::to_string(inputs) +
                      " are given");
  return *op;
}

// The dtype of the op: the dtype of its first tensor whose letter in ops.def is the op's dtype.
uint8_t dtype_of_call(const OpInfo& op, const Tensor& out, std::span<const OpInput> inputs) {
  const auto decides = [&](int operand) {
    return std::string_view("IBDAJKUSW").find(op.operands[operand]) == std::string_view::npos;
  };
  for (int k = 0; k < op.inputs; ++k)
    if (const Tensor* const x = std::get_if<Tensor>(&inputs[static_cast<size_t>(k)]); x && decides(k + 1))
      return dtype_of(*x);
  if (!decides(0)) refuse(kName, std::string(op.name) + " of numbers alone: give a tensor");
  return dtype_of(out);
}

void require_operand(const OpInfo& op, int operand, const Tensor& x, const Tensor& out, uint8_t dtype) {
  if (&device_of(x) != &device_of(out)) throw_not_together(op.name, x, out);
  const uint8_t expected = op.operand_dtype(operand, dtype);
  if (expected && dtype_of(x) != expected)
    refuse(kName, std::string(op.name) + ": " + (operand ? "input " + std::to_string(operand - 1) : "out") + " is " +
                      dtype_label(dtype_of(x)) + ", expected " + dtype_label(expected) + ": cast it");
}

[[noreturn]] void refuse_shape(const OpInfo& op, const Tensor& x, const Tensor& out) {
  refuse(kName, std::string(op.name) + ": an input of shape " + x.shape().text() + " does not fit out's shape " +
                    out.shape().text());
}

// Returns x as out's shape demands of an elementwise input.
plugrad_view broadcast_view(const OpInfo& op, const Tensor& x, const Tensor& out) {
  const plugrad_view &from = view_of(x), &to = view_of(out);
  bool fits = from.rank <= to.rank;
  for (int i = 0; fits && i < from.rank; ++i)
    fits = from.shape[i] == 1 || from.shape[i] == to.shape[to.rank - from.rank + i];
  if (!fits) refuse_shape(op, x, out);
  return same_shape(from, to) ? from : broadcast_to(from, to, device_of(x).info.alignment);
}

void require_reduced(const OpInfo& op, const Tensor& x, const Tensor& out) {
  bool fits = x.rank() == out.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = out.size(i) == x.size(i) || out.size(i) == 1;
  if (!fits) refuse_shape(op, x, out);
}

void require_product(const OpInfo& op, const Tensor& x, const Tensor& out, int input) {
  const int rank = out.rank();
  bool fits = rank >= 2 && x.rank() == rank;
  for (int i = 0; fits && i < rank - 2; ++i) fits = x.size(i) == out.size(i);
  if (!fits || (input != 1 && x.size(-2) != out.size(-2)) || (input != 0 && x.size(-1) != out.size(-1)))
    refuse_shape(op, x, out);
}

// Whether an op that writes out may read the same elements in their places only.
bool is_in_the_way(const plugrad_view& v, const Tensor& x, const Tensor& out, bool in_place) {
  const plugrad_view& o = view_of(out);
  if (storage_of(x) != storage_of(out) || !v.count || !o.count) return false;
  if (in_place && v.offset == o.offset && v.dtype == o.dtype && std::equal(v.strides, v.strides + v.rank, o.strides))
    return false;
  return extent_of(v, v.offset, false, 0).overlaps(extent_of(o, o.offset, true, 1));
}

// The operands of a call, and the copies among them.
class Inputs {
 public:
  Inputs(const OpInfo& op, const Tensor& out, std::span<const OpInput> inputs, uint8_t dtype) {
    const bool is_by_element = op.shape == OpShape::elementwise || op.shape == OpShape::copy;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const int operand = static_cast<int>(k) + 1;
      if (const Number* const number = std::get_if<Number>(&inputs[k])) {
        if (!is_by_element && op.opcode != PLUGRAD_OP_FILL) refuse(kName, std::string(op.name) + " takes no number");
        views_[k] = number_operand(static_cast<Op>(op.opcode), op.operand_dtype(operand, dtype), *number).view;
        continue;
      }
      Tensor x = std::get<Tensor>(inputs[k]);
      require_operand(op, operand, x, out, dtype);
      if (op.opcode == PLUGRAD_OP_FILL) refuse(kName, "FILL takes a number");
      if (op.shape == OpShape::reduction) require_reduced(op, x, out);
      if (op.shape == OpShape::contraction) require_product(op, x, out, static_cast<int>(k));
      plugrad_view view = is_by_element ? broadcast_view(op, x, out) : view_of(x);
      if (is_in_the_way(view, x, out, is_by_element)) {
        x = clone(x);
        view = is_by_element ? broadcast_view(op, x, out) : view_of(x);
      }
      is_empty_ |= !view.count;
      tensors_[k] = std::move(x);
      views_[k] = view;
    }
    if (op.shape == OpShape::contraction && tensors_[0].size(-1) != tensors_[1].size(-2)) refuse_shape(op, tensors_[0], out);
  }

  bool is_empty() const { return is_empty_; }
  const Tensor& tensor(size_t k) const { return tensors_[k]; }
  Operand operator[](size_t k) const {
    return tensors_[k].defined() ? operand(tensors_[k], views_[k]) : Operand(views_[k], nullptr);
  }

 private:
  Tensor tensors_[kMostInputs];
  plugrad_view views_[kMostInputs];  // of each operand, or a number
  bool is_empty_ = false;
};

// Writes the result of an op on no elements to out, which has some.
void write_empty(const OpInfo& op, const Inputs& inputs, Tensor out) {
  if (op.opcode == PLUGRAD_OP_MATMUL_ADD) return out.copy_(inputs.tensor(2));
  if (op.opcode != PLUGRAD_OP_SUM && op.opcode != PLUGRAD_OP_MATMUL)
    refuse(kName, std::string(op.name) + " of no elements: give an input with elements");
  out.fill_(0);
}

// The op that copies the input: a number fills, and a cast to the own dtype copies.
uint32_t copied_as(uint32_t opcode, const Tensor& out, std::span<const OpInput> inputs) {
  if ((opcode != PLUGRAD_OP_COPY && opcode != PLUGRAD_OP_CAST) || inputs.size() != 1) return opcode;
  const Tensor* const x = std::get_if<Tensor>(&inputs[0]);
  if (!x) return PLUGRAD_OP_FILL;
  return x->defined() && dtype_of(*x) == dtype_of(out) ? uint32_t{PLUGRAD_OP_COPY} : opcode;
}

template <size_t kInputs> bool call(const OpInfo& op, const Tensor& out, const Operand (&inputs)[kInputs]) {
  const Op number = static_cast<Op>(op.opcode);
  if (op.tier) return try_run(number, {out}, inputs);
  run(number, {out}, inputs);
  return true;
}
}  // namespace

bool run_into(uint32_t opcode, const Tensor& out, std::initializer_list<OpInput> given) {
  require_writable(out, kName);
  const WithoutGraph plainly;
  const std::span<const OpInput> all(given.begin(), given.size());
  if (const uint32_t other = copied_as(opcode, out, all); other != opcode) return run_into(other, out, given);
  const OpInfo& op = op_for(opcode, given.size());
  for (const OpInput& each : all)
    if (const Tensor* const x = std::get_if<Tensor>(&each)) require_defined(*x, kName);
  const uint8_t dtype = dtype_of_call(op, out, all);
  if (!op.is_for(dtype)) throw_dtype(static_cast<Op>(opcode), dtype, "another dtype, as ops.def says");
  require_operand(op, 0, out, out, dtype);
  const Inputs inputs(op, out, all, dtype);
  if (!out.count()) return true;
  if (inputs.is_empty()) return write_empty(op, inputs, out), true;
  ++storage_of(out)->version;
  const bool ran = op.inputs == 1   ? call(op, out, {inputs[0]})
                   : op.inputs == 2 ? call(op, out, {inputs[0], inputs[1]})
                                    : call(op, out, {inputs[0], inputs[1], inputs[2]});
  if (!ran) --storage_of(out)->version;
  return ran;
}

}  // namespace plugrad
