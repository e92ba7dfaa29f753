// The communicator "nccl": memory of CUDA devices in the order of their streams, and host memory by staging. The ranks meet
// by the host's store. NCCL has no tags: ranks that start different collectives are found by a time-out, or by
// PLUGRAD_DISTRIBUTED_CHECK.
#include <plugins/nccl/group.hpp>

#include <plugrad/sdk/backend.hpp>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#ifndef PLUGRAD_NCCL_NAME
#define PLUGRAD_NCCL_NAME "nccl"
#endif

namespace {
using nccl::Failure;

constexpr int64_t kMostDevices = 4096;

const plugrad_host* host = nullptr;  // set by open; all hosts of a process are one core

plugrad_status report(plugrad_status status, const std::string& why) {
  host->report(host, status, why.c_str());
  return status;
}

// Runs a call of the contract. A failure breaks the group.
template <class F> plugrad_status guarded(plugrad_group* group, F f) {
  try {
    return f();
  } catch (const Failure& failure) {
    if (group && failure.status != PLUGRAD_INVALID) group->break_by(failure.why);
    return report(failure.status, failure.why);
  } catch (const std::exception& error) {
    if (group) group->break_by(error.what());
    const plugrad_status lost = PLUGRAD_PEER_LOST, invalid = PLUGRAD_INVALID;
    return report(group ? lost : invalid, error.what());
  }
}

plugrad_status launched(const plugrad_host*, int32_t* rank, int32_t* size) {
  *rank = *size = -1;
  return PLUGRAD_OK;
}

plugrad_status open(const plugrad_host* given, const plugrad_group_options* options, plugrad_group** made, int32_t* rank,
                    int32_t* size) {
  host = given;
  return guarded(nullptr, [&] {
    if (!options->store || options->rank < 0 || options->size < 1)
      throw Failure{PLUGRAD_INVALID, "NCCL needs a rank, a size and a store"};
    nccl::libraries();
    const plugrad::Options given(&options->options);
    given.allow({"device"});
    nccl::own_device().set_option(static_cast<int>(given.integer("device", -1, 0, kMostDevices - 1)));
    auto group = std::make_unique<plugrad_group>(*options->store, "nccl." + std::to_string(options->generation),
                                                 options->rank, options->size, options->timeout);
    group->meet();
    *rank = options->rank;
    *size = options->size;
    *made = group.release();
    return PLUGRAD_OK;
  });
}

plugrad_status split(plugrad_group* group, int32_t color, uint64_t number, plugrad_group** made, int32_t* rank,
                     int32_t* size) {
  *made = nullptr;
  return guarded(group, [&] {
    std::unique_ptr<plugrad_group> part = group->split(color, number);
    if (part) {
      *rank = part->rank();
      *size = part->size();
    }
    *made = part.release();
    return PLUGRAD_OK;
  });
}

plugrad_status start(plugrad_group* group, const plugrad_collective* c, plugrad_work** work) {
  return guarded(group, [&] {
    *work = group->start(*c);
    return *work ? PLUGRAD_OK : report(PLUGRAD_UNSUPPORTED, "NCCL has no such collective for this dtype");
  });
}

plugrad_status test(plugrad_work* work, uint32_t* ended) {
  plugrad_group* const group = work->group;
  return guarded(group, [&] {
    *ended = group->test(work);
    return PLUGRAD_OK;
  });
}

plugrad_status failure(plugrad_group* group, plugrad_group_failure* failure) {
  failure->rank = -1;
  std::snprintf(failure->why, sizeof failure->why, "%s", group->reason().c_str());
  return PLUGRAD_OK;
}

void abort(plugrad_group* group) { group->abort(); }
void close(plugrad_group* group) { delete group; }

}  // namespace

extern "C" const plugrad_communicator* plugrad_communicator_v0(const plugrad_host*) {
  static const plugrad_communicator table = {sizeof table,
                                             PLUGRAD_COMM_AVERAGES,
                                             PLUGRAD_COMMUNICATOR_LAYOUT,
                                             PLUGRAD_NCCL_NAME,
                                             "NCCL",
                                             launched,
                                             open,
                                             split,
                                             start,
                                             test,
                                             nullptr,
                                             failure,
                                             abort,
                                             close,
                                             nullptr,
                                             2,
                                             0};
  return &table;
}
