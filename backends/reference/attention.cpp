#include <backends/reference/kernels.hpp>
#include <plugrad/sdk/loops/accumulator.hpp>
#include <plugrad/sdk/loops/elements.hpp>
#include <plugrad/sdk/mask.hpp>

#include <cmath>
#include <vector>

namespace plugrad::reference {
namespace {

// A matrix of an operand: the last two axes.
template <class T> struct Matrix {
  T* first;
  int64_t row, column;
  T& operator()(int64_t i, int64_t j) const { return first[i * row + j * column]; }
  double number(int64_t i, int64_t j) const { return static_cast<double>((*this)(i, j)); }
};

// The matrices of one batch; axes where an operand has extent 1 do not move it.
class Batch {
 public:
  Batch(const plugrad_view& query, int64_t number) : axes_(query.rank - 2) {
    for (int d = axes_ - 1; d >= 0; number /= query.shape[d--]) index_[d] = number % query.shape[d];
  }
  template <class T> Matrix<T> of(const plugrad_view& view) const {
    const Strides strides = strides_of(view);
    T* first = data<T>(view);
    for (int d = 0; d < axes_; ++d)
      if (view.shape[d] > 1) first += index_[d] * strides[d];
    return {first, view.shape[axes_] > 1 ? strides[axes_] : 0, view.shape[axes_ + 1] > 1 ? strides[axes_ + 1] : 0};
  }

