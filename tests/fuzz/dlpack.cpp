// Arrays as another library might describe them, in a capsule of either kind.
#include <tests/fuzz/target.hpp>

#include <plugrad/ops/reduce.hpp>
#include <plugrad/tensor/dlpack.hpp>

#include <array>
#include <cstring>

namespace plugrad::test {
namespace {

constexpr int kMostExtents = 9;

// The contents of an input.
struct Described {
  dlpack::Version version;
  uint64_t flags;
  int32_t place_type, place_index, rank;
  dlpack::ElementType dtype;
  uint64_t offset;
  int64_t shape[kMostExtents], strides[kMostExtents];
  uint8_t has_strides, has_data, has_version;
};

alignas(64) std::array<char, 4096> memory{};

// Returns whether there are few elements and all are inside `memory`, which an importer cannot check. Double precision is
// exact for offsets near `memory`.
bool is_within(const Described& d) {
  const double size = d.dtype.bits / 8.0;
  double least = static_cast<double>(d.offset), most = least, count = 1;
  for (int i = d.rank; i-- > 0;) {
    const auto extent = static_cast<double>(d.shape[i]);
    const double step = d.has_strides & 1 ? static_cast<double>(d.strides[i]) : count;
    const double reach = step * (extent - 1) * size;
    (reach < 0 ? least : most) += reach;
    count *= extent;
  }
  return count <= 4096 && least >= 0 && most + size <= static_cast<double>(memory.size());
}

std::string bytes_of(const Described& d) { return {reinterpret_cast<const char*>(&d), sizeof d}; }

Described valid(std::initializer_list<int64_t> shape, dlpack::ElementType dtype) {
  Described d{};
  d.version = dlpack::kVersion;
  d.place_type = 1;
  d.dtype = dtype;
  d.has_data = 1;
  for (const int64_t extent : shape) d.shape[d.rank++] = extent;
  return d;
}

// Reads the elements only if they are inside `memory`. Imports of read-only memory and of bools also read the elements.
template <class Import> void import(Import import_it, const Described& d) {
  const bool is_readable = d.rank >= 0 && d.rank <= kMostExtents && is_within(d);
  constexpr int kBool = 6;
  const bool is_read = (d.has_version & 1 && d.flags & dlpack::kReadOnly) || d.dtype.code == kBool;
  if (is_read && !is_readable) return;
  const Tensor x = import_it();
  if (is_readable) sum(x).item<double>();
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  Described strided = valid({3, 4}, {2, 64, 1});
  strided.has_strides = strided.has_version = 1;
  strided.strides[0] = 1;
  strided.strides[1] = 3;
  return {bytes_of(valid({2, 3}, {2, 32, 1})), bytes_of(valid({}, {0, 64, 1})), bytes_of(valid({5, 0}, {6, 8, 1})),
          bytes_of(strided)};
}

void fuzz_repair(std::string& bytes, int64_t) { bytes.resize(sizeof(Described)); }

}  // namespace plugrad::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  using namespace plugrad;
  using namespace plugrad::test;
  Described d{};
  std::memcpy(&d, bytes, std::min(count, sizeof d));
  const dlpack::Array array{d.has_data & 1 ? memory.data() : nullptr,
                            {d.place_type, d.place_index},
                            d.rank,
                            d.dtype,
                            d.shape,
                            d.has_strides & 1 ? d.strides : nullptr,
                            d.offset};
  return read_file_of(bytes, count, [&](const std::string&) {
    const Device host("reference");
    if (d.has_version & 1) {
      dlpack::ManagedVersioned managed{d.version, nullptr, nullptr, d.flags, array};
      import([&] { return dlpack::import_versioned(&managed, host, dlpack::Order::host()); }, d);
    } else {
      dlpack::Managed managed{array, nullptr, nullptr};
      import([&] { return dlpack::import_managed(&managed, host, dlpack::Order::host()); }, d);
    }
  });
}
