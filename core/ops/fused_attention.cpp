#include <core/ops/fused_attention.hpp>

#include <core/autograd/sum.hpp>
#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/autograd/function.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <limits>

namespace plugrad {
namespace {

Shape heads_of(const Tensor& x) {
  const Shape all = x.shape();
  Shape batch;
  for (int i = 0; i + 2 < all.rank(); ++i) batch.push_back(all[i]);
  return batch;
}
Shape with(Shape batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

// The same matrices, with axes of extent 1 in front of the batch.
Tensor of_rank(const Tensor& x, int rank) {
  Tensor out = x;
  while (out.rank() < rank) out = unsqueeze(out, 0);
  return out;
}

// Splits the axis of heads into two axes: the heads of the keys, and the queries that share each of these heads.
void group_heads(AttentionOperands& o) {
  const int64_t heads = o.key.size(-3), each = o.query.size(-3) / heads;
  o.query = unflatten(o.query, -3, {heads, each});
  o.key = unsqueeze(o.key, -3);
  o.value = unsqueeze(o.value, -3);
  if (!o.mask.defined() || o.mask.rank() < 3) return;
  o.mask = o.mask.size(-3) == 1 ? unsqueeze(o.mask, -3) : unflatten(o.mask, -3, {heads, each});
}

// A mask to add to the scores, in their shape: 0 where a mask of bool is true, -infinity where it is false.
Tensor added_mask(const AttentionOperands& o, const Shape& scores) {
  const NoGrad constant;
  const DType dtype = o.query.dtype();
  if (o.mask.dtype() != DType::boolean) return expand(o.mask, scores);
  const Tensor never = scalar(-std::numeric_limits<double>::infinity(), dtype, o.query.device());
  return expand(where(o.mask, 0, never), scores);
}

// Gives the operands the shapes expected by the op. Returns whether they have such shapes.
bool align(AttentionOperands& o) {
  if (o.shares_heads && o.key.size(-3) != o.query.size(-3)) {
    const bool fits = !o.mask.defined() || o.mask.rank() < 3 || o.mask.size(-3) == 1 || o.mask.size(-3) == o.query.size(-3);
    if (o.value.size(-3) != o.key.size(-3) || !fits) return false;
    group_heads(o);
  }
  const Shape keys = broadcast_shapes(heads_of(o.key), heads_of(o.value));
  const Shape batch = broadcast_shapes(heads_of(o.query), keys), scores = with(batch, o.query.size(-2), o.key.size(-2));
  if (scores.rank() > PLUGRAD_MAX_RANK) return false;
  if (o.mask.defined() && broadcast_shapes(o.mask.shape(), scores) != scores) return false;
  o.query = expand(o.query, with(batch, o.query.size(-2), o.query.size(-1)));
  o.key = of_rank(expand(o.key, with(keys, o.key.size(-2), o.key.size(-1))), scores.rank());
  o.value = of_rank(expand(o.value, with(keys, o.value.size(-2), o.value.size(-1))), scores.rank());
  if (o.mask.defined()) o.mask = added_mask(o, scores);
  return true;
}

// An uninitialised tensor of this shape. Its axes have the same order in memory as the axes of `like`. If a model has split
// heads off a row, they stay beside each other, and joining them again copies nothing.
Tensor empty_in_order_of(const Tensor& like, const Shape& shape) {
  const plugrad_view& v = view_of(like);
  Shape order, back = shape;
  for (int i = 0; i < v.rank; ++i) {
    if (v.strides[i] <= 0 && v.shape[i] > 1) return empty(Op::ATTENTION, device_of(like), shape, dtype_of(like));
    order.push_back(i);
  }
  // An axis of extent 1 may lie anywhere.
  const auto distance = [&v](int64_t i) { return v.shape[i] > 1 ? v.strides[i] : std::numeric_limits<int64_t>::max(); };
  std::stable_sort(order.begin(), order.end() - 1, [&](int64_t i, int64_t j) { return distance(i) > distance(j); });
  Shape inside;
  for (size_t i = 0; i < order.size(); ++i) {
    inside.push_back(shape[static_cast<size_t>(order[i])]);
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return permute(empty(Op::ATTENTION, device_of(like), inside, dtype_of(like)), back);
}

plugrad_attention attributes_of(const AttentionOperands& o) {
  return {sizeof(plugrad_attention), o.causal ? 1u : 0u, o.scale};
}

class AttentionCall final : public Function {
 public:
  AttentionCall(AttentionOperands operands, Tensor out, Tensor lse)
      : operands_(std::move(operands)), out_(std::move(out)), lse_(std::move(lse)) {}
  std::string name() const override { return "attention"; }

  std::vector<Tensor> forward(const std::vector<Tensor>& inputs) override {
    save_for_backward({inputs[0], inputs[1], inputs[2], operands_.mask, out_, lse_});
    operands_.query = operands_.key = operands_.value = operands_.mask = lse_ = {};
    return {std::move(out_)};
  }

  std::vector<Tensor> backward(const std::vector<Tensor>& grads) override {
    const std::vector<Tensor> saved = saved_tensors();
    return may_fuse() ? fused(grads[0], saved) : composed(grads[0], saved);
  }

 private:
  std::vector<Tensor> fused(const Tensor& grad, const std::vector<Tensor>& x) const {
    std::vector<Tensor> out;
    for (int i = 0; i < 3; ++i) out.push_back(empty_in_order_of(x[i], x[i].shape()));
    const plugrad_attention attributes = attributes_of(operands_);
    const MaskOperand mask(x[3], x[0].dtype());
    if (try_run(Op::ATTENTION_BACKWARD, {out[0], out[1], out[2]}, {grad, x[0], x[1], x[2], mask, x[4], x[5]}, attributes))
      return out;
    count_decomposition(grad);
    return composed(grad, x);
  }

  // The gradients of key and value are summed over the axes along which they are shared. Halves are rounded once: at the
  // end.
  std::vector<Tensor> composed(const Tensor& grad_out, const std::vector<Tensor>& x) const {
    const Tensor query = at_least_f32(x[0]), key = at_least_f32(x[1]), value = at_least_f32(x[2]);
    const Tensor mask = x[3].defined() ? at_least_f32(x[3]) : Tensor(), grad = at_least_f32(grad_out);
    const Tensor scores = mul(matmul(query, transpose(key)), operands_.scale);
    const Tensor weights = attention_weights(scores, mask, operands_.causal);
    const Tensor change = matmul(grad, transpose(value));
    const Tensor slopes = mul(mul(weights, sub(change, sum(mul(change, weights), {-1}, true))), operands_.scale);
    const DType dtype = x[0].dtype();
    const auto summed = [&](const Tensor& slope, const Tensor& of) { return cast(sum_to(slope, of.shape()), dtype); };
    return {cast(matmul(slopes, key), dtype), summed(matmul(transpose(slopes), query), key),
            summed(matmul(transpose(weights), grad), value)};
  }

  AttentionOperands operands_;
  Tensor out_, lse_;
};

bool is_recorded(const AttentionOperands& o) {
  return recording() && (o.query.requires_grad() || o.key.requires_grad() || o.value.requires_grad());
}

}  // namespace

Tensor fused_attention(const AttentionOperands& operands) {
  AttentionOperands o = operands;
  if (!o.query.count() || !o.key.count() || !o.value.count()) return {};
  if (recording() && o.mask.defined() && o.mask.requires_grad()) return {};
  const bool grouped = o.shares_heads && o.key.size(-3) != o.query.size(-3);
  if (!align(o)) return {};
  const Shape shape = with(heads_of(o.query), o.query.size(-2), o.value.size(-1));
  Tensor out = empty_in_order_of(o.query, shape);
  const Tensor lse = empty(Op::ATTENTION, device_of(o.query), with(heads_of(o.query), o.query.size(-2), 1),
                           accumulator_dtype(dtype_of(o.query)));
  const plugrad_attention attributes = attributes_of(o);
  const MaskOperand mask(o.mask, o.query.dtype());
  if (!try_run(Op::ATTENTION, {out, lse}, {o.query, o.key, o.value, mask}, attributes)) return {};
  if (is_recorded(o)) {
    const std::vector<Tensor> inputs{o.query, o.key, o.value};
    out = apply_function<AttentionCall>(inputs, std::move(o), std::move(out), lse)[0];
  }
  return grouped ? flatten(out, -4, -3) : out;
}

}  // namespace plugrad
