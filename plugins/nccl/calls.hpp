// NCCL's calls for the collectives of communicator.h.
#pragma once
#include <plugins/nccl/libraries.hpp>

#include <plugrad/sdk/communicator.h>

#include <cstddef>

namespace nccl {

// Whether NCCL has the collective.
bool offers(const plugrad_collective& c);

// The bytes read and written by a collective. Messages have no sizes here.
struct Sizes {
  size_t from, to;
  bool is_in_place;
};
Sizes sizes_of(const plugrad_collective& c, int ranks);

// Device memory, and the stream in whose order NCCL works.
struct Places {
  const char* from;
  char* to;
  Stream* stream;
};
// Calls NCCL for a collective with offers(c), messages excepted.
Result call(const plugrad_collective& c, const Places& places, int ranks, Comm* comm);

}  // namespace nccl
