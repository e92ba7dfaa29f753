#include <core/runtime/cancel.hpp>

#include <plugrad/runtime/error.hpp>

#include <atomic>
#include <thread>
#include <utility>

namespace plugrad {

struct CancelScope::Inner {
  std::stop_token token;
  Inner* outer;
  const std::thread::id owner = std::this_thread::get_id();
  std::atomic<bool> ended{false};
};

namespace {
using Inner = CancelScope::Inner;

Inner* innermost() { return static_cast<Inner*>(local().cancel); }

template <class F> void for_each_scope(const F& f) {
  for (const Inner* each = innermost(); each; each = each->outer)
    if (!each->ended.load(std::memory_order_acquire)) f(*each);
}

// Removes the scopes of this thread that have ended, here or elsewhere.
void drop_ended() {
  Inner* kept = nullptr;
  for (Inner* each = innermost(); each;) {
    Inner* const outer = each->outer;
    if (!each->ended.load(std::memory_order_acquire)) {
      kept = each;
    } else {
      if (kept) kept->outer = outer;
      else local().cancel = outer;
      delete each;
    }
    each = outer;
  }
}
}  // namespace

CancelScope::CancelScope(std::stop_token token) {
  drop_ended();
  inner_ = new Inner{std::move(token), innermost()};
  local().cancel = inner_;
}

// Scopes may end in any order, and on any thread. Only their own thread changes its list.
CancelScope::~CancelScope() {
  const bool is_own = inner_->owner == std::this_thread::get_id();
  inner_->ended.store(true, std::memory_order_release);
  if (is_own) drop_ended();
}

AnyCancel::AnyCancel() {
  for_each_scope([&](const Inner& each) { callbacks_.emplace_back(each.token, Stop{source_}); });
}

void throw_cancelled() { throw Error(Code::cancelled, "[cancel] the call was cancelled before it was complete"); }

void throw_if_cancelled() {
  bool requested = false;
  for_each_scope([&](const Inner& each) { requested |= each.token.stop_requested(); });
  if (requested) throw_cancelled();
}

}  // namespace plugrad
