// The queries of the op table that dispatch uses.
#include <gtest/gtest.h>
#include <core/runtime/dispatch/op_table.hpp>

#include <string>
#include <vector>

namespace plugrad {
namespace {

constexpr uint32_t id(Op op) { return static_cast<uint32_t>(op); }

// An immediate becomes memory of the output's shape if the op is elementwise, else memory of one element. The output's shape
// would be wrong for cross_entropy_backward, whose operands differ in shape.
TEST(OpTable, OpsWhoseOperandsDifferInShapeAreNotElementwise) {
  for (const Op op : {Op::ADD, Op::WHERE, Op::EXP, Op::EQ}) EXPECT_TRUE(is_elementwise(id(op))) << op_label(id(op));
  for (const Op op : {Op::CROSS_ENTROPY_BACKWARD, Op::CROSS_ENTROPY, Op::LOG_SOFTMAX_BACKWARD, Op::SUM, Op::MATMUL,
                      Op::GATHER, Op::UNIFORM, Op::ADAM_STEP, Op::CONVOLUTION, Op::MAX_POOL})
    EXPECT_FALSE(is_elementwise(id(op))) << op_label(id(op));
}

TEST(OpTable, OutputsThatAreReadAsWellAreMarked) {
  EXPECT_TRUE(is_in_out(id(Op::SCATTER_ADD), 0));
  EXPECT_TRUE(is_in_out(id(Op::ADAM_STEP), 2));
  EXPECT_FALSE(is_in_out(id(Op::ADAM_STEP), 3));
  EXPECT_FALSE(is_in_out(id(Op::ADD), 0));
  EXPECT_FALSE(is_in_out(PLUGRAD_PRIVATE_OPS, 0));
}

// Kernels are cached by the dtype of one operand, which must distinguish all kernels of the op.
TEST(OpTable, TheKeyIsNoIndexAndNoConditionAndNoSourceOfACast) {
  EXPECT_EQ(key_operand(id(Op::ADD)), 2);
  EXPECT_EQ(key_operand(id(Op::EQ)), 2);  // operand 0 is bool, the operands to compare follow
  EXPECT_EQ(key_operand(id(Op::WHERE)), 3);
  EXPECT_EQ(key_operand(id(Op::CAST)), 0);    // the source selects a slot of its own
  EXPECT_EQ(key_operand(id(Op::GATHER)), 1);  // not the index after it
  EXPECT_EQ(key_operand(id(Op::SCATTER_ADD)), 2);
  EXPECT_EQ(key_operand(id(Op::ARGMAX)), 1);   // not the resulting indices
  EXPECT_EQ(key_operand(id(Op::UNIFORM)), 0);  // not the seed
  EXPECT_EQ(key_operand(id(Op::CROSS_ENTROPY)), 2);
  EXPECT_EQ(key_operand(id(Op::CROSS_ENTROPY_BACKWARD)), 2);
  EXPECT_EQ(key_operand(PLUGRAD_PRIVATE_OPS), 0);
}

TEST(OpTable, LabelsAreWhatErrorsPrint) {
  EXPECT_EQ(op_label(id(Op::SCATTER_ADD)), "scatter_add");
  EXPECT_EQ(op_label(PLUGRAD_PRIVATE_OPS), "op " + std::to_string(PLUGRAD_PRIVATE_OPS));
  EXPECT_EQ(dtype_label(PLUGRAD_F64), "f64");
}

}  // namespace
}  // namespace plugrad
