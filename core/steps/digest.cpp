#include <core/steps/digest.hpp>

#include <core/runtime/dispatch/op_table.hpp>
#include <core/runtime/fnv.hpp>
#include <core/runtime/memory/host_copy.hpp>
#include <core/runtime/memory/transfer.hpp>

namespace plugrad::steps {
namespace {
// Adds the elements of a view from an axis on. first: the address of the first element.
void add_elements(Fnv& digest, const plugrad_view& view, int axis, const char* first) {
  const auto size = static_cast<int64_t>(dtype_size(view.dtype));
  if (axis == view.rank) return digest.add(first, static_cast<size_t>(size));
  for (int64_t i = 0; i < view.shape[axis]; ++i) add_elements(digest, view, axis + 1, first + i * view.strides[axis] * size);
}
}  // namespace

uint64_t digest_of(const plugrad_view& view, Storage& storage) {
  const HostCopy::Span span = HostCopy::span_of(view, storage);
  std::vector<char> bytes(span.bytes);
  transfer::peek(bytes.data(), storage, span.begin, span.bytes);
  Fnv digest;
  add_elements(digest, view, 0, bytes.data() + span.first);
  return digest.value();
}

uint64_t digest_of(const plugrad_view* const* views, Storage* const* storages, int count) {
  Fnv all;
  for (int i = 0; i < count; ++i) all.add(digest_of(*views[i], *storages[i]));
  return all.value();
}

Contents contents_of(const plugrad_view* const* views, Storage* const* storages, int count) {
  Contents all;
  for (int i = 0; i < count; ++i) {
    const HostCopy::Span span = HostCopy::span_of(*views[i], *storages[i]);
    transfer::peek(all.emplace_back(span.bytes).data(), *storages[i], span.begin, span.bytes);
  }
  return all;
}

void put_back(const Contents& contents, const plugrad_view* const* views, Storage* const* storages) {
  for (size_t i = 0; i < contents.size(); ++i)
    transfer::upload(*storages[i], HostCopy::span_of(*views[i], *storages[i]).begin, contents[i].data(), contents[i].size());
}

Snapshot::Snapshot(Storage& storage) : storage_(storage), bytes_(storage.size) {
  transfer::peek(bytes_.data(), storage_, 0, bytes_.size());
}

void Snapshot::put_back(Storage& storage) const { transfer::upload(storage, 0, bytes_.data(), bytes_.size()); }

}  // namespace plugrad::steps
