// The windows of a convolution, for three spatial axes: missing axes have one element.
#pragma once
#include <plugrad/sdk/abi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace plugrad::cpu {

using Extents = std::array<int64_t, 3>;

constexpr int64_t product(const Extents& e) { return e[0] * e[1] * e[2]; }

// The last axes of a view as three.
inline Extents spatial(const plugrad_view& v) {
  Extents e{1, 1, 1};
  for (int i = 2; i < v.rank; ++i) e[3 - (v.rank - i)] = v.shape[i];
  return e;
}

struct WindowShape {
  Extents size, stride{1, 1, 1}, padding{}, dilation{1, 1, 1};
  int64_t groups;

  WindowShape(const plugrad_view& weight, const plugrad_convolution& given) : size(spatial(weight)), groups(given.groups) {
    const int axes = weight.rank - 2;
    for (int i = 0; i < axes; ++i) {
      const int to = 3 - axes + i;
      stride[to] = given.stride[i];
      padding[to] = given.padding[i];
      dilation[to] = given.dilation[i];
    }
  }
};

// A result is a sum of products, tap by tap and channel by channel. The sums of blocks of products are added one after the
// other. All kernels share the order and the blocks, so a result has the same bits in every layout.
struct SumBlock {
  int64_t tap, taps, channel, channels;  // some taps with all channels, or some channels of a single tap
};
template <class T> std::vector<SumBlock> sum_blocks(int64_t taps, int64_t channels) {
  constexpr int64_t kMost = 2048 / static_cast<int64_t>(sizeof(T));  // products
  const auto even = [](int64_t all, int64_t most) {
    const int64_t parts = (all + most - 1) / most;
    return (all + parts - 1) / parts;
  };
  const int64_t some_taps = channels > kMost ? 1 : even(taps, kMost / std::max<int64_t>(channels, 1));
  const int64_t some = channels > kMost ? even(channels, kMost) : channels;
  std::vector<SumBlock> blocks;
  for (int64_t tap = 0; tap < taps; tap += some_taps)
    for (int64_t c = 0; c < channels; c += some)
      blocks.push_back({tap, std::min(some_taps, taps - tap), c, std::min(some, channels - c)});
  return blocks;
}

}  // namespace plugrad::cpu
