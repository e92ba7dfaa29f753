// The recordings of a compiled step, each for other arguments.
#pragma once
#include <core/steps/recording.hpp>
#include <plugrad/steps/compile.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plugrad {

// How the recordings of a step make fusions.
steps::FusionChoice fusion_choice(const CompileOptions& options);

// The most recently used first. A new recording replaces those that have not been used for longest, if there are too many.
class Recordings {
 public:
  explicit Recordings(const CompileOptions& options);

  // Returns the recording of a key that fits the arguments, or null, and counts it as used.
  std::shared_ptr<Recording> find(const std::string& key, const std::vector<Tensor>& arguments);
  // Returns a recording for arguments that may be aligned otherwise, or null.
  std::shared_ptr<Recording> find_alike(const std::string& alike, const std::vector<Tensor>& arguments) const;
  // Counts a replay of the recording that was found last.
  void note_replay();
  // Returns whether a recording is worth its time. After many recordings that were never replayed, or were replaced before
  // they were replayed a few times, the next calls do better to run the function.
  bool may_add();
  // Returns how many others it dropped because the program no longer holds their tensors.
  size_t add(std::shared_ptr<Recording> recording);
  size_t erase(const std::shared_ptr<Recording>& recording);
  void clear();

  size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  const std::shared_ptr<Recording>& front() const { return all_.front().recording; }
  template <class F> void for_each(F f) const {
    for (const Entry& each : all_) f(*each.recording);
  }
  template <class F> bool any_of(F f) const {
    for (const Entry& each : all_)
      if (f(*each.recording)) return true;
    return false;
  }
  // Empty, or a description for a warning: recordings do not pay.
  const std::string& complaint() const { return complaint_; }

 private:
  struct Entry {
    std::shared_ptr<Recording> recording;
    uint64_t bytes;
    uint64_t replays = 0;
  };
  using Place = std::list<Entry>::iterator;
  Place place_of(const std::string& key, const std::vector<Tensor>& arguments);
  bool is_too_large() const;
  void drop(Place place);
  void replace_last();
  size_t drop_lost();
  void rest(const std::string& why);

  const size_t most_;
  const uint64_t most_bytes_;
  std::list<Entry> all_;
  std::unordered_multimap<std::string_view, Place> by_key_;
  uint64_t bytes_ = 0;
  uint64_t unused_ = 0;          // recordings that were never replayed
  uint64_t wasted_ = 0;          // replaced one after the next, each before it was replayed a few times
  bool is_wasteful_ = false;     // so many that it rested
  uint64_t resting_ = 0, rest_;  // calls for which nothing is recorded: still, and the next time
  std::string complaint_;
};

}  // namespace plugrad
