#include <core/runtime/dispatch/operand.hpp>

#include <core/runtime/dispatch/op_table.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>

namespace plugrad {

std::string extents_text(std::span<const int64_t> extents) {
  std::string all = "(";
  for (size_t i = 0; i < extents.size(); ++i) all += (i ? ", " : "") + std::to_string(extents[i]);
  return all + (extents.size() == 1 ? ",)" : ")");
}

int64_t count_beyond_range(const plugrad_view& v) {
  if (std::ranges::count(std::span(v.shape, v.rank), 0)) return 0;
  throw Error(Code::invalid, "[shape] more than 2^63 - 1 elements: " + extents_text({v.shape, v.rank}));
}

uint64_t dense_bytes(uint32_t opcode, const plugrad_view& v) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(v.count, static_cast<int64_t>(dtype_size(v.dtype)), &bytes))
    throw Error(Code::invalid, "[" + op_label(opcode) + "] a result of shape " + extents_text({v.shape, v.rank}) +
                                   " takes more than 2^63 - 1 bytes: use smaller operands");
  return static_cast<uint64_t>(bytes);
}

}  // namespace plugrad
