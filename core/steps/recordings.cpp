#include <core/steps/recordings.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace plugrad {
namespace {
constexpr uint64_t kPaid = 4;  // replays that save the time of a recording
constexpr uint64_t kManyWasted = 16, kManyUnused = 64;
constexpr uint64_t kFirstRest = 64, kLongestRest = 4096;
}  // namespace

steps::FusionChoice fusion_choice(const CompileOptions& options) {
  steps::FusionChoice choice{options.fuse};
  if (options.fusion_elements) choice.least = options.fusion_elements;
  return choice;
}

Recordings::Recordings(const CompileOptions& options)
    : most_(options.entries ? options.entries : SIZE_MAX), most_bytes_(options.memory), rest_(kFirstRest) {}

// --- Finding.

Recordings::Place Recordings::place_of(const std::string& key, const std::vector<Tensor>& arguments) {
  const auto is_it = [&](const Entry& each) { return each.recording->key == key && each.recording->fits(arguments); };
  if (all_.empty() || is_it(all_.front())) return all_.begin();
  const auto [first, last] = by_key_.equal_range(key);
  const auto found = std::find_if(first, last, [&](const auto& each) { return is_it(*each.second); });
  return found == last ? all_.end() : found->second;
}

std::shared_ptr<Recording> Recordings::find(const std::string& key, const std::vector<Tensor>& arguments) {
  const Place found = place_of(key, arguments);
  if (found == all_.end()) return nullptr;
  if (found != all_.begin()) all_.splice(all_.begin(), all_, found);
  return found->recording;
}

std::shared_ptr<Recording> Recordings::find_alike(const std::string& alike, const std::vector<Tensor>& arguments) const {
  const auto found = std::ranges::find_if(
      all_, [&](const Entry& each) { return each.recording->alike == alike && each.recording->fits(arguments); });
  return found == all_.end() ? nullptr : found->recording;
}

void Recordings::note_replay() {
  if (all_.empty()) return;
  const uint64_t replays = ++all_.front().replays;
  if (replays == kPaid) {
    wasted_ = 0;
    is_wasteful_ = false;
    rest_ = kFirstRest;
  }
  if (replays != 1) return;
  --unused_;
  if (is_wasteful_) return;
  resting_ = 0;  // a kind of arguments came again
  rest_ = kFirstRest;
}

// --- Adding and dropping.

bool Recordings::may_add() {
  if (!resting_) return true;
  --resting_;
  return false;
}

void Recordings::rest(const std::string& why) {
  resting_ = rest_;
  rest_ = std::min(2 * rest_, kLongestRest);
  complaint_ = why;
}

bool Recordings::is_too_large() const { return all_.size() > 1 && (all_.size() > most_ || bytes_ > most_bytes_); }

size_t Recordings::add(std::shared_ptr<Recording> recording) {
  const uint64_t bytes = recording->bytes();
  all_.push_front({std::move(recording), bytes});
  by_key_.emplace(all_.front().recording->key, all_.begin());
  bytes_ += bytes;
  // Many kinds of arguments may come before the first of them comes again: a warning would be too early.
  if (++unused_ >= kManyUnused)
    rest(rest_ < 4 * kFirstRest ? ""
                                : std::to_string(unused_) +
                                      " of its recordings have never been replayed: something in its arguments differs in "
                                      "each call. Pass a number that changes as a tensor, and lengths padded to a few");
  const size_t lost = is_too_large() ? drop_lost() : 0;
  while (is_too_large()) replace_last();
  return lost;
}

void Recordings::drop(Place place) {
  bytes_ -= place->bytes;
  unused_ -= !place->replays;
  const auto [first, last] = by_key_.equal_range(place->recording->key);
  by_key_.erase(std::find_if(first, last, [&](const auto& each) { return each.second == place; }));
  all_.erase(place);
}

size_t Recordings::drop_lost() {
  const size_t before = all_.size();
  for (Place each = all_.begin(); each != all_.end();)
    if (const Place it = each++; !it->recording->has_captured()) drop(it);
  return before - all_.size();
}

void Recordings::replace_last() {
  const Place last = std::prev(all_.end());
  wasted_ = last->replays < kPaid ? wasted_ + 1 : 0;
  drop(last);
  if (wasted_ < kManyWasted) return;
  wasted_ = 0;
  is_wasteful_ = true;
  rest(std::to_string(kManyWasted) + " recordings in a row, of which it keeps " + std::to_string(all_.size()) +
       ", were replaced before they were replayed " + std::to_string(kPaid) +
       " times: pass fewer kinds of arguments, such as padded lengths, or raise the option " +
       (all_.size() >= most_ ? "entries" : "memory"));
}

size_t Recordings::erase(const std::shared_ptr<Recording>& recording) {
  const auto found = std::ranges::find(all_, recording, &Entry::recording);
  if (found == all_.end()) return 0;
  drop(found);
  return 1;
}

void Recordings::clear() {
  by_key_.clear();
  all_.clear();
  bytes_ = unused_ = wasted_ = resting_ = 0;
  is_wasteful_ = false;
}

}  // namespace plugrad
