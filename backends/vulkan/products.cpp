// MATMUL and MATMUL_ADD.
#include <backends/vulkan/products.hpp>

namespace plugrad::vulkan {

Product product_of(const Call& call) {
  constexpr uint32_t kTile = 64;
  Product p{};
  const int rank = call.out().rank, operands = 1 + call.op().inputs;
  for (int i = 0; i < operands; ++i) {
    const plugrad_view& view = *call.op().views[i];
    p.base[i] = reinterpret_cast<uint64_t>(data<char>(view));
    p.row[i] = stride_of(view, rank - 2);
    p.column[i] = stride_of(view, rank - 1);
  }
  p.m = static_cast<uint32_t>(call.out().shape[rank - 2]);
  p.n = static_cast<uint32_t>(call.out().shape[rank - 1]);
  p.accumulates = call.accumulates();
  p.tiles_across = (p.n + kTile - 1) / kTile;
  p.tiles = p.tiles_of_one = p.tiles_across * ((p.m + kTile - 1) / kTile);
  for (int d = rank - 3; d >= 0; --d) {
    p.batch_extent[p.batch_rank] = static_cast<uint32_t>(call.out().shape[d]);
    for (int i = 0; i < operands; ++i) p.batch[i][p.batch_rank] = stride_of(*call.op().views[i], d);
    p.tiles *= p.batch_extent[p.batch_rank++];
  }
  return p;
}

void demand_narrow(const Call& call, int64_t k) {
  if ((call.out().count | k) >> 31) throw BackendError(PLUGRAD_UNSUPPORTED, "a product takes extents below 2^31");
}

namespace {

void multiply(const Call& call) {
  const int rank = call.out().rank;
  const int64_t k = call.in(0).shape[rank - 1];
  demand_narrow(call, k);
  const uint64_t size = element_size(call.out().dtype);
  Product p = product_of(call);
  auto& stream = call.stream<VulkanStream>();
  stream.demand_sound();
  const Recipe& recipe = call.own<Recipe>();
  uint32_t mode = call.op().opcode == PLUGRAD_OP_MATMUL_ADD;
  VulkanStream::Recording recording(stream, call.op().number);
  for (int64_t first = 0; first < k; first += kDepth) {
    p.k = static_cast<uint32_t>(std::min(kDepth, k - first));
    recording.dispatch(recipe.of(mode), p, std::min(p.tiles, kMostGroups));
    if (first + kDepth >= k) break;
    recording.barrier();
    p.accumulates = 1;
    mode = 0;
    p.base[1] += static_cast<uint64_t>(kDepth * p.column[1]) * size;
    p.base[2] += static_cast<uint64_t>(kDepth * p.row[2]) * size;
  }
  recording.finish();
}

// On matrix units one dispatch adds all products of an element, because an f16 would round the sums between two dispatches.
// Longer sums are left to f32. lavapipe ends loops after 65,535 iterations.
void multiply_by_units(const Call& call) {
  constexpr int64_t kMostDepth = 32768;
  const int64_t k = call.in(0).shape[call.out().rank - 1];
  demand_narrow(call, k);
  Product p = product_of(call);
  if (k * (p.tiles / kMostGroups + 1) > kMostDepth) throw BackendError(PLUGRAD_UNSUPPORTED, "the sums are too long");
  p.k = static_cast<uint32_t>(k);
  auto& stream = call.stream<VulkanStream>();
  stream.demand_sound();
  VulkanStream::Recording recording(stream, call.op().number);
  recording.dispatch(call.own<Recipe>().of(call.op().opcode == PLUGRAD_OP_MATMUL_ADD), p, std::min(p.tiles, kMostGroups));
  recording.finish();
}

constexpr uint16_t kInMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;

}  // namespace

void add_product_rows(RowList& list, const Abilities& abilities) {
  for (const uint8_t dtype : floating_dtypes(abilities)) {
    const std::string shader = "product" + suffix_of(dtype);
    list.add(kernel<multiply>(PLUGRAD_OP_MATMUL, dtype, kInMemory, kPlainFlags | PLUGRAD_ACCUMULATE), shader);
    list.add(kernel<multiply>(PLUGRAD_OP_MATMUL_ADD, dtype, kInMemory), shader, 3);
  }
}

void add_matrix_unit_rows(RowList& list) {
  constexpr uint32_t kFlags = kPlainFlags | PLUGRAD_ACCUMULATE;
  list.add(kernel<multiply_by_units>(PLUGRAD_OP_MATMUL, PLUGRAD_F16, kInMemory, kFlags), "product_units");
  list.add(kernel<multiply_by_units>(PLUGRAD_OP_MATMUL_ADD, PLUGRAD_F16, kInMemory), "product_units", 2);
}

}  // namespace plugrad::vulkan
