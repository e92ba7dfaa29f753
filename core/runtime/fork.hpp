// The core's locks over a fork: held by whoever forks, so that the child finds them free and what they guard whole. Taken in
// this order, between the registry's own and the allocators': see Registry::hold.
#pragma once
#include <mutex>

namespace plugrad {

std::mutex& leaf_mutex();    // autograd: leaves may belong to several passes at once; the swap of gradients
std::mutex& census_mutex();  // which threads there are
std::mutex& depot_mutex();   // free objects that no thread holds; one for all depots
std::mutex& log_mutex();     // where lines go

}  // namespace plugrad
