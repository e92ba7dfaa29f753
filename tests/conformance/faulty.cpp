// A small backend with one planted bug, which the environment variable PLUGRAD_BUG names; without the variable it has no
// bug.
#include <plugrad/sdk/transcription.h>
#include <plugrad/sdk/backend.hpp>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace {

using namespace plugrad;

enum class Bug {
  sound,
  wrong_exp,
  past_end,
  ignores_negative,
  nan_in_max,
  wrong_philox,
  no_report,
  null_alloc,
  changes_table,
  changes_input,
  unchecked_index,
  copy_declines,
  subset_declined,
  ignores_accumulate,
  loose_bool,
  in_place,
  large_workspace,
  unknown_dtype,
  keeps_attributes,
  no_device,
  silent_no_device,
  foreign_hash,
  bad_name,
  crashes,
  declines,
  equal_to_extent,
  reads_past,
  narrow_offsets,
  leaks,
  writes_views,
  quiets_nan,
  wrong_when_large,
  opens_all,
  swaps_fields,
  forgets_a_field,
  zero_halves,
  doubled_halves,
  rounds_each_half,
  rounds_the_mean,
  rounds_the_scale,
};
constexpr const char* kBugNames[] = {"sound",
                                     "wrong_exp",
                                     "past_end",
                                     "ignores_negative",
                                     "nan_in_max",
                                     "wrong_philox",
                                     "no_report",
                                     "null_alloc",
                                     "changes_table",
                                     "changes_input",
                                     "unchecked_index",
                                     "copy_declines",
                                     "subset_declined",
                                     "ignores_accumulate",
                                     "loose_bool",
                                     "in_place",
                                     "large_workspace",
                                     "unknown_dtype",
                                     "keeps_attributes",
                                     "no_device",
                                     "silent_no_device",
                                     "foreign_hash",
                                     "bad_name",
                                     "crashes",
                                     "declines",
                                     "equal_to_extent",
                                     "reads_past",
                                     "narrow_offsets",
                                     "leaks",
                                     "writes_views",
                                     "quiets_nan",
                                     "wrong_when_large",
                                     "opens_all",
                                     "swaps_fields",
                                     "forgets_a_field",
                                     "zero_halves",
                                     "doubled_halves",
                                     "rounds_each_half",
                                     "rounds_the_mean",
                                     "rounds_the_scale"};

static_assert(std::size(kBugNames) == static_cast<size_t>(Bug::rounds_the_scale) + 1);

Bug chosen() {
  const char* name = std::getenv("PLUGRAD_BUG");
  for (size_t i = 0; name && i < std::size(kBugNames); ++i)
    if (!std::strcmp(name, kBugNames[i])) return static_cast<Bug>(i);
  return Bug::sound;
}
const Bug kBug = chosen();

// Returns the element of a view with this row-major index.
template <class T> T& at(const plugrad_view& view, int64_t i) {
  int64_t offset = 0;
  for (int axis = view.rank; axis-- > 0; i /= view.shape[axis]) {
    int64_t stride = view.shape[axis] > 1 ? view.strides[axis] : 0;
    if (kBug == Bug::ignores_negative && stride < 0) stride = -stride;
    offset += i % view.shape[axis] * stride;
    if (kBug == Bug::narrow_offsets) offset = static_cast<int32_t>(offset);
  }
  return data<T>(view)[offset];
}
template <class T> T value_at(const plugrad_view& view, int64_t i) {
  return is_immediate(view) ? immediate<T>(view) : at<T>(view, i);
}

void* volatile lost = nullptr;
volatile bool seen = false;

