// Calls of one compiled function in several threads, side by side.
#pragma once
#include <core/steps/recordings.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad {

// A step has one lane, which runs every kind of call, one call at a time. Further threads use side lanes while it is busy:
// for calls without an effect besides their results, such as forward passes. Each side lane has its own recordings and
// temporary memory.
class SideLanes {
 public:
  explicit SideLanes(const CompileOptions& options);

  // Notes that calls of this key have no effect besides their results.
  void allow(const std::string& key);
  // Replays the call beside the step's own lane. Returns nothing if no free side lane has a recording of it, or if the
  // step's own lane must be alone: the caller then waits for the step's own lane.
  std::optional<StepResults> replay(const std::vector<Tensor>& arguments, std::string_view constants);
  // Calls the function and records it in a side lane, so that the next calls need not wait; or returns nothing if the kind
  // of call is not known to be without effects, or there are enough lanes. The caller has waited for the step's own lane,
  // and holds it: functions run one at a time.
  std::optional<StepResults> record(const std::vector<Tensor>& arguments, std::string_view constants,
                                    const CompiledStep::Function& f);
  // Drops all recordings, also those of lanes with a call at its end.
  void clear();
  CompileFigures figures() const;
  // Describes the side lanes; empty if there is none.
  std::string explain() const;

  // While this object lives, no side lane runs: the step's own lane may write to memory that others read.
  class Alone {
   public:
    explicit Alone(SideLanes& lanes);
    ~Alone();
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    SideLanes& lanes_;
  };

 private:
  struct Lane {
    explicit Lane(const CompileOptions& options) : recordings(options) {}
    Recordings recordings;
    std::shared_ptr<steps::Arena> arena = std::make_shared<steps::Arena>();
    uint64_t changes = 0, generation = 0;
    bool is_busy = false;
  };
  struct Lease;

  // Returns a free lane, or null: with a recording of the call, or without one.
  Lane* take(const std::string& key, const std::vector<Tensor>& arguments, bool with_recording);
  void give_back(Lane& lane);

  const CompileOptions& options_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<Lane> lanes_;
  std::set<std::string, std::less<>> allowed_;  // keys
  size_t running_ = 0, alone_ = 0;
  uint64_t generation_ = 0;
  CompileFigures figures_;
};

}  // namespace plugrad
