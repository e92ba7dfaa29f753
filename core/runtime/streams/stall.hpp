// How long the core waits for a stream without progress.
#pragma once
#include <chrono>
#include <cstdint>

namespace plugrad {

// Detects that a stream's number has stood still for two seconds. The core then calls the plugin's sync.
class Stall {
 public:
  bool lasts(uint64_t number) {
    const auto now = std::chrono::steady_clock::now();
    if (number != last_) last_ = number, moved_ = now;
    return now - moved_ > std::chrono::seconds(2);
  }

 private:
  uint64_t last_ = 0;
  std::chrono::steady_clock::time_point moved_ = std::chrono::steady_clock::now();
};

}  // namespace plugrad
