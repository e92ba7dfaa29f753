// QUANTIZED_MATMUL.
#include <backends/vulkan/products.hpp>

#include <algorithm>
#include <iterator>

namespace plugrad::vulkan {
namespace {

constexpr int64_t kFewRows = 4, kMostFew = 8;  // of x: of a dispatch; of an op that reads the codes for each dispatch
constexpr uint32_t kRowsOfGroup = 8;           // of the weight
constexpr int64_t kMostDepth = 1 << 20;        // drivers end long-running shaders

Product product_of_codes(const Call& call) {
  const plugrad_view &codes = call.in(1), &scales = call.in(2);
  constexpr uint32_t kTile = 64;
  Product p{};
  const plugrad_view* const views[] = {&call.out(), &call.in(0), &codes, &scales};
  for (int i = 0; i < 4; ++i) p.base[i] = reinterpret_cast<uint64_t>(data<char>(*views[i]));
  const int64_t k = call.in(0).shape[1];
  demand_narrow(call, k);
  if (p.base[2] % 4 || k > kMostDepth)
    throw BackendError(PLUGRAD_UNSUPPORTED, "codes lie at multiples of 4 bytes, in rows of at most 2^20 elements");
  p.m = static_cast<uint32_t>(call.out().shape[0]);
  p.n = static_cast<uint32_t>(call.out().shape[1]);
  p.k = static_cast<uint32_t>(k);
  p.row[0] = call.out().shape[1];
  p.row[1] = k;
  p.column[0] = p.column[1] = 1;
  p.tiles_across = (p.n + kTile - 1) / kTile;
  p.tiles = p.tiles_of_one = p.tiles_across * ((p.m + kTile - 1) / kTile);
  const uint32_t layout[] = {static_cast<uint32_t>(codes.shape[1] * 8 / k), static_cast<uint32_t>(scales.shape[1]),
                             static_cast<uint32_t>(k / scales.shape[1]), scales.dtype == PLUGRAD_F16, scales.shape[2] == 2};
  std::copy(std::begin(layout), std::end(layout), p.batch_extent);
  return p;
}

// MODE 0 computes tiles, and MODE 2 a few rows.
void multiply(const Call& call) {
  const int64_t m = call.out().shape[0];
  Product p = product_of_codes(call);
  auto& stream = call.stream<VulkanStream>();
  stream.demand_sound();
  const Recipe& recipe = call.own<Recipe>();
  VulkanStream::Recording recording(stream, call.op().number);
  if (m > kMostFew) recording.dispatch(recipe.of(0), p, std::min(p.tiles, kMostGroups));
  for (int64_t row = 0; m <= kMostFew && row < m; row += kFewRows) {
    p.m = static_cast<uint32_t>(std::min(kFewRows, m - row));
    recording.dispatch(recipe.of(2), p, std::min((p.n + kRowsOfGroup - 1) / kRowsOfGroup, kMostGroups));
    p.base[0] += static_cast<uint64_t>(kFewRows * p.row[0]) * sizeof(float);
    p.base[1] += static_cast<uint64_t>(kFewRows * p.row[1]) * sizeof(float);
  }
  recording.finish();
}

}  // namespace

void add_quantized_rows(RowList& list) {
  constexpr uint16_t kDense = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;
  constexpr uint32_t kTilesAndRows = 5;
  list.add(kernel<multiply>(PLUGRAD_OP_QUANTIZED_MATMUL, PLUGRAD_F32, kDense), "quantized", kTilesAndRows);
}

}  // namespace plugrad::vulkan
