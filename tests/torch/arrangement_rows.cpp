// Factories and rearrangements.
#include <tests/torch/rows.hpp>

namespace plugrad::test {
namespace {
using Rows = std::vector<TorchRow>;

Rows factory_rows() {
  Rows rows = {
      {"linspace", [](I) { return linspace(-1, 2, 7, DType::f64); }},
      {"linspace down", [](I) { return linspace(3, 0.1, 4, DType::f64); }},
      {"linspace 1", [](I) { return linspace(5, 7, 1, DType::f64); }},
      {"linspace 0", [](I) { return linspace(5, 7, 0, DType::f64); }},
      {"linspace integers", [](I) { return linspace(-7, 10, 6, DType::i64); }},
      {"linspace integers down", [](I) { return linspace(5, -8, 5, DType::i32); }},
      {"logspace", [](I) { return logspace(-1, 2, 4, 10, DType::f64); }},
      {"logspace 2", [](I) { return logspace(0, 5, 6, 2, DType::f64); }},
      {"meshgrid ij", [](I x) { return meshgrid(x); }},
      {"meshgrid xy", [](I x) { return meshgrid(x, GridIndexing::xy); }},
      {"meshgrid numbers", [](I x) { return meshgrid(x); }},
      {"meshgrid one", [](I x) { return meshgrid(x, GridIndexing::xy); }},
      {"vander", [](I x) { return vander(x[0].detach()); }},
      {"vander n", [](I x) { return vander(x[0].detach(), 4, true); }},
      {"vander 0", [](I x) { return vander(x[0].detach(), 0); }},
      {"vander 1", [](I x) { return vander(x[0].detach(), 1); }},
      {"vander integers", [](I x) { return vander(x[0], 3); }},
      {"block_diag", [](I x) { return block_diag(x); }},
      {"cartesian_prod", [](I x) { return cartesian_prod(x); }},
      {"cartesian_prod one", [](I x) { return cartesian_prod(x); }},
      {"cartesian_prod none", [](I x) { return cartesian_prod(x); }},
      {"combinations", [](I x) { return combinations(x[0]); }},
      {"combinations 3", [](I x) { return combinations(x[0], 3); }},
      {"combinations again", [](I x) { return combinations(x[0], 3, true); }},
      {"combinations 1", [](I x) { return combinations(x[0], 1); }},
      {"combinations 0", [](I x) { return combinations(x[0], 0); }},
      {"combinations none", [](I x) { return combinations(x[0], 4); }},
  };
  for (const Shape& at :
       {Shape{3, 3, 0}, Shape{4, 2, 1}, Shape{2, 4, -1}, Shape{3, 3, -5}, Shape{3, 2, 9}, Shape{0, 3, 0}}) {
    const std::string name = std::to_string(at[0]) + " " + std::to_string(at[1]) + " " + std::to_string(at[2]);
    rows.push_back({"tril_indices " + name, [at](I) { return tril_indices(at[0], at[1], at[2]); }});
    rows.push_back({"triu_indices " + name, [at](I) { return triu_indices(at[0], at[1], at[2]); }});
  }
  return rows;
}

Rows joining_rows() {
  const auto atleast = [](I x) { return std::vector<Tensor>{atleast_1d(x[0]), atleast_2d(x[0]), atleast_3d(x[0])}; };
  return {
      {"hstack", [](I x) { return hstack(x); }},
      {"hstack vectors", [](I x) { return hstack(x); }},
      {"vstack", [](I x) { return vstack(x); }},
      {"dstack", [](I x) { return dstack(x); }},
      {"column_stack", [](I x) { return column_stack(x); }},
      {"column_stack numbers", [](I x) { return column_stack(x); }},
      {"atleast", atleast},
      {"atleast vector", atleast},
      {"atleast matrix", atleast},
      {"broadcast_to",
       [](I x) {
         return broadcast_to(x[0], {2, 2, 3});
       }},
      {"broadcast_tensors", [](I x) { return broadcast_tensors(x); }},
      {"tensor_split 3", [](I x) { return tensor_split(x[0], 3); }},
      {"tensor_split indices",
       [](I x) {
         return tensor_split(x[0], {1, 5, -1, 9}, 1);
       }},
      {"hsplit", [](I x) { return hsplit(x[0], 2); }},
      {"hsplit vector",
       [](I x) {
         return hsplit(x[0], {1, 3});
       }},
      {"vsplit", [](I x) { return vsplit(x[0], 2); }},
      {"dsplit", [](I x) { return dsplit(x[0], std::vector<int64_t>{1}); }},
  };
}

Rows view_rows() {
  Rows rows = {
      {"flatten", [](I x) { return flatten(x[0]); }},
      {"flatten inner", [](I x) { return flatten(x[0], 1, 2); }},
      {"flatten last", [](I x) { return flatten(x[0], -2); }},
      {"flatten number", [](I x) { return flatten(x[0]); }},
      {"flatten one", [](I x) { return flatten(x[0], 1, 1); }},
      {"flatten empty", [](I x) { return flatten(x[0]); }},
      {"ravel", [](I x) { return ravel(transpose(x[0])); }},
      {"unflatten",
       [](I x) {
         return unflatten(x[0], 1, {2, -1});
       }},
      {"unflatten last",
       [](I x) {
         return unflatten(x[0], -1, {3, 2});
       }},
      {"squeeze nothing", [](I x) { return squeeze(x[0], {1}); }},
      {"squeeze some",
       [](I x) {
         return squeeze(x[0], {0, 1});
       }},
      {"squeeze number", [](I x) { return squeeze(x[0], {-1}); }},
      {"fliplr", [](I x) { return fliplr(x[0]); }},
      {"flipud", [](I x) { return flipud(x[0]); }},
      {"rot90 axes",
       [](I x) {
         return rot90(x[0], 1, {2, 0});
       }},
      {"repeat_interleave counts",
       [](I x) {
         return repeat_interleave(x[0], i64({2, 0, 3}), 1);
       }},
      {"repeat_interleave flat", [](I x) { return repeat_interleave(x[0], 2); }},
      {"repeat_interleave one", [](I x) { return repeat_interleave(x[0], i64({2}), 0); }},
      {"repeat_interleave none",
       [](I x) {
         return repeat_interleave(x[0], i64({0, 0}), 0);
       }},
      {"as_strided",
       [](I x) {
         return as_strided(contiguous(x[0]), {3, 2}, {1, 2}, 1);
       }},
      {"as_strided overlapping",
       [](I x) {
         return as_strided(contiguous(x[0]), {2, 4, 2}, {0, 1, 1});
       }},
      {"as_strided number", [](I x) { return as_strided(contiguous(x[0]), {}, {}, 3); }},
      {"pixel_shuffle", [](I x) { return pixel_shuffle(x[0], 2); }},
      {"pixel_shuffle image", [](I x) { return pixel_shuffle(x[0], 2); }},
      {"pixel_unshuffle", [](I x) { return pixel_unshuffle(x[0], 2); }},
      {"channel_shuffle", [](I x) { return channel_shuffle(x[0], 2); }},
  };
  for (const int64_t k : {-1, 0, 1, 2, 3})
    rows.push_back({"rot90 " + std::to_string(k), [k](I x) { return rot90(x[0], k); }});
  return rows;
}

Rows padding_rows() {
  Rows rows = {
      {"pad constant",
       [](I x) {
         return pad(x[0], {1, 0, 0, 2}, PadMode::constant, 0.5);
       }},
      {"pad reflect negative",
       [](I x) {
         return pad(x[0], {-1, 2}, PadMode::reflect);
       }},
      {"pad replicate negative",
       [](I x) {
         return pad(x[0], {2, -1}, PadMode::replicate);
       }},
  };
  for (const auto& [name, mode] : {std::pair("reflect", PadMode::reflect), std::pair("replicate", PadMode::replicate),
                                   std::pair("circular", PadMode::circular)}) {
    const int64_t most = mode == PadMode::reflect ? 3 : 4;
    const std::vector<int64_t> pads[] = {{2, 1}, {1, 2, 2, 0}, {1, 0, 0, 1, 2, 2}, {most, most}};
    for (size_t i = 0; i < 4; ++i)
      rows.push_back({std::string("pad ") + name + (i < 3 ? " " + std::to_string(i + 1) : " most"),
                      [mode, each = pads[i]](I x) { return pad(x[0], each, mode); }});
  }
  return rows;
}
}  // namespace

std::vector<TorchRow> arrangement_rows() {
  Rows all = factory_rows();
  for (const Rows& more : {joining_rows(), view_rows(), padding_rows()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace plugrad::test
