// ATTENTION and ATTENTION_BACKWARD.
#include <backends/vulkan/grid.hpp>

#include <plugrad/sdk/mask.hpp>

namespace plugrad::vulkan {
namespace {

// The places of the operands in the shader's arrays.
enum { kQuery, kKey, kValue, kMask, kOut, kLse, kGrad, kGradQuery, kGradKey, kGradValue };

constexpr uint32_t kRows = 16, kColumns = 64, kInner = 32;  // of the shader's tiles
// Drivers end long-running shaders (lavapipe an invocation after 65,535 iterations of its loops).
constexpr uint64_t kMostIterations = 60000;

uint32_t tiles_of(uint32_t extent, uint32_t tile) { return (extent + tile - 1) / tile; }

class AttentionMaker {
 public:
  // The views of query, key and value decide the sizes. Axes along which queries share keys come first.
  AttentionMaker(const plugrad_view& query, const plugrad_view& key, const plugrad_view& value,
                 const plugrad_attention& attributes) {
    const int rank = query.rank;
    a_.l = static_cast<uint32_t>(query.shape[rank - 2]);
    a_.s = static_cast<uint32_t>(key.shape[rank - 2]);
    a_.e = static_cast<uint32_t>(query.shape[rank - 1]);
    a_.v = static_cast<uint32_t>(value.shape[rank - 1]);
    a_.causal = attributes.causal;
    a_.scale = static_cast<float>(attributes.scale);
    a_.members = 1;
    for (const bool is_shared : {true, false})
      for (int d = rank - 3; d >= 0; --d)
        if (query.shape[d] > 1 && is_shared == (key.shape[d] == 1)) add_axis(d, query.shape[d], is_shared);
  }

  AttentionMaker& add(int k, const plugrad_view& view) {
    a_.base[k] = reinterpret_cast<uint64_t>(data<char>(view));
    const int64_t row = stride_of(view, view.rank - 2), column = stride_of(view, view.rank - 1);
    span_ = std::max(span_, std::abs(row) * view.shape[view.rank - 2] + std::abs(column) * view.shape[view.rank - 1]);
    a_.row[k] = static_cast<int32_t>(row);
    a_.column[k] = static_cast<int32_t>(column);
    for (uint32_t i = 0; i < a_.rank; ++i) a_.batch[k][i] = stride_of(view, axes_[i]);
    return *this;
  }
  // query, key: operands of the same call. In the place of a mask, the shader gets an address that it may read.
  AttentionMaker& mask(const plugrad_view& mask, const plugrad_view& query, const plugrad_view& key) {
    add(kMask, mask_view(mask, query, key));
    a_.has_mask = !is_immediate(mask);
    if (a_.has_mask) return *this;
    a_.number = immediate<float>(mask);
    a_.base[kMask] = reinterpret_cast<uint64_t>(data<char>(query));
    return *this;
  }
  AttentionMaker& products(uint64_t address) {
    a_.products = address;
    return *this;
  }

  // Return the parameters for the tiles of the outputs. They throw if tiles would run too long, or if 32 bits cannot number
  // the tiles.
  Attention of_out() const { return of_tiles(a_.l, a_.v, batches_, blocks_of(a_.s, tiles_of(a_.e, kInner))); }
  Attention of_grad_query() const { return of_tiles(a_.l, a_.e, batches_, blocks_of(a_.s, inner_of_gradients())); }
  Attention of_keys() const {
    return of_tiles(a_.s, std::max(a_.e, a_.v), batches_ / a_.members, a_.members * blocks_of(a_.l, inner_of_gradients()));
  }

