// Elementwise ops, copies and conversions.
#include <backends/vulkan/grid.hpp>

#include <cstddef>
#include <cstring>

namespace plugrad::vulkan {
namespace {

constexpr uint32_t kComparisons[] = {PLUGRAD_OP_EQ, PLUGRAD_OP_NE, PLUGRAD_OP_LT, PLUGRAD_OP_LE};
constexpr uint32_t kMoves[] = {PLUGRAD_OP_FILL, PLUGRAD_OP_COPY, PLUGRAD_OP_WHERE};

void add_maps(RowList& list, std::span<const uint32_t> ops, std::span<const uint8_t> dtypes, const char* shader) {
  for (const uint32_t op : ops)
    for (const uint8_t dtype : dtypes)
      if (op_info(op)->is_for(dtype)) list.add(kernel<map>(op, dtype), shader + suffix_of(dtype));
}

}  // namespace

Grid grid_of(const Box& box) {
  Grid grid;  // the arrays before `base` stay unset: clearing them would slow small ops
  std::memset(&grid.base, 0, sizeof grid - offsetof(Grid, base));
  grid.count = static_cast<uint32_t>(box.count());
  grid.rank = static_cast<uint32_t>(box.rank);
  for (int d = 0; d < box.rank; ++d) {
    grid.divisor[d] = static_cast<uint32_t>(box.extent[d]);
    for (int k = 0; k < box.operands; ++k) grid.stride[k][d] = static_cast<int32_t>(box.stride[k][d]);
  }
  for (int d = 0; d + 1 < box.rank; ++d) {  // nothing divides by the last extent
    const Divider divider(grid.divisor[d]);
    grid.magic[d] = divider.magic;
    grid.shift[d] = divider.shift;
  }
  for (int k = 0; k < box.operands; ++k) {
    grid.base[k] = reinterpret_cast<uint64_t>(box.operand[k].base);
    grid.value[k] = box.operand[k].value;
  }
  return grid;
}

void map(const Call& call) {
  const plugrad_op& op = call.op();
  submit_box(call, Box(op.views, op.outputs + op.inputs), 0, [](Grid&) {});
}

void add_elementwise_rows(RowList& list, const Abilities& abilities) {
  constexpr uint8_t kF32 = PLUGRAD_F32, kIntegers[] = {PLUGRAD_I64, PLUGRAD_I32};
  const std::vector<uint8_t> numbers = number_dtypes(abilities), floating = floating_dtypes(abilities);
  const ElementwiseOps ops = elementwise_ops();
  add_maps(list, ops.moved, numbers, "elementwise");
  add_maps(list, ops.floating, floating, "elementwise");
  add_maps(list, ops.f32, std::span(&kF32, 1), "elementwise");
  add_maps(list, ops.integers, kIntegers, "elementwise");
  add_maps(list, kComparisons, numbers, "compare");
  constexpr uint8_t kBytes[] = {PLUGRAD_U8, PLUGRAD_BOOL};
  add_maps(list, kComparisons, kBytes, "compare");
}

void add_copy_rows(RowList& list, const Abilities& abilities) {
  const std::vector<uint8_t> stored = stored_dtypes(abilities);
  for (const uint32_t op : kMoves)
    for (const uint8_t dtype : stored) list.add(kernel<map>(op, dtype), "move_" + std::to_string(element_size(dtype)));
  const std::string cast = std::string("cast") + (abilities.i16 ? "_16" : "") + (abilities.f64 ? "_f64" : "");
  for (const uint8_t to : stored)
    for (const uint8_t from : stored) {
      const bool needs_f64 = to == PLUGRAD_F64 || from == PLUGRAD_F64;
      if (to == from || (needs_f64 && !abilities.f64)) continue;
      list.add(kernel<map>(PLUGRAD_OP_CAST, {to, from}), cast, 1, from, to);
    }
}

}  // namespace plugrad::vulkan
