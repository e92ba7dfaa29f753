// Compiled steps of one model, one for each of the calls that run at once.
#pragma once
#include <core/runtime/cancel.hpp>
#include <plugrad/steps/compile.hpp>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <string>

namespace plugrad::io::onnx {

class Lanes {
 public:
  explicit Lanes(size_t most) : most_(most) {}

  // Returns f(step) with a step that no other call has, if possible a step with recordings for this key. It waits while all
  // steps have calls. Throws Error (cancelled) if this thread's calls are cancelled meanwhile.
  template <class F> auto run(const std::string& key, const F& f) {
    const Lease lease{*this, take(key)};
    return f(lease.lane.step);
  }

  // Drops the recordings of the step, and of all lanes without a call.
  void drop_recordings(const CompiledStep& own) {
    own.clear();
    const std::lock_guard lock(mutex_);
    for (const Lane& each : lanes_)
      if (!each.busy) each.step.clear();
  }

  std::string explain() const {
    std::vector<const Lane*> all;
    {
      const std::lock_guard lock(mutex_);
      for (const Lane& each : lanes_) all.push_back(&each);
    }
    std::string text;
    for (const Lane* each : all) text += each->step.explain();  // it waits for the lane's call
    return text;
  }

 private:
  static constexpr size_t kMostKeys = 1024;
  struct Lane {
    CompiledStep step{{.name = "onnx"}};
    std::set<std::string> keys;  // of its calls so far
    bool busy = false;
  };
  struct Lease {
    Lanes& all;
    Lane& lane;
    ~Lease() { all.give_back(lane); }
  };

  Lane& take(const std::string& key) {
    const auto is_free = [](const Lane& each) { return !each.busy; };
    const auto knows = [&](const Lane& each) { return !each.busy && each.keys.contains(key); };
    std::unique_lock lock(mutex_);
    const auto has_free = [&] { return lanes_.size() < most_ || std::ranges::any_of(lanes_, is_free); };
    if (!freed_.wait(lock, AnyCancel().token(), has_free)) throw_cancelled();
    auto found = std::ranges::find_if(lanes_, knows);
    if (found == lanes_.end()) found = std::ranges::find_if(lanes_, is_free);
    Lane& lane = found == lanes_.end() ? lanes_.emplace_back() : *found;
    if (lane.keys.size() == kMostKeys) lane.keys.clear();
    lane.keys.insert(key);
    lane.busy = true;
    return lane;
  }
  void give_back(Lane& lane) {
    const std::lock_guard lock(mutex_);
    lane.busy = false;
    freed_.notify_one();
  }

  const size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable_any freed_;
  std::deque<Lane> lanes_;
};

}  // namespace plugrad::io::onnx