 private:
  uint64_t inner_of_gradients() const { return tiles_of(a_.e, kInner) + tiles_of(a_.v, kInner); }
  // Returns a tile's iterations of loops for `extent` keys or queries with `inner` tiles of inner products each: as counted
  // in the shader, rounded up.
  static uint64_t blocks_of(uint32_t extent, uint64_t inner) {
    constexpr uint64_t kOfInner = 52, kOfBlock = 192;
    return tiles_of(extent, kColumns) * (inner * kOfInner + kOfBlock);
  }
  Attention of_tiles(uint32_t rows, uint32_t columns, uint32_t matrices, uint64_t iterations) const {
    Attention made = a_;
    made.across = std::max<uint32_t>(1, tiles_of(columns, kColumns));
    made.tiles_of_one = made.across * tiles_of(rows, kRows);
    const uint64_t tiles = uint64_t{made.tiles_of_one} * matrices;
    if (iterations * (tiles / kMostGroups + 1) > kMostIterations || tiles >> 31 || span_ >> 31)
      throw BackendError(PLUGRAD_UNSUPPORTED, "the matrices of attention are too large");
    made.tiles = static_cast<uint32_t>(tiles);
    return made;
  }
  void add_axis(int d, int64_t extent, bool is_shared) {
    axes_[a_.rank] = d;
    a_.extent[a_.rank++] = static_cast<uint32_t>(extent);
    batches_ *= static_cast<uint32_t>(extent);
    if (is_shared) a_.members *= static_cast<uint32_t>(extent);
  }

  Attention a_{};
  int axes_[PLUGRAD_MAX_RANK] = {};
  uint32_t batches_ = 1;
  int64_t span_ = 0;  // the most elements from end to end of a matrix
};

void record(VulkanStream::Recording& recording, VkPipeline pipeline, const Attention& parameters) {
  if (parameters.tiles > 0) recording.dispatch(pipeline, parameters, std::min(parameters.tiles, kMostGroups));
}

void attend(const Call& call) {  // out, lse; query, key, value, mask
  AttentionMaker maker(call.in(0), call.in(1), call.in(2), call.attributes<plugrad_attention>());
  for (int k = kQuery; k <= kValue; ++k) maker.add(k, call.in(k));
  maker.mask(call.in(3), call.in(0), call.in(1));
  const Attention tiles = maker.add(kOut, call.out(0)).add(kLse, call.out(1)).of_out();
  auto& stream = call.stream<VulkanStream>();
  stream.demand_sound();
  VulkanStream::Recording recording(stream, call.op().number);
  record(recording, call.own<Recipe>().of(0), tiles);
  recording.finish();
}

// A number for each query.
uint64_t backward_workspace(const Call& call) { return static_cast<uint64_t>(call.in(6).count) * sizeof(float); }

void attend_backward(const Call& call) {  // gradients of query, key, value; grad, query, key, value, mask, out, lse
  const plugrad_view &query = call.in(1), &key = call.in(2), &value = call.in(3);
  AttentionMaker maker(query, key, value, call.attributes<plugrad_attention>());
  maker.add(kGrad, call.in(0)).add(kQuery, query).add(kKey, key).add(kValue, value).mask(call.in(4), query, key);
  maker.add(kOut, call.in(5)).add(kLse, call.in(6)).products(reinterpret_cast<uint64_t>(call.workspace()));
  maker.add(kGradQuery, call.out(0)).add(kGradKey, call.out(1)).add(kGradValue, call.out(2));
  const Attention queries = maker.of_grad_query(), keys = maker.of_keys();
  auto& stream = call.stream<VulkanStream>();
  stream.demand_sound();
  const Recipe& recipe = call.own<Recipe>();
  VulkanStream::Recording recording(stream, call.op().number);
  record(recording, recipe.of(1), queries);
  recording.barrier();
  record(recording, recipe.of(2), keys);
  recording.finish();
}

}  // namespace

void add_attention_rows(RowList& list) {
  list.add(kernel<attend>(PLUGRAD_OP_ATTENTION, PLUGRAD_F32), "attention");
  list.add(with_workspace<backward_workspace>(kernel<attend_backward>(PLUGRAD_OP_ATTENTION_BACKWARD, PLUGRAD_F32)),
           "attention", 6);
}

}  // namespace plugrad::vulkan
