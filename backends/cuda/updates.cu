// The optimisers' steps, each in one pass over memory. A launch may run the steps of many parameters.
#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/update_functions.hpp>
#include <backends/cuda/updates.hpp>

#include <algorithm>
#include <cstring>
#include <string>

namespace plugrad::cuda {
namespace {

template <class T> DescentStep<T> descent_of(const Call&) { return {}; }
template <class T> SgdStep<T> sgd_of(const Call& call) {
  const auto& a = call.attributes<plugrad_sgd>();
  return {a.momentum, a.weight_decay, a.nesterov != 0};
}
template <class T> AdamStep<T> adam_of(const Call& call) {
  const auto& a = call.attributes<plugrad_adam>();
  return {a.beta1, a.beta2, a.epsilon, a.weight_decay, a.decoupled != 0};
}

template <class T> void descent_step(const Call& call, const Submission& submission) {
  map_box<DescentStep<T>, T, T, T>(submission, Box(call.op().views, 3), descent_of<T>(call));
}
template <class T> void sgd_step(const Call& call, const Submission& submission) {
  map_box<SgdStep<T>, T, T, T, T>(submission, Box(call.op().views, 4), sgd_of<T>(call));
}
template <class T> void adam_step(const Call& call, const Submission& submission) {
  map_box<AdamStep<T>, T, T, T, T, T, T, T>(submission, Box(call.op().views, 7), adam_of<T>(call));
}

// --- The steps of many parameters.

constexpr int kMostMemories = 4, kMostNumbers = 3;

// Parameters of one step; a launch passes it by value, as its argument of at most 4 KB.
template <class T> struct Parameters {
  static constexpr uint32_t kMost = 96;
  char* base[kMost][kMostMemories];  // of the outputs, then of the gradient
  uint32_t count[kMost];             // elements
  uint32_t first[kMost];             // the first block of each
  uint32_t parameters, blocks;
  T number[kMostNumbers];
};

// Calls F with elements of M memories and N numbers.
template <class F, class T, size_t... m, size_t... n>
__device__ __forceinline__ void apply(const F& f, T* (&at)[sizeof...(m)], const Parameters<T>& all,
                                      std::index_sequence<m...>, std::index_sequence<n...>) {
  f(*at[m]..., all.number[n]...);
}

template <class F, class T, int M, int N, int V>
__device__ __forceinline__ void update_pack(const F& f, const Parameters<T>& all, char* const* base, uint32_t i) {
  Pack<T, V> pack[M];
#pragma unroll
  for (int k = 0; k < M; ++k) pack[k] = *reinterpret_cast<const Pack<T, V>*>(reinterpret_cast<const T*>(base[k]) + i);
#pragma unroll
  for (int j = 0; j < V; ++j) {
    T* at[M];
#pragma unroll
    for (int k = 0; k < M; ++k) at[k] = &pack[k].at[j];
    apply(f, at, all, std::make_index_sequence<M>(), std::make_index_sequence<N>());
  }
#pragma unroll
  for (int k = 0; k < F::kOutputs; ++k) *reinterpret_cast<Pack<T, V>*>(reinterpret_cast<T*>(base[k]) + i) = pack[k];
}

// A block updates one pack of elements of a parameter for each thread.
template <class F, class T, int N>
__global__ void __launch_bounds__(kBlock) updates_kernel(const __grid_constant__ Parameters<T> all, const F f) {
  constexpr int M = F::kOutputs + 1, V = kPack<T>;
  uint32_t low = 0, high = all.parameters - 1;  // the last parameter with its first block here or before
  while (low < high) {
    const uint32_t middle = (low + high + 1) / 2;
    if (all.first[middle] <= blockIdx.x) low = middle;
    else high = middle - 1;
  }
  const uint32_t count = all.count[low], i = ((blockIdx.x - all.first[low]) * kBlock + threadIdx.x) * V;
  if (i + V <= count) return update_pack<F, T, M, N, V>(f, all, all.base[low], i);
  for (uint32_t j = i; j < count; ++j) update_pack<F, T, M, N, 1>(f, all, all.base[low], j);
}

bool same_numbers(const plugrad_op& a, const plugrad_op& b) {
  for (int k = a.outputs + 1; k < a.outputs + a.inputs; ++k)
    if (a.views[k]->offset != b.views[k]->offset) return false;
  const auto* const bytes = static_cast<const uint32_t*>(a.attributes);
  return !bytes || !std::memcmp(bytes, b.attributes, *bytes);
}

// Whether a launch can update this parameter with others: it has dense packs, and its numbers are passed by value.
template <class T> bool is_plain(const plugrad_op& op) {
  const int memories = op.outputs + 1;
  for (int k = 0; k < op.outputs + op.inputs; ++k) {
    const plugrad_view& view = *op.views[k];
    if (k >= memories && !is_immediate(view)) return false;
    if (k >= memories) continue;
    if (view.layout & PLUGRAD_STRIDED || view.count != op.views[0]->count || view.count > kSpan) return false;
    if (reinterpret_cast<uintptr_t>(data<char>(view)) % sizeof(Pack<T, kPack<T>>)) return false;
  }
  return true;
}

template <class T> void append(Parameters<T>& all, const plugrad_op& op) {
  constexpr uint32_t kTile = kBlock * kPack<T>;
  const uint32_t at = all.parameters++;
  for (int k = 0; k <= op.outputs; ++k) all.base[at][k] = data<char>(*op.views[k]);
  all.count[at] = static_cast<uint32_t>(op.views[0]->count);
  all.first[at] = all.blocks;
  all.blocks += (all.count[at] + kTile - 1) / kTile;
}

// The ops of one launch. They have the numbers and attributes of the first op.
template <class F, class T, int N> class Batch {
 public:
  Batch(const Submission& submission, const plugrad_op& first, const F& f) : submission_(submission), first_(first), f_(f) {
    all_.parameters = all_.blocks = 0;
    for (int n = 0; n < N; ++n) all_.number[n] = immediate<T>(*first.views[first.outputs + 1 + n]);
  }
  // Returns false if the op belongs to another launch.
  bool add(const plugrad_op& op) {
    constexpr uint32_t kMostBlocks = 1u << 30;
    if (all_.parameters == Parameters<T>::kMost || all_.blocks > kMostBlocks || !same_numbers(first_, op)) return false;
    append(all_, op);
    return true;
  }
  void launch() const {
    const auto kernel = updates_kernel<F, T, N>;
    PLUGRAD_LAUNCH(kernel, all_.blocks, kBlock, 0, submission_.handle(), all_, f_);
    submission_.launched();
  }

 private:
  const Submission& submission_;
  const plugrad_op& first_;
  const F f_;
  Parameters<T> all_;
};

// Once a launch of a run has succeeded, a later failing launch must not ask the host to repeat the run.
template <class Launch> void launch_next(bool& some_succeeded, const Launch& launch) {
  try {
    launch();
  } catch (const BackendError& error) {
    const bool asks = error.status() == PLUGRAD_OUT_OF_MEMORY || error.status() == PLUGRAD_UNSUPPORTED;
    if (!some_succeeded || !asks) throw;
    throw BackendError(PLUGRAD_INTERNAL, std::string("some of several updates were launched: ") + error.what());
  }
  some_succeeded = true;
}

template <class F, class T, int N, auto make, auto alone>
void run_all(const plugrad_kernel& kernel, CudaStream& stream, std::span<const plugrad_op* const> ops) {
  const auto call_of = [&](const plugrad_op* op) { return Call(&kernel, stream.Stream::handle(), op); };
  const Call last = call_of(ops.back());
  const Submission submission(last);
  std::vector<const plugrad_op*> left(ops.begin(), ops.end());
  const auto rest = std::stable_partition(left.begin(), left.end(), [](const plugrad_op* op) { return is_plain<T>(*op); });
  const std::vector<const plugrad_op*> others(rest, left.end());
  left.erase(rest, left.end());
  bool some_succeeded = false;
  while (!left.empty()) {
    Batch<F, T, N> batch(submission, *left[0], make(call_of(left[0])));
    const auto end = std::stable_partition(left.begin(), left.end(), [&](const plugrad_op* op) { return batch.add(*op); });
    launch_next(some_succeeded, [&] { batch.launch(); });
    left.erase(left.begin(), end);
  }
  for (const plugrad_op* op : others) launch_next(some_succeeded, [&] { alone(call_of(op), submission); });
  submission.finish();
}

template <class T>
void run_all_of(uint32_t opcode, const plugrad_kernel& kernel, CudaStream& stream, std::span<const plugrad_op* const> ops) {
  switch (opcode) {
    case PLUGRAD_OP_DESCENT_STEP: return run_all<DescentStep<T>, T, 1, descent_of<T>, descent_step<T>>(kernel, stream, ops);
    case PLUGRAD_OP_SGD_STEP: return run_all<SgdStep<T>, T, 1, sgd_of<T>, sgd_step<T>>(kernel, stream, ops);
    default: return run_all<AdamStep<T>, T, 3, adam_of<T>, adam_step<T>>(kernel, stream, ops);
  }
}

template <class... T> constexpr auto rows(Types<T...>) {
  return join(std::array{kernel<submit<descent_step<T>>>(PLUGRAD_OP_DESCENT_STEP, element_dtype<T>)...},
              std::array{kernel<submit<sgd_step<T>>>(PLUGRAD_OP_SGD_STEP, element_dtype<T>)...},
              std::array{kernel<submit<adam_step<T>>>(PLUGRAD_OP_ADAM_STEP, element_dtype<T>)...});
}
constexpr auto kRows = rows(kComputable);

}  // namespace

Rows update_rows() { return kRows; }

void run_updates(const plugrad_kernel& kernel, CudaStream& stream, std::span<const plugrad_op* const> ops) {
  const KernelRow& row = *static_cast<const BoundKernel&>(kernel).row;
  if (row.dtypes[0] == PLUGRAD_F64) return run_all_of<double>(row.opcode, kernel, stream, ops);
  run_all_of<float>(row.opcode, kernel, stream, ops);
}

}  // namespace plugrad::cuda
