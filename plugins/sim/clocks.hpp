// Tracks the order of accesses by vector clocks. The clocks advance as work is submitted, so a missing wait is found at any
// speed of the workers. Guarded by World::mutex.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace plugrad::sim {

inline constexpr uint64_t kGranule = 256;  // bytes; also the alignment of memory, so that buffers share no granule

struct Epoch {  // the stream of an op or copy, and its number on it; number 0: none
  uint32_t stream = 0;
  uint64_t number = 0;
};

// The last accesses to these bytes. All zero: none.
struct Granule {
  uint64_t written, read;   // numbers
  uint32_t writer, reader;  // streams; reader may be the head of a list of readers, see Clocks
  uint64_t block;           // bytes of the buffer beginning here; 0: no buffer begins here
};

struct Conflict {
  Epoch earlier;
  bool earlier_wrote;
  uint64_t granule;  // index within the accessed granules
};

class Clocks {
 public:
  Clocks();

  // Adds a stream. Once *lost is true its device is lost, and none of its work is in flight.
  uint32_t add_stream(const std::atomic<bool>* lost);
  // The host has learned: no work up to number is in flight, nor (transitive) any of the work it waited for.
  void host_learned(uint32_t stream, uint64_t number, bool transitive = true);
  // The next work of stream, number `next`, is ordered after `other`.
  void joined(uint32_t stream, uint64_t next, Epoch other);

  // The same, and also after all predecessors of the next op on other's stream.
  void followed(uint32_t stream, uint64_t next, Epoch other);

  // Records an access; returns an earlier unordered access, if there is any.
  std::optional<Conflict> access(Epoch by, std::span<Granule> granules, bool write);
  // Returns an access not known to the host to have ended, if there is any.
  std::optional<Conflict> in_flight(std::span<const Granule> granules) const;
  void forget(std::span<Granule> granules);

 private:
  using Clock = std::vector<uint64_t>;  // by stream; entries beyond its end are 0
  struct Since {                        // ops from `number` on are ordered after `clock`
    uint64_t number;
    Clock clock;
  };
  struct Reader {  // in a list of unordered readers of a granule
    uint64_t number;
    uint32_t stream, next;
  };
  static constexpr uint32_t kMany = 1u << 31, kHost = ~0u;

  bool ordered(uint32_t stream, Epoch earlier) const;
  std::optional<Epoch> unordered_reader(uint32_t stream, const Granule& granule) const;
  void add_reader(Epoch by, Granule& granule);
  void drop_readers(Granule& granule);
  uint32_t new_reader(Epoch by, uint32_t next);
  void keep(uint32_t stream, uint64_t next);  // stores the stream's clock for later queries about `next`
  static void join(Clock& into, const Clock& from);
  static uint64_t at(const Clock& clock, uint32_t stream) { return stream < clock.size() ? clock[stream] : 0; }

  std::vector<const std::atomic<bool>*> lost_;
  Clock host_;
  std::vector<Clock> clocks_;               // of the next submission of each stream, without host_
  std::vector<std::deque<Since>> history_;  // clocks of work not known to the host to have ended
  Reader* readers_;                         // reserved address space; pages are committed on first use
  uint32_t used_readers_ = 0, free_reader_ = kMany;
};

}  // namespace plugrad::sim
