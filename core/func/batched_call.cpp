#include <core/func/batched_call.hpp>

#include <core/tensor/impl.hpp>

#include <algorithm>
#include <cstring>

namespace plugrad::func {
namespace {
constexpr auto kAny = SIZE_MAX;

uint64_t alignment_of(const OpCall& call) { return call.storages[0]->device->info.alignment; }

}  // namespace

BatchedCall::BatchedCall(Batch& batch, const OpCall& call) : batch_(batch), call_(call) {
  views_.reserve(operands());
  for (size_t i = 0; i < operands(); ++i) keep(i);
}

void BatchedCall::make_outputs() {
  for (size_t i = 0; i < call_.outputs; ++i)
    batch_.make_output(*call_.storages[i], call_.views[i]->dtype, stand_ins::overwrites(call_, i));
}

plugrad_view BatchedCall::lifted(size_t i) const {
  const plugrad_view& v = *call_.views[i];
  Storage* const storage = call_.storages[i];
  const StandIn* const in = batch_.behind(storage);
  plugrad_view all = v;
  if (in) {
    all.buffer = in->value->buffer;
    all.offset = in->value->offset + in->base + (v.offset - storage->offset);
  }
  all.rank = static_cast<uint8_t>(v.rank + 1);
  std::copy(v.shape, v.shape + v.rank, all.shape + 1);
  std::copy(v.strides, v.strides + v.rank, all.strides + 1);
  all.shape[0] = batch_.size;
  all.strides[0] = in ? in->stride / static_cast<int64_t>(dtype_size(v.dtype)) : 0;
  set_layout(all, alignment_of(call_));
  return all;
}

void BatchedCall::keep(size_t i) {
  if (views_.size() <= i) {
    views_.push_back(*call_.views[i]);
    storages_.push_back(call_.storages[i]);
  } else {
    views_[i] = *call_.views[i];
    storages_[i] = call_.storages[i];
  }
}

void BatchedCall::lift(size_t i) {
  if (is_number(i)) return keep(i);
  views_[i] = lifted(i);
  const StandIn* const in = batch_.behind(call_.storages[i]);
  storages_[i] = in ? in->value.get() : call_.storages[i];
}

bool BatchedCall::fold(size_t i, int axis) {
  lift(i);
  if (is_number(i)) return true;
  plugrad_view v = views_[i];
  std::rotate(v.shape, v.shape + 1, v.shape + axis + 1);  // the examples lie in front of the axis
  std::rotate(v.strides, v.strides + 1, v.strides + axis + 1);
  const auto merges = [&] { return v.shape[axis + 1] == 1 || v.strides[axis] == v.strides[axis + 1] * v.shape[axis + 1]; };
  if (batch_.size > 1 && !merges()) {
    if (is_output(i)) return false;
    const Ref<Storage>& copy = copies_.emplace_back(
        allocate(*storages_[i]->device, static_cast<uint64_t>(v.count) * dtype_size(v.dtype), call_.opcode));
    plugrad_view dense = dense_view(shape_of(v), v.dtype, alignment_of(call_));
    dense.buffer = copy->buffer;
    dense.offset = copy->offset;
    set_layout(v, alignment_of(call_));
    plugrad::run(Op::COPY, {Operand(dense, copy.get())}, {Operand(v, storages_[i])});
    v = dense;
    storages_[i] = copy.get();
  }
  const int64_t stride = v.shape[axis + 1] == 1 ? v.strides[axis] : v.strides[axis + 1];
  v.shape[axis] *= v.shape[axis + 1];
  v.strides[axis] = stride;
  for (int k = axis + 1; k + 1 < v.rank; ++k) {
    v.shape[k] = v.shape[k + 1];
    v.strides[k] = v.strides[k + 1];
  }
  --v.rank;
  set_layout(v, alignment_of(call_));
  views_[i] = v;
  return true;
}

bool BatchedCall::fold_all(std::initializer_list<int> axes) {
  size_t i = 0;
  for (const int axis : axes) {
    if (axis < 0) keep(i);
    else if (!fold(i, axis)) return false;
    ++i;
  }
  return true;
}

bool BatchedCall::submit(const void* attributes, bool may_decline) {
  return submit_as(call_.opcode, attributes, may_decline);
}

bool BatchedCall::submit_as(uint32_t opcode, const void* attributes, bool may_decline) {
  std::vector<const plugrad_view*> views;
  for (const plugrad_view& each : views_) views.push_back(&each);
  return stand_ins::run_inner({opcode, call_.outputs, call_.inputs, views.data(), storages_.data(), attributes},
                              may_decline);
}

// --- The kinds of ops.

std::optional<bool> BatchedCall::elementwise(bool may_decline) {
  for (size_t i = 0; i < operands(); ++i) lift(i);
  return submit(call_.attributes, may_decline);
}

std::optional<bool> BatchedCall::along_axis(bool may_decline) {
  alignas(8) std::byte block[24];
  uint32_t bytes;
  std::memcpy(&bytes, call_.attributes, sizeof bytes);
  if (bytes > sizeof block) return {};
  std::memcpy(block, call_.attributes, bytes);
  int32_t axis;
  static_assert(offsetof(plugrad_axis, axis) == 4 && offsetof(plugrad_sort, axis) == 4 &&
                offsetof(plugrad_scan, axis) == 4 && offsetof(plugrad_fft, axis) == 4);
  std::memcpy(&axis, block + 4, sizeof axis);
  ++axis;
  std::memcpy(block + 4, &axis, sizeof axis);
  for (size_t i = 0; i < operands(); ++i) lift(i);
  return submit(block, may_decline);
}

// A matrix times a vector per example is the vectors, as rows, times the transposed matrix.
bool BatchedCall::multiply_rows() {
  for (size_t i = 0; i < operands(); ++i) {
    if (i == 1) continue;
    lift(i);
    if (is_number(i)) return false;
    views_[i].rank = 2;  // (examples, elements, 1) without the last axis
    set_layout(views_[i], alignment_of(call_));
  }
  keep(1);
  std::swap(views_[1].shape[0], views_[1].shape[1]);
  std::swap(views_[1].strides[0], views_[1].strides[1]);
  set_layout(views_[1], alignment_of(call_));
  std::swap(views_[1], views_[2]);
  std::swap(storages_[1], storages_[2]);
  return true;
}

// A product of a column and a row is a product of elements.
std::optional<bool> BatchedCall::multiply_elements(bool may_decline) {
  for (size_t i = 0; i < operands(); ++i) {
    lift(i);
    std::copy_n(views_[0].shape, views_[0].rank, views_[i].shape);
  }
  views_[1].strides[views_[1].rank - 1] = 0;
  views_[2].strides[views_[2].rank - 2] = 0;
  for (plugrad_view& each : views_) set_layout(each, alignment_of(call_));
  return submit_as(PLUGRAD_OP_MUL, nullptr, may_decline);
}

// Shared factors: the examples become rows.
std::optional<bool> BatchedCall::product(bool may_decline) {
  const bool has_sum = call_.opcode == PLUGRAD_OP_MATMUL_ADD, is_matrix = call_.views[1]->rank == 2;
  if (!has_sum && call_.views[2]->shape[call_.views[2]->rank - 2] == 1) return multiply_elements(may_decline);
  const bool shares_right = is_matrix && !is_batched(2);
  if (shares_right && (has_sum ? fold_all({0, 0, -1, 0}) : fold_all({0, 0, -1})))
    return submit(call_.attributes, may_decline);
  const bool are_vectors = is_matrix && !is_batched(1) && call_.views[2]->shape[1] == 1;
  if (are_vectors && multiply_rows()) return submit(call_.attributes, may_decline);
  return elementwise(may_decline);
}

std::optional<bool> BatchedCall::attention(bool may_decline) {
  const size_t query = call_.opcode == PLUGRAD_OP_ATTENTION ? 2 : 4;
  for (size_t i = 0; i < operands(); ++i) lift(i);
  if (!is_batched(query + 1) && !is_batched(query + 2) && call_.opcode == PLUGRAD_OP_ATTENTION)
    for (const size_t i : {query + 1, query + 2}) {
      views_[i].shape[0] = 1;
      set_layout(views_[i], alignment_of(call_));
    }
  return submit(call_.attributes, may_decline);
}

// Rows whose parameters, such as the weight of a norm, all examples share.
std::optional<bool> BatchedCall::rows(bool may_decline, size_t first_parameter, size_t parameters) {
  for (size_t i = 0; i < operands(); ++i) {
    const bool is_parameter = i >= first_parameter && i < first_parameter + parameters;
    if (is_parameter && is_batched(i)) return {};
    if (is_parameter) keep(i);
    else if (!fold(i, 0)) return {};
  }
  return submit(call_.attributes, may_decline);
}

// Examples that have a weight each are groups of channels; else they are a part of the batch.
std::optional<bool> BatchedCall::convolution(bool may_decline) {
  auto block = *static_cast<const plugrad_convolution*>(call_.attributes);
  const uint32_t op = call_.opcode;
  const bool has_bias = op == PLUGRAD_OP_CONVOLUTION_BIAS;
  const bool of_weight = op == PLUGRAD_OP_CONVOLUTION_WEIGHT_GRAD;
  if (!of_weight && !is_batched(2) && !(has_bias && is_batched(3))) {
    if (!(has_bias ? fold_all({0, 0, -1, -1}) : fold_all({0, 0, -1}))) return {};
    return submit(&block, may_decline);
  }
  block.groups *= batch_.size;
  const bool fits = of_weight ? fold_all({0, 1, 1}) : has_bias ? fold_all({1, 1, 0, 0}) : fold_all({1, 1, 0});
  if (!fits) return {};
  return submit(&block, may_decline);
}

// The numbers of a step, such as its rate, are shared.
std::optional<bool> BatchedCall::update(bool may_decline) {
  for (size_t i = 0; i < operands(); ++i) {
    if (i <= call_.outputs) lift(i);
    else if (is_batched(i)) return {};
  }
  return submit(call_.attributes, may_decline);
}

std::optional<bool> BatchedCall::run(bool may_decline) {
  const OpInfo* const info = op_info(call_.opcode);
  for (size_t i = 0; i < operands(); ++i)
    if (call_.views[i]->rank == PLUGRAD_MAX_RANK) return {};
  if (!info || call_.opcode == PLUGRAD_OP_IOTA) return {};
  make_outputs();
  switch (call_.opcode) {
    case PLUGRAD_OP_MATMUL:
    case PLUGRAD_OP_MATMUL_ADD: return product(may_decline);
    case PLUGRAD_OP_QUANTIZED_MATMUL: return is_batched(2) || is_batched(3) ? std::nullopt : rows(may_decline, 2, 2);
    case PLUGRAD_OP_INTEGER_MATMUL: return rows(may_decline, 2, 1);
    case PLUGRAD_OP_ATTENTION:
    case PLUGRAD_OP_ATTENTION_BACKWARD: return attention(may_decline);
    case PLUGRAD_OP_CROSS_ENTROPY:
    case PLUGRAD_OP_CROSS_ENTROPY_BACKWARD:
    case PLUGRAD_OP_MAX_POOL:
    case PLUGRAD_OP_MAX_POOL_BACKWARD: return rows(may_decline, kAny, 0);
    case PLUGRAD_OP_LAYER_NORM: return rows(may_decline, 4, 2);
    case PLUGRAD_OP_RMS_NORM: return rows(may_decline, 3, 1);
    case PLUGRAD_OP_LAYER_NORM_BACKWARD:
    case PLUGRAD_OP_RMS_NORM_BACKWARD:
    case PLUGRAD_OP_BATCH_NORM:
    case PLUGRAD_OP_BATCH_NORM_BACKWARD: return may_decline ? std::optional(false) : std::nullopt;
    default: break;
  }
  switch (info->shape) {
    case OpShape::generate:
    case OpShape::copy:
    case OpShape::elementwise:
    case OpShape::reduction: return elementwise(may_decline);
    case OpShape::rowwise:
    case OpShape::indexing: return along_axis(may_decline);
    case OpShape::contraction: return convolution(may_decline);
    case OpShape::update: return update(may_decline);
    default: return {};
  }
}

bool BatchedCall::run_each(bool may_decline) {
  make_outputs();
  for (int64_t example = 0; example < batch_.size; ++example) {
    for (size_t i = 0; i < operands(); ++i) {
      keep(i);
      const StandIn* const in = batch_.behind(call_.storages[i]);
      if (!in) continue;
      plugrad_view& v = views_[i];
      v.buffer = in->value->buffer;
      v.offset = in->value->offset + in->base + (v.offset - call_.storages[i]->offset) +
                 static_cast<uint64_t>(example * in->stride);
      set_layout(v, alignment_of(call_));
      storages_[i] = in->value.get();
    }
    if (!submit(call_.attributes, may_decline)) return false;
  }
  return true;
}

}  // namespace plugrad::func
