#include <plugins/gloo/collectives.hpp>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace {
uint32_t tag_of(const plugrad_collective& c) { return static_cast<uint32_t>(c.fingerprint ^ c.fingerprint >> 32); }

template <class T> using Reduce = void (*)(void*, const void*, const void*, size_t);
template <class T> Reduce<T> reduction(uint32_t how) {
  switch (how) {
    case PLUGRAD_REDUCE_SUM: return &gloo::sum<T>;
    case PLUGRAD_REDUCE_MIN: return &gloo::min<T>;
    case PLUGRAD_REDUCE_MAX: return &gloo::max<T>;
    case PLUGRAD_REDUCE_PRODUCT: return &gloo::product<T>;
    default: return nullptr;
  }
}

template <class T> bool all_reduce(Context& context, const plugrad_collective& c) {
  const Reduce<T> reduce = reduction<T>(c.how);
  if (!reduce) return false;
  T* const to = static_cast<T*>(c.to);
  if (c.from != c.to) std::memcpy(to, c.from, c.count * sizeof(T));
  gloo::AllreduceOptions options(context);
  options.setOutput(to, c.count);
  options.setReduceFunction(reduce);
  options.setTag(tag_of(c));
  gloo::allreduce(options);
  return true;
}

// Returns false for a dtype that Gloo does not reduce: the host adds f16 and bf16 in f32.
bool all_reduce_of_any(Context& context, const plugrad_collective& c) {
  switch (c.dtype) {
    case PLUGRAD_F32: return all_reduce<float>(context, c);
    case PLUGRAD_F64: return all_reduce<double>(context, c);
    case PLUGRAD_I64: return all_reduce<int64_t>(context, c);
    case PLUGRAD_I32: return all_reduce<int32_t>(context, c);
    default: return false;
  }
}

void barrier(Context& context, const plugrad_collective& c) {
  gloo::BarrierOptions options(context);
  options.setTag(tag_of(c));
  gloo::barrier(options);
}

void broadcast(Context& context, const plugrad_collective& c) {
  gloo::BroadcastOptions options(context);
  options.setOutput(static_cast<char*>(c.to), c.count * c.item);
  options.setRoot(c.peer);
  options.setTag(tag_of(c));
  gloo::broadcast(options);
}

void all_gather(Context& context, const plugrad_collective& c) {
  const uint64_t bytes = c.count * c.item;
  gloo::AllgatherOptions options(context);
  options.setInput(input(c), bytes);
  options.setOutput(static_cast<char*>(c.to), bytes * static_cast<uint64_t>(context->size));
  options.setTag(tag_of(c));
  gloo::allgather(options);
}

void all_to_all_of_counts(Context& context, const plugrad_collective& c) {
  const auto size = static_cast<size_t>(context->size);
  std::vector<int64_t> to(size), of(size);
  for (size_t i = 0; i < size; ++i) {
    to[i] = static_cast<int64_t>(c.counts[i] * c.item);
    of[i] = static_cast<int64_t>(c.counts[size + i] * c.item);
  }
  gloo::AlltoallvOptions options(context);
  options.setInput(input(c), to);
  options.setOutput(static_cast<char*>(c.to), of);
  options.setTag(tag_of(c));
  gloo::alltoallv(options);
}

void all_to_all(Context& context, const plugrad_collective& c) {
  if (c.counts) return all_to_all_of_counts(context, c);
  const uint64_t bytes = c.count * c.item * static_cast<uint64_t>(context->size);
  gloo::AlltoallOptions options(context);
  options.setInput(input(c), bytes);
  options.setOutput(static_cast<char*>(c.to), bytes);
  options.setTag(tag_of(c));
  gloo::alltoall(options);
}

}  // namespace

bool run(Context& context, const plugrad_collective& c) {
  switch (c.kind) {
    case PLUGRAD_COLL_BARRIER: return barrier(context, c), true;
    case PLUGRAD_COLL_BROADCAST: return broadcast(context, c), true;
    case PLUGRAD_COLL_ALL_REDUCE: return all_reduce_of_any(context, c);
    case PLUGRAD_COLL_ALL_GATHER: return all_gather(context, c), true;
    case PLUGRAD_COLL_ALL_TO_ALL: return all_to_all(context, c), true;
    default: return false;
  }
}