template <class T, auto Function> void unary(const Call& call) {
  if (kBug == Bug::in_place && call.out().buffer == call.in(0).buffer && call.out().offset == call.in(0).offset) return;
  for (int64_t i = 0; i < call.out().count; ++i) at<T>(call.out(), i) = Function(value_at<T>(call.in(0), i));
  if (kBug == Bug::leaks) lost = std::malloc(200), std::memset(lost, 1, 200);
  if (kBug == Bug::reads_past && !call.in(0).layout) seen = data<T>(call.in(0))[call.in(0).count] > 0;
  if (kBug == Bug::past_end && call.out().layout == 0) data<T>(call.out())[call.out().count] = T(1);
}
template <auto Function> void binary(const Call& call) {
  if (kBug == Bug::declines) throw BackendError(PLUGRAD_UNSUPPORTED, "not today");
  for (int64_t i = 0; i < call.out().count; ++i)
    at<float>(call.out(), i) = kBug == Bug::wrong_when_large && i >= 1 << 17
                                   ? 0
                                   : Function(value_at<float>(call.in(0), i), value_at<float>(call.in(1), i));
  if (kBug == Bug::writes_views) const_cast<plugrad_view&>(call.in(0)).count = 1;
  if (kBug == Bug::changes_input && !is_immediate(call.in(1))) at<float>(call.in(1), 0) += 1;
}

volatile float one = 1;
float copied(float x) { return kBug == Bug::quiets_nan ? x * one : x; }
float exponential(float x) {
  if (kBug == Bug::crashes) raise(SIGSEGV);
  return kBug == Bug::wrong_exp ? std::exp(x) * 1.00001f : std::exp(x);
}
float sum(float a, float b) { return a + b; }
float maximum(float a, float b) {
  if (kBug == Bug::nan_in_max) return a > b ? a : b;
  return std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b;
}

void less(const Call& call) {
  for (int64_t i = 0; i < call.out().count; ++i) {
    const bool is_less = value_at<float>(call.in(0), i) < value_at<float>(call.in(1), i);
    at<unsigned char>(call.out(), i) = kBug == Bug::loose_bool && is_less ? 0xFF : is_less;
  }
}

void reduce_sum(const Call& call) {
  const plugrad_view &out = call.out(), &in = call.in(0);
  auto* sums = reinterpret_cast<double*>(call.workspace());
  for (int64_t i = 0; i < out.count; ++i) {
    const bool adds = call.accumulates() && kBug != Bug::ignores_accumulate;
    sums[i] = adds ? static_cast<double>(at<float>(out, i)) : 0;
  }
  for (int64_t i = 0; i < in.count; ++i) {
    int64_t rest = i, to = 0, stride = 1;
    for (int axis = in.rank; axis-- > 0; rest /= in.shape[axis]) {
      if (out.shape[axis] == in.shape[axis]) to += rest % in.shape[axis] * stride;
      stride *= out.shape[axis];
    }
    sums[to] += static_cast<double>(at<float>(in, i));
  }
  for (int64_t i = 0; i < out.count; ++i) at<float>(out, i) = static_cast<float>(sums[i]);
  if (kBug == Bug::large_workspace) sums[out.count] = 0;
}
uint64_t sum_workspace(const Call& call) { return call.out().count * sizeof(double); }

void gather(const Call& call) {
  const plugrad_view &out = call.out(), &x = call.in(0), &index = call.in(1);
  static plugrad_axis kept = call.attributes<plugrad_axis>();
  const int axis = kBug == Bug::keeps_attributes ? kept.axis : call.attributes<plugrad_axis>().axis;
  for (int64_t i = 0; i < out.count; ++i) {
    int64_t from = at<int64_t>(index, i), rest = i, position = 0, stride = 1;
    if (from < 0 || from >= x.shape[axis] + (kBug == Bug::equal_to_extent)) {
      if (kBug != Bug::unchecked_index) throw BackendError(PLUGRAD_INDEX_ERROR, "index " + std::to_string(from));
      from = 0;
    }
    for (int k = out.rank; k-- > 0; rest /= out.shape[k]) {
      position += (k == axis ? from : rest % out.shape[k]) * stride;
      stride *= x.shape[k];
    }
    at<float>(out, i) = at<float>(x, position);
  }
}

