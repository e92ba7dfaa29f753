// Which access is ordered after which: vector clocks, kept while work is submitted, so that a missing wait is found however
// fast or slow the workers are. Guarded by World::mutex.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace plugrad::sim {

inline constexpr uint64_t kGranule = 256;  // bytes; also the alignment of memory, so that no two buffers share one

struct Epoch {  // an op or copy: its stream, and its number there; number 0: none
  uint32_t stream = 0;
  uint64_t number = 0;
};

// Who used these bytes last. All zero: nobody.
struct Granule {
  uint64_t written, read;   // numbers
  uint32_t writer, reader;  // streams; reader may be the head of a list of several, see Clocks
  uint64_t block;           // bytes of the buffer that begins here; 0: none does
};

struct Conflict {
  Epoch earlier;
  bool earlier_wrote;
  uint64_t granule;  // index within what was accessed
};

class Clocks {
 public:
  Clocks();

  // A new stream; lost tells whether its device is gone, and then nothing of it is in flight.
  uint32_t add_stream(const std::atomic<bool>* lost);
  // The host knows that nothing up to number is in flight, and so nothing that it waited for (transitive).
  void host_learned(uint32_t stream, uint64_t number, bool transitive = true);
  // What stream submits next, number `next`, comes after other's `number`.
  void joined(uint32_t stream, uint64_t next, Epoch other);

  // The same, and after all that other's next op would come after.
  void followed(uint32_t stream, uint64_t next, Epoch other);

  // Notes an access; answers an earlier one that it is not ordered after.
  std::optional<Conflict> access(Epoch by, std::span<Granule> granules, bool write);
  // An access that the host does not know to have ended.
  std::optional<Conflict> in_flight(std::span<const Granule> granules) const;
  void forget(std::span<Granule> granules);

 private:
  using Clock = std::vector<uint64_t>;  // by stream; what lies beyond its end is 0
  struct Since {                        // what ops from `number` on come after
    uint64_t number;
    Clock clock;
  };
  struct Reader {  // one of several that read a granule unordered
    uint64_t number;
    uint32_t stream, next;
  };
  static constexpr uint32_t kMany = 1u << 31, kHost = ~0u;

  bool ordered(uint32_t stream, Epoch earlier) const;
  std::optional<Epoch> unordered_reader(uint32_t stream, const Granule& granule) const;
  void add_reader(Epoch by, Granule& granule);
  void drop_readers(Granule& granule);
  uint32_t new_reader(Epoch by, uint32_t next);
  void keep(uint32_t stream, uint64_t next);  // the stream's clock, for what asks about `next` later
  static void join(Clock& into, const Clock& from);
  static uint64_t at(const Clock& clock, uint32_t stream) { return stream < clock.size() ? clock[stream] : 0; }

  std::vector<const std::atomic<bool>*> lost_;
  Clock host_;
  std::vector<Clock> clocks_;               // of what each stream submits next, save for host_
  std::vector<std::deque<Since>> history_;  // what the host does not know yet
  Reader* readers_;                         // address space; pages come as they are touched
  uint32_t used_readers_ = 0, free_reader_ = kMany;
};

}  // namespace plugrad::sim
