// A row for each op of ops.def: its problems, and its reference in higher precision.
#pragma once
#include <sdk/conformance/problem.hpp>

namespace plugrad::conformance {

void fill_reference(const Question&, const Problem&, Expectations&);
void copy_reference(const Question&, const Problem&, Expectations&);
void cast_reference(const Question&, const Problem&, Expectations&);
void iota_reference(const Question&, const Problem&, Expectations&);
void where_reference(const Question&, const Problem&, Expectations&);
void function_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> elementwise_problems(const Question&, Random&);
std::vector<Problem> iota_problems(const Question&, Random&);
// Widens the bounds of IOTA in f32, for a device without IOTA in f64.
void allow_iota_in_f32(const Problem&, Expectations&);

void sum_reference(const Question&, const Problem&, Expectations&);
void extreme_reference(const Question&, const Problem&, Expectations&);
void argmax_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> reduction_problems(const Question&, Random&);

void matmul_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> matmul_problems(const Question&, Random&);
void quantized_matmul_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> quantized_matmul_problems(const Question&, Random&);
void integer_matmul_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> integer_matmul_problems(const Question&, Random&);

void gather_reference(const Question&, const Problem&, Expectations&);
void scatter_add_reference(const Question&, const Problem&, Expectations&);
void scatter_sum_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> gather_problems(const Question&, Random&);
std::vector<Problem> scatter_add_problems(const Question&, Random&);
std::vector<Problem> scatter_sum_problems(const Question&, Random&);

void uniform_reference(const Question&, const Problem&, Expectations&);
void normal_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> random_problems(const Question&, Random&);

void log_softmax_reference(const Question&, const Problem&, Expectations&);
void log_softmax_backward_reference(const Question&, const Problem&, Expectations&);
void cross_entropy_reference(const Question&, const Problem&, Expectations&);
void cross_entropy_backward_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> log_softmax_problems(const Question&, Random&);
std::vector<Problem> log_softmax_backward_problems(const Question&, Random&);
std::vector<Problem> cross_entropy_problems(const Question&, Random&);
std::vector<Problem> cross_entropy_backward_problems(const Question&, Random&);

void softmax_reference(const Question&, const Problem&, Expectations&);
void softmax_backward_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> softmax_backward_problems(const Question&, Random&);

void layer_norm_reference(const Question&, const Problem&, Expectations&);
void layer_norm_backward_reference(const Question&, const Problem&, Expectations&);
void rms_norm_reference(const Question&, const Problem&, Expectations&);
void rms_norm_backward_reference(const Question&, const Problem&, Expectations&);
void batch_norm_reference(const Question&, const Problem&, Expectations&);
void batch_norm_backward_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> row_norm_problems(const Question&, Random&);
std::vector<Problem> row_norm_backward_problems(const Question&, Random&);
std::vector<Problem> batch_norm_problems(const Question&, Random&);
std::vector<Problem> batch_norm_backward_problems(const Question&, Random&);
void attention_reference(const Question&, const Problem&, Expectations&);
void attention_backward_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> attention_problems(const Question&, Random&);
std::vector<Problem> attention_backward_problems(const Question&, Random&);

void argsort_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> argsort_problems(const Question&, Random&);
std::vector<Problem> topk_problems(const Question&, Random&);

void cumsum_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> cumsum_problems(const Question&, Random&);

void fft_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> fft_problems(const Question&, Random&);

void convolution_reference(const Question&, const Problem&, Expectations&);
void convolution_input_grad_reference(const Question&, const Problem&, Expectations&);
void convolution_weight_grad_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> convolution_problems(const Question&, Random&);
void max_pool_reference(const Question&, const Problem&, Expectations&);
void max_pool_backward_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> max_pool_problems(const Question&, Random&);
std::vector<Problem> max_pool_backward_problems(const Question&, Random&);

void descent_reference(const Question&, const Problem&, Expectations&);
void sgd_reference(const Question&, const Problem&, Expectations&);
void adam_reference(const Question&, const Problem&, Expectations&);
std::vector<Problem> descent_problems(const Question&, Random&);
std::vector<Problem> sgd_problems(const Question&, Random&);
std::vector<Problem> adam_problems(const Question&, Random&);

// The remaining elementwise ops have their references in the tables of elementwise.cpp.
inline constexpr OpRow kOpRows[] = {
    {PLUGRAD_OP_FILL, elementwise_problems, fill_reference},
    {PLUGRAD_OP_COPY, elementwise_problems, copy_reference},
    {PLUGRAD_OP_CAST, elementwise_problems, cast_reference},
    {PLUGRAD_OP_IOTA, iota_problems, iota_reference},
    {PLUGRAD_OP_WHERE, elementwise_problems, where_reference},
    {PLUGRAD_OP_SUM, reduction_problems, sum_reference},
    {PLUGRAD_OP_MAX, reduction_problems, extreme_reference},
    {PLUGRAD_OP_MIN, reduction_problems, extreme_reference},
    {PLUGRAD_OP_ARGMAX, reduction_problems, argmax_reference},
    {PLUGRAD_OP_MATMUL, matmul_problems, matmul_reference},
    {PLUGRAD_OP_MATMUL_ADD, matmul_problems, matmul_reference},
    {PLUGRAD_OP_QUANTIZED_MATMUL, quantized_matmul_problems, quantized_matmul_reference},
    {PLUGRAD_OP_INTEGER_MATMUL, integer_matmul_problems, integer_matmul_reference},
    {PLUGRAD_OP_ATTENTION, attention_problems, attention_reference},
    {PLUGRAD_OP_ATTENTION_BACKWARD, attention_backward_problems, attention_backward_reference},
    {PLUGRAD_OP_GATHER, gather_problems, gather_reference},
    {PLUGRAD_OP_SCATTER_ADD, scatter_add_problems, scatter_add_reference},
    {PLUGRAD_OP_SCATTER_SUM, scatter_sum_problems, scatter_sum_reference},
    {PLUGRAD_OP_UNIFORM, random_problems, uniform_reference},
    {PLUGRAD_OP_NORMAL, random_problems, normal_reference},
    {PLUGRAD_OP_LOG_SOFTMAX, log_softmax_problems, log_softmax_reference},
    {PLUGRAD_OP_CROSS_ENTROPY, cross_entropy_problems, cross_entropy_reference},
    {PLUGRAD_OP_SOFTMAX, log_softmax_problems, softmax_reference},
    {PLUGRAD_OP_LAYER_NORM, row_norm_problems, layer_norm_reference},
    {PLUGRAD_OP_RMS_NORM, row_norm_problems, rms_norm_reference},
    {PLUGRAD_OP_BATCH_NORM, batch_norm_problems, batch_norm_reference},
    {PLUGRAD_OP_SOFTMAX_BACKWARD, softmax_backward_problems, softmax_backward_reference},
    {PLUGRAD_OP_LAYER_NORM_BACKWARD, row_norm_backward_problems, layer_norm_backward_reference},
    {PLUGRAD_OP_RMS_NORM_BACKWARD, row_norm_backward_problems, rms_norm_backward_reference},
    {PLUGRAD_OP_BATCH_NORM_BACKWARD, batch_norm_backward_problems, batch_norm_backward_reference},
    {PLUGRAD_OP_ARGSORT, argsort_problems, argsort_reference},
    {PLUGRAD_OP_TOPK, topk_problems, argsort_reference},
    {PLUGRAD_OP_CUMSUM, cumsum_problems, cumsum_reference},
    {PLUGRAD_OP_FFT, fft_problems, fft_reference},
    {PLUGRAD_OP_LOG_SOFTMAX_BACKWARD, log_softmax_backward_problems, log_softmax_backward_reference},
    {PLUGRAD_OP_CROSS_ENTROPY_BACKWARD, cross_entropy_backward_problems, cross_entropy_backward_reference},
    {PLUGRAD_OP_CONVOLUTION, convolution_problems, convolution_reference},
    {PLUGRAD_OP_CONVOLUTION_BIAS, convolution_problems, convolution_reference},
    {PLUGRAD_OP_CONVOLUTION_INPUT_GRAD, convolution_problems, convolution_input_grad_reference},
    {PLUGRAD_OP_CONVOLUTION_WEIGHT_GRAD, convolution_problems, convolution_weight_grad_reference},
    {PLUGRAD_OP_MAX_POOL, max_pool_problems, max_pool_reference},
    {PLUGRAD_OP_MAX_POOL_BACKWARD, max_pool_backward_problems, max_pool_backward_reference},
    {PLUGRAD_OP_DESCENT_STEP, descent_problems, descent_reference},
    {PLUGRAD_OP_SGD_STEP, sgd_problems, sgd_reference},
    {PLUGRAD_OP_ADAM_STEP, adam_problems, adam_reference},
};

consteval bool every_op_has_a_row() {
  for (const OpInfo& op : kOps) {
    int rows = 0;
    for (const OpRow& row : kOpRows) rows += row.opcode == op.opcode;
    if (rows > 1 || (rows == 0 && op.shape != OpShape::elementwise)) return false;
  }
  return true;
}
static_assert(every_op_has_a_row(), "every op of ops.def needs a conformance row");

}  // namespace plugrad::conformance