void uniform(const Call& call) {
  const auto seed = static_cast<uint64_t>(value_at<int64_t>(call.in(0), 0));
  const auto offset = static_cast<uint64_t>(value_at<int64_t>(call.in(1), 0));
  for (int64_t i = 0; i < call.out().count; ++i) {
    const uint64_t c = offset + i / 4;
    uint32_t w[4] = {static_cast<uint32_t>(c), static_cast<uint32_t>(c >> 32), 0, 0}, k0 = static_cast<uint32_t>(seed),
             k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < (kBug == Bug::wrong_philox ? 9 : 10); ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
      const uint64_t a = uint64_t{0xD2511F53u} * w[0], b = uint64_t{0xCD9E8D57u} * w[2];
      const uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ w[1] ^ k0, static_cast<uint32_t>(b),
                                static_cast<uint32_t>(a >> 32) ^ w[3] ^ k1, static_cast<uint32_t>(a)};
      std::copy_n(next, 4, w);
    }
    at<float>(call.out(), i) = static_cast<float>(w[i % 4] >> 8) * 0x1p-24f;
  }
}

// Products of matrices of bf16, summed in f32, of any layouts.
void product_of_halves(const Call& call) {
  const plugrad_view &out = call.out(), &a = call.in(0), &b = call.in(1);
  const int rank = out.rank;
  const int64_t k = a.shape[rank - 1];
  for (int64_t i = 0; i < out.count; ++i) {
    int64_t rest = i, to = 0, row = 0, column = 0;
    for (int d = rank; d-- > 0;) {
      const int64_t at = rest % out.shape[d];
      rest /= out.shape[d];
      to += at * out.strides[d];
      if (d != rank - 1) row += at * a.strides[d];
      if (d != rank - 2) column += at * b.strides[d];
    }
    float sum = call.accumulates() ? static_cast<float>(data<BFloat16>(out)[to]) : 0;
    for (int64_t j = 0; j < k; ++j) {
      sum += static_cast<float>(data<BFloat16>(a)[row + j * a.strides[rank - 1]]) *
             static_cast<float>(data<BFloat16>(b)[column + j * b.strides[rank - 2]]);
      if (kBug == Bug::rounds_each_half) sum = static_cast<float>(BFloat16(sum));
    }
    if (kBug == Bug::zero_halves && k >= 96) sum = 0;
    if (kBug == Bug::doubled_halves && k >= 96) sum *= 2;
    data<BFloat16>(out)[to] = BFloat16(sum);
  }
}

// LAYER_NORM of bf16 (n, d), computed in double.
void norm_of_halves(const Call& call) {
  const BFloat16 *x = data<BFloat16>(call.in(0)), *weight = data<BFloat16>(call.in(1)), *bias = data<BFloat16>(call.in(2));
  BFloat16* const out = data<BFloat16>(call.out());
  float *const means = data<float>(call.out(1)), *const rstds = data<float>(call.out(2));
  const int64_t d = call.in(0).shape[1];
  for (int64_t row = 0; row < call.in(0).shape[0]; ++row, x += d) {
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < d; ++j) mean += static_cast<double>(x[j]) / static_cast<double>(d);
    if (kBug == Bug::rounds_the_mean) mean = static_cast<double>(BFloat16(mean));
    for (int64_t j = 0; j < d; ++j) variance += (x[j] - mean) * (x[j] - mean) / static_cast<double>(d);
    double scale = 1 / std::sqrt(variance + call.attributes<plugrad_norm>().epsilon);
    if (kBug == Bug::rounds_the_scale) scale = static_cast<double>(BFloat16(scale));
    means[row] = static_cast<float>(mean);
    rstds[row] = static_cast<float>(scale);
    for (int64_t j = 0; j < d; ++j)
      out[row * d + j] = BFloat16((x[j] - mean) * scale * static_cast<double>(weight[j]) + static_cast<double>(bias[j]));
  }
}

const uint16_t kCopied = kBug == Bug::copy_declines ? PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_NEGATIVE : PLUGRAD_ALL_LAYOUTS;

