#include <plugins/nccl/calls.hpp>

#include <numeric>

namespace nccl {
namespace {

int type_of(uint32_t dtype) {
  switch (dtype) {
    case PLUGRAD_F16: return kFloat16;
    case PLUGRAD_BF16: return kBFloat16;
    case PLUGRAD_F32: return kFloat32;
    case PLUGRAD_F64: return kFloat64;
    case PLUGRAD_I8: return kInt8;
    case PLUGRAD_U8: return kUint8;
    case PLUGRAD_I32: return kInt32;
    case PLUGRAD_I64: return kInt64;
    default: return -1;
  }
}

int reduction_of(uint32_t how) {
  switch (how) {
    case PLUGRAD_REDUCE_SUM: return kSum;
    case PLUGRAD_REDUCE_MIN: return kMin;
    case PLUGRAD_REDUCE_MAX: return kMax;
    case PLUGRAD_REDUCE_PRODUCT: return kProduct;
    case PLUGRAD_REDUCE_AVERAGE: return kAverage;
    default: return -1;
  }
}

// As messages of one group, which NCCL sends and receives at the same time.
Result all_to_all(const plugrad_collective& c, const Places& places, int ranks, Comm* comm) {
  const Functions& f = libraries().nccl;
  Result result = f.group_start();
  const char* from = places.from;
  char* to = places.to;
  for (int i = 0; i < ranks && result == kSuccess; ++i) {
    const size_t out = (c.counts ? c.counts[i] : c.count) * c.item, in = (c.counts ? c.counts[ranks + i] : c.count) * c.item;
    if (out) result = f.send(from, out, kUint8, i, comm, places.stream);
    if (in && result == kSuccess) result = f.recv(to, in, kUint8, i, comm, places.stream);
    from += out;
    to += in;
  }
  const Result ended = f.group_end();
  return result == kSuccess ? ended : result;
}

}  // namespace

bool offers(const plugrad_collective& c) {
  const bool reduces = c.kind == PLUGRAD_COLL_ALL_REDUCE || c.kind == PLUGRAD_COLL_REDUCE_SCATTER;
  return c.kind >= PLUGRAD_COLL_BARRIER && c.kind <= PLUGRAD_COLL_RECV &&
         (!reduces || (type_of(c.dtype) >= 0 && reduction_of(c.how) >= 0));
}

Sizes sizes_of(const plugrad_collective& c, int ranks) {
  const size_t bytes = c.count * c.item, all = bytes * static_cast<size_t>(ranks);
  switch (c.kind) {
    case PLUGRAD_COLL_BARRIER: return {1, 1, true};
    case PLUGRAD_COLL_REDUCE_SCATTER: return {all, bytes, false};
    case PLUGRAD_COLL_ALL_GATHER: return {bytes, all, false};
    case PLUGRAD_COLL_ALL_TO_ALL: break;
    default: return {bytes, bytes, true};
  }
  if (!c.counts) return {all, all, false};
  const uint64_t* middle = c.counts + ranks;
  return {std::accumulate(c.counts, middle, size_t{0}) * c.item, std::accumulate(middle, middle + ranks, size_t{0}) * c.item,
          false};
}

Result call(const plugrad_collective& c, const Places& places, int ranks, Comm* comm) {
  const Functions& f = libraries().nccl;
  const auto [from, to, stream] = places;
  const size_t bytes = c.count * c.item;
  switch (c.kind) {
    case PLUGRAD_COLL_BARRIER: return f.all_reduce(from, to, 1, kUint8, kSum, comm, stream);
    case PLUGRAD_COLL_BROADCAST: return f.broadcast(to, to, bytes, kUint8, c.peer, comm, stream);
    case PLUGRAD_COLL_ALL_REDUCE:
      return f.all_reduce(from, to, c.count, type_of(c.dtype), reduction_of(c.how), comm, stream);
    case PLUGRAD_COLL_REDUCE_SCATTER:
      return f.reduce_scatter(from, to, c.count, type_of(c.dtype), reduction_of(c.how), comm, stream);
    case PLUGRAD_COLL_ALL_GATHER: return f.all_gather(from, to, bytes, kUint8, comm, stream);
    default: return all_to_all(c, places, ranks, comm);
  }
}

}  // namespace nccl
