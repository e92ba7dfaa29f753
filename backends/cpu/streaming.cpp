#include <backends/cpu/streaming.hpp>

namespace plugrad::cpu {

bool begins_at_end(int64_t bytes) {
  thread_local bool last = false;
  return bytes >= kFarBytes && (last = !last);
}

}  // namespace plugrad::cpu
