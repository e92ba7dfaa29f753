// Cancels calls of models and compiled steps, from another thread.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <stop_token>

namespace plugrad {

// While it lives, this thread's calls of ONNX models, saved models and compiled steps end with Error (cancelled) soon after
// the token's source requests a stop: before their next op, or while they wait for a lane. These are never interrupted: an
// op, a step's function where the call does not replay, a step in which other processes take part, and what a device with
// streams has accepted. What a call has written stays written: a training step may have updated some of its parameters.
// Models and steps stay usable. The tokens of all of the thread's scopes count.
class PLUGRAD_API CancelScope {
 public:
  explicit CancelScope(std::stop_token token);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

  struct Inner;

 private:
  Inner* inner_;  // of the thread's list
};

// Throws Error (cancelled) if a stop was requested of a token of this thread's scopes.
PLUGRAD_API void throw_if_cancelled();

}  // namespace plugrad