 private:
  int axes_;
  int64_t index_[PLUGRAD_MAX_RANK];
};

int64_t batches_of(const plugrad_view& x) { return x.count / (x.shape[x.rank - 2] * x.shape[x.rank - 1]); }

struct Sizes {
  int64_t l, s, e, v;
  Sizes(const plugrad_view& query, const plugrad_view& value)
      : l(query.shape[query.rank - 2]), s(value.shape[value.rank - 2]), e(query.shape[query.rank - 1]),
        v(value.shape[value.rank - 1]) {}
};

// The scores of query i; -inf for keys hidden by causal attention.
template <class T> class Scores {
 public:
  Scores(const Batch& batch, const plugrad_view* const* inputs, const Sizes& sizes, const plugrad_attention& attributes)
      : query_(batch.of<const T>(*inputs[0])), key_(batch.of<const T>(*inputs[1])),
        mask_(batch.of<const T>(mask_view(*inputs[3], *inputs[0], *inputs[1]))),
        number_(is_immediate(*inputs[3]) ? immediate<double>(*inputs[3]) : 0), sizes_(sizes), attributes_(attributes) {}
  double operator()(int64_t i, int64_t j) const {
    if (attributes_.causal && j > i) return -HUGE_VAL;
    Accumulator<double> sum;
    for (int64_t c = 0; c < sizes_.e; ++c) sum.add(query_.number(i, c) * key_.number(j, c));
    return sum.total() * attributes_.scale + (mask_.first ? mask_.number(i, j) : number_);
  }

 private:
  Matrix<const T> query_, key_, mask_;
  double number_;  // in the place of a mask
  const Sizes& sizes_;
  const plugrad_attention& attributes_;
};

template <class T> void attend(const Call& call, const Sizes& n, const Batch& batch) {
  const Scores<T> scores(batch, call.op().views + 2, n, call.attributes<plugrad_attention>());
  const auto value = batch.of<const T>(call.in(2));
  const auto out = batch.of<T>(call.out(0));
  const auto lse = batch.of<AccumulatorType<T>>(call.out(1));
  std::vector<double> weights(n.s);
  for (int64_t i = 0; i < n.l; ++i) {
    double largest = -HUGE_VAL;
    for (int64_t j = 0; j < n.s; ++j) largest = std::fmax(largest, weights[j] = scores(i, j));
    const double shift = largest == -HUGE_VAL ? 0 : largest;
    Accumulator<double> total;
    for (double& w : weights) total.add(w = std::exp(w - shift));
    const double sum = total.total();
    lse(i, 0) = static_cast<AccumulatorType<T>>(shift + std::log(sum));
    for (int64_t c = 0; c < n.v; ++c) {
      Accumulator<double> mean;
      for (int64_t j = 0; j < n.s; ++j) mean.add(weights[j] * value.number(j, c));
      out(i, c) = static_cast<T>(sum == 0 ? 0 : mean.total() / sum);
    }
  }
}

template <class T> void attention(const Call& call) {
  const Sizes sizes(call.in(0), call.in(2));
  for (int64_t b = 0; b < batches_of(call.in(0)); ++b) attend<T>(call, sizes, Batch(call.in(0), b));
}

// The gradients of one key and value: sums in double. Several batches may share a key and value.
template <class T> class SharedGradients {
 public:
  SharedGradients(const Call& call, const Sizes& sizes)
      : call_(call), n_(sizes), keys_(sizes.s * sizes.e), values_(sizes.s * sizes.v) {}

  // Adds the contribution of one batch, and stores the gradient of its query.
  void add(const Batch& batch) {
    const auto grad = batch.of<const T>(call_.in(0)), out = batch.of<const T>(call_.in(5));
    const auto lse = batch.of<const AccumulatorType<T>>(call_.in(6));
    const Scores<T> scores(batch, call_.op().views + 4, n_, call_.attributes<plugrad_attention>());
    for (int64_t i = 0; i < n_.l; ++i) {
      Accumulator<double> delta;
      for (int64_t c = 0; c < n_.v; ++c) delta.add(grad.number(i, c) * out.number(i, c));
      std::vector<Accumulator<double>> row(n_.e);
      const double sum = lse.number(i, 0);
      for (int64_t j = 0; j < n_.s; ++j)
        if (const double score = scores(i, j); sum != -HUGE_VAL && score != -HUGE_VAL)
          add_pair(batch, i, j, std::exp(score - sum), delta.total(), row);
      const auto grad_query = batch.of<T>(call_.out(0));
      for (int64_t c = 0; c < n_.e; ++c) grad_query(i, c) = static_cast<T>(row[c].total());
    }
  }

  void store(const Batch& batch) const {
    const auto grad_key = batch.of<T>(call_.out(1)), grad_value = batch.of<T>(call_.out(2));
    for (int64_t j = 0; j < n_.s; ++j) {
      for (int64_t c = 0; c < n_.e; ++c) grad_key(j, c) = static_cast<T>(keys_[j * n_.e + c]);
      for (int64_t c = 0; c < n_.v; ++c) grad_value(j, c) = static_cast<T>(values_[j * n_.v + c]);
    }
  }

 private:
  void add_pair(const Batch& batch, int64_t i, int64_t j, double weight, double delta,
                std::vector<Accumulator<double>>& row) {
    const auto grad = batch.of<const T>(call_.in(0)), query = batch.of<const T>(call_.in(1));
    const auto key = batch.of<const T>(call_.in(2)), value = batch.of<const T>(call_.in(3));
    Accumulator<double> change;
    for (int64_t c = 0; c < n_.v; ++c) change.add(grad.number(i, c) * value.number(j, c));
    const double slope = weight * (change.total() - delta) * call_.attributes<plugrad_attention>().scale;
    for (int64_t c = 0; c < n_.v; ++c) values_[j * n_.v + c] += weight * grad.number(i, c);
    for (int64_t c = 0; c < n_.e; ++c) keys_[j * n_.e + c] += slope * query.number(i, c);
    for (int64_t c = 0; c < n_.e; ++c) row[c].add(slope * key.number(j, c));
  }

  const Call& call_;
  const Sizes& n_;
  std::vector<double> keys_, values_;
};

template <class T> void attention_backward(const Call& call) {
  const plugrad_view &query = call.in(1), &key = call.in(2);
  const Sizes sizes(query, call.in(3));
  for (int64_t owner = 0; owner < batches_of(key); ++owner) {
    const Batch place(key, owner);
    SharedGradients<T> gradients(call, sizes);
    const T* const mine = place.of<T>(call.out(1)).first;
    for (int64_t b = 0; b < batches_of(query); ++b)
      if (const Batch batch(query, b); batch.of<T>(call.out(1)).first == mine) gradients.add(batch);
    gradients.store(place);
  }
}

template <class... T> constexpr auto attention_rows(Types<T...>) {
  return join(std::array{kernel<attention<T>>(PLUGRAD_OP_ATTENTION, element_dtype<T>)...},
              std::array{kernel<attention_backward<T>>(PLUGRAD_OP_ATTENTION_BACKWARD, element_dtype<T>)...});
}
constexpr auto kAttentionRows = attention_rows(kFloating);

}  // namespace

Rows attention_kernels() { return kAttentionRows; }

}  // namespace plugrad::reference
