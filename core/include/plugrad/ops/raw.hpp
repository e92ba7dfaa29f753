// Ops of the op table into given tensors: for libraries whose callers allocate results.
#pragma once
#include <plugrad/sdk/ops.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <initializer_list>
#include <variant>

namespace plugrad {

using OpInput = std::variant<Tensor, Number>;

// Writes op(inputs) to out, unrecorded and in one kernel where the device has it. opcode: PLUGRAD_OP_ADD and others of
// ops.def that are elementwise, a copy, a reduction or a product; reductions reduce the axes along which out has extent 1,
// and keep them. Elementwise inputs broadcast to out's shape. out may be an input; an input that overlaps out in another
// way is copied first. Returns false, with nothing written, if the device has no kernel for an op of tier 1: then call the
// function of the op's name, and copy its result. Throws Error (invalid) for operands that do not fit the op, and as
// Tensor::copy_ does for out.
PLUGRAD_API bool run_into(uint32_t opcode, const Tensor& out, std::initializer_list<OpInput> inputs);

}  // namespace plugrad
