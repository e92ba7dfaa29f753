// Indexing with keys, as in Python: x[key] and x[key] = value. A key is a list of items, each for an axis of x or for
// several axes; axes after the last item are kept. A tensor of integers chooses elements of an axis; negative integers count
// from the end. A tensor of bools, a mask, covers as many axes as the mask has and chooses the elements at its true
// elements. Several tensors in a key broadcast against each other, a mask as the list of its true elements. Their axes
// replace the indexed axes, or come first if further axes lie between the indexed axes. Indices on a different device are
// moved to x's device.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <concepts>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace plugrad {

// The elements start, start + step, ... before end. Omitted and negative numbers have the meaning of a Python slice.
struct Slice {
  std::optional<int64_t> start = {}, end = {};
  int64_t step = 1;
};
// All axes without an item of their own. A key contains Ellipsis once at most.
struct Ellipsis {};
inline constexpr Ellipsis ellipsis{};
// An axis of extent 1 in the result.
struct NewAxis {};
inline constexpr NewAxis newaxis{};

// An item of a key. A whole number, or a tensor of rank 0 of an integer dtype, removes its axis. A bool is a mask of rank 0:
// it adds an axis of extent 1 or 0.
class Index {
 public:
  using Item = std::variant<int64_t, bool, Slice, Ellipsis, NewAxis, Tensor>;
  template <std::integral T> Index(T number) : item_(item_of(number)) {}
  Index(Slice slice) : item_(slice) {}
  Index(Ellipsis all) : item_(all) {}
  Index(NewAxis axis) : item_(axis) {}
  Index(Tensor tensor) : item_(std::move(tensor)) {}
  const Item& item() const { return item_; }

 private:
  template <std::integral T> static Item item_of(T number) {
    if constexpr (std::is_same_v<T, bool>) return number;
    else return static_cast<int64_t>(number);
  }
  Item item_;
};

// Returns x[key]: a view if no item is a bool or a tensor of rank 1 or more, else a copy. Throws Error (index_error) for an
// index out of range (some devices report it later), for more items than axes, for a mask whose extents differ from x's, for
// indices that do not broadcast, and for tensors of a dtype other than integers and bool. Waits for the device if the key
// has a mask or an index of rank 0.
PLUGRAD_API Tensor index(const Tensor& x, const std::vector<Index>& key);
// Returns a copy of x with value in place of x[key]. value broadcasts to the shape of x[key] and is converted to x's dtype.
// accumulate: adds value to x[key] instead, once for each index that names an element; without accumulate the last value is
// kept. Throws as index does, and Error (invalid) if value does not broadcast. Gradients flow to x and to value.
PLUGRAD_API Tensor index_put(const Tensor& x, const std::vector<Index>& key, const Tensor& value, bool accumulate = false);
// Writes x[key] = value, or x[key] += value if accumulate is set, in place, also through views: see index_put. Follows the
// rules of assign while recording.
PLUGRAD_API void index_put_(Tensor& x, const std::vector<Index>& key, const Tensor& value, bool accumulate = false);
PLUGRAD_API void index_put_(Tensor& x, const std::vector<Index>& key, Number value, bool accumulate = false);

// Returns index, a tensor of integers, as i64, and replaces each negative position in range by position + extent. Positions
// out of range stay unchanged.
PLUGRAD_API Tensor wrap_indices(const Tensor& index, int64_t extent);

}  // namespace plugrad
