// The requests to cancel this thread's calls.
#pragma once
#include <core/runtime/local.hpp>
#include <plugrad/runtime/cancel.hpp>

namespace plugrad {

// Whether this thread is inside a CancelScope.
inline bool may_be_cancelled() { return local().cancel; }
// A token of which a stop is requested as soon as one of this thread's scopes has a request. Outside of scopes, never.
std::stop_token cancel_token();

}  // namespace plugrad
