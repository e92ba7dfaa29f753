// The requests to cancel this thread's calls.
#pragma once
#include <core/runtime/local.hpp>
#include <plugrad/runtime/cancel.hpp>

#include <deque>

namespace plugrad {

// Whether this thread may be inside a CancelScope.
inline bool may_be_cancelled() { return local().cancel; }
[[noreturn]] void throw_cancelled();

// A token of which a stop is requested as soon as one of this thread's scopes has a request.
class AnyCancel {
 public:
  AnyCancel();
  AnyCancel(const AnyCancel&) = delete;
  AnyCancel& operator=(const AnyCancel&) = delete;
  std::stop_token token() const { return source_.get_token(); }

 private:
  struct Stop {
    std::stop_source& of;
    void operator()() const noexcept { of.request_stop(); }
  };
  std::stop_source source_;
  std::deque<std::stop_callback<Stop>> callbacks_;
};

}  // namespace plugrad