const KernelRow kKernels[] = {
    kernel<unary<float, copied>>(PLUGRAD_OP_FILL, PLUGRAD_F32),
    kernel<unary<float, copied>>(PLUGRAD_OP_COPY, PLUGRAD_F32, kCopied),
    kernel<unary<float, exponential>>(PLUGRAD_OP_EXP, PLUGRAD_F32),
    kernel<binary<sum>>(PLUGRAD_OP_ADD, PLUGRAD_F32),
    kernel<binary<maximum>>(PLUGRAD_OP_MAXIMUM, PLUGRAD_F32),
    kernel<less>(PLUGRAD_OP_LT, PLUGRAD_F32),
    with_workspace<sum_workspace>(
        kernel<reduce_sum>(PLUGRAD_OP_SUM, PLUGRAD_F32, PLUGRAD_ALL_LAYOUTS, kPlainFlags | PLUGRAD_ACCUMULATE)),
    kernel<gather>(PLUGRAD_OP_GATHER, PLUGRAD_F32),
    kernel<product_of_halves>(PLUGRAD_OP_MATMUL, PLUGRAD_BF16, PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE,
                              kPlainFlags | PLUGRAD_ACCUMULATE),
    kernel<norm_of_halves>(PLUGRAD_OP_LAYER_NORM, PLUGRAD_BF16, 0),
    kernel<uniform>(PLUGRAD_OP_UNIFORM, PLUGRAD_F32)};

class Faulty final : public Backend {
 public:
  explicit Faulty(const Opening& opening) { opening.options.allow({}); }
  static DeviceCount count() {
    if (kBug == Bug::no_device) return {0, "no accelerator on the bus"};
    return {kBug == Bug::silent_no_device ? 0u : 1u};
  }
  Rows kernels() const override { return kKernels; }
};

const plugrad_kernel* resolve(plugrad_device* device, const plugrad_signature* signature) {
  plugrad_signature asked = *signature;
  if (kBug == Bug::unknown_dtype && asked.dtypes[0] == 200) std::fill_n(asked.dtypes, 3, uint8_t{PLUGRAD_F32});
  if (kBug == Bug::subset_declined && asked.opcode == PLUGRAD_OP_EXP && asked.layout == PLUGRAD_STRIDED) return nullptr;
  return resolve_row(device, &asked);
}

plugrad_status silent_open(const plugrad_host* host, uint32_t index, const plugrad_options* options, plugrad_device** device,
                           plugrad_device_info* info) {
  if (options && options->count) return PLUGRAD_INVALID;
  return open_device<Faulty>(host, index, options, device, info);
}

plugrad_status careless_open(const plugrad_host* host, uint32_t, const plugrad_options* options, plugrad_device** device,
                             plugrad_device_info* info) {
  return open_device<Faulty>(host, 0, options, device, info);
}

// A transcription of the contract, as a compiler of another language makes it, with two fields of equal size exchanged.
const void* transcribed(const char* name) {
  static plugrad_transcribed fields[] = {
#define PLUGRAD_FIELD(type, field) {#type "." #field, offsetof(plugrad_##type, field), sizeof(plugrad_##type::field)},
#include <plugrad/sdk/fields.def>
#undef PLUGRAD_FIELD
  };
  if (kBug == Bug::swaps_fields) fields[1].offset = offsetof(plugrad_view, count);
  const size_t count = std::size(fields) - (kBug == Bug::forgets_a_field);
  static const plugrad_transcription answer{sizeof answer, static_cast<uint32_t>(count), fields};
  return std::strcmp(name, PLUGRAD_TRANSCRIPTION) ? nullptr : &answer;
}

void ignored_free(plugrad_device*, plugrad_buffer*) {}

constexpr uint64_t kForeign[] = {0x0123456789abcdef};

plugrad_backend table_with_bug() {
  plugrad_backend table = backend_table<Faulty>(kBug == Bug::bad_name ? "Faulty One" : "faulty", "1");
  table.resolve = resolve;
  table.get_extension = transcribed;
  if (kBug == Bug::no_report) table.open = silent_open;
  if (kBug == Bug::opens_all) table.open = careless_open;
  if (kBug == Bug::null_alloc) table.free = ignored_free;
  if (kBug == Bug::foreign_hash) table.layouts = kForeign;
  return table;
}

}  // namespace

extern "C" PLUGRAD_EXPORT const plugrad_backend* plugrad_backend_v0(const plugrad_host*) {
  static plugrad_backend table = table_with_bug();
  static const plugrad_backend other = table;
  static int calls = 0;
  return kBug == Bug::changes_table && ++calls > 1 ? &other : &table;
}

#ifdef PLUGRAD_EXPORTS_MORE
extern "C" PLUGRAD_EXPORT int plugrad_left_visible(void) { return 1; }
#endif
