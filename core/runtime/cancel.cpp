#include <core/runtime/cancel.hpp>

#include <plugrad/runtime/error.hpp>

#include <atomic>
#include <optional>

namespace plugrad {

struct CancelScope::Inner {
  struct Stop {
    std::stop_source& of;
    void operator()() const noexcept { of.request_stop(); }
  };
  using Callback = std::stop_callback<Stop>;
  Inner(const std::stop_token& token, Inner* around) : outer(around) {
    given.emplace(token, Stop{source});
    follow_outer();
  }
  void follow_outer() {
    of_outer.reset();
    if (outer) of_outer.emplace(outer->source.get_token(), Stop{source});
  }

  std::stop_source source;  // a stop of this scope, or of one around it
  std::optional<Callback> given, of_outer;
  Inner* outer;
  std::atomic<bool> ended{false};
};

namespace {
CancelScope::Inner* innermost() {
  auto* scope = static_cast<CancelScope::Inner*>(local().cancel);
  while (scope && scope->ended) scope = scope->outer;
  return scope;
}
}  // namespace

CancelScope::CancelScope(std::stop_token token) : inner_(std::make_unique<Inner>(token, innermost())) {
  local().cancel = inner_.get();
}

// Scopes may end in any order. The list of another thread keeps a scope that ended elsewhere.
CancelScope::~CancelScope() {
  if (local().cancel == inner_.get()) {
    local().cancel = inner_->outer;
    return;
  }
  for (auto* each = static_cast<Inner*>(local().cancel); each; each = each->outer)
    if (each->outer == inner_.get()) {
      each->outer = inner_->outer;
      each->follow_outer();
      return;
    }
  inner_->given.reset();
  inner_->of_outer.reset();
  inner_.release()->ended = true;
}

std::stop_token cancel_token() {
  const CancelScope::Inner* const scope = innermost();
  return scope ? scope->source.get_token() : std::stop_token();
}

void throw_if_cancelled() {
  if (may_be_cancelled() && cancel_token().stop_requested())
    throw Error(Code::cancelled, "[cancel] the call was cancelled before it was complete");
}

}  // namespace plugrad
