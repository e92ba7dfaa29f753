// Device memory on the host. Only a running kernel or copy of the emulator may access it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace simt {

inline constexpr size_t kPage = 4096;

// Kernels, copies, allocations and releases hold this mutex, so that they run one at a time.
std::recursive_mutex& gate();

class Memory {
 public:
  Memory(unsigned device, uint64_t limit);

  // Returns poisoned memory aligned to 256 bytes, or null if full. It ends at a page end, before an inaccessible page.
  void* allocate(size_t bytes);
  bool release(void* address);
  void release_all();
  uint64_t used() const { return used_; }
  uint64_t limit() const { return limit_; }

  bool owns(const void* address) const;  // whether the address is in the reserved range, allocated or not
  bool covers(const void* address, size_t bytes) const;
  // Describes an address within owns(): "4 bytes past the end of an allocation of 256 bytes".
  std::string describe(const void* address) const;

  // The caller holds the gate. Every thread can access open memory, so the emulator closes it when no job is left.
  void open();
  void close();
  // Checks the unused bytes on the allocations' pages. Returns a description of a changed byte, or an empty string.
  std::string check_ends();

  // From here to end_log, logs each page that is written, with its previous contents.
  void begin_log();
  bool note_write(void* address);  // for the fault handler: returns whether the fault was a logged write
  void end_log();

 private:
  struct Allocation {
    size_t bytes, pages;  // pages from `first`
    char* first;
    bool live;
  };
  using Allocations = std::map<const char*, Allocation>;
  Allocations::const_iterator before(const void* address) const;
  void protect(int protection);
  void retire(const char* begin, Allocation& allocation);

  unsigned device_;
  uint64_t limit_, used_ = 0;
  char *base_ = nullptr, *fresh_ = nullptr, *end_ = nullptr;
  bool open_ = false, logging_ = false;
  mutable std::mutex table_;  // guards allocations_; changes also hold the gate
  Allocations allocations_;
  std::vector<const char*> live_, ragged_;  // ragged: the allocations with unused bytes on their pages
};

// The pages of all devices written since begin_log. A signal handler fills the log, so nothing in it allocates.
struct WriteLog {
  static constexpr size_t kPages = 4096;
  struct Page {
    char* at;
    char before[kPage];
  };
  Page pages[kPages];
  size_t count = 0;
  bool full = false;  // too many pages were written: the log is unusable

  void clear();
  bool has(const char* page) const { return *slot(page); }
  void add(char* page);

 private:
  static constexpr size_t kSlots = 4 * kPages;  // a hash table by address
  const uint16_t* slot(const char* page) const;
  uint16_t slots_[kSlots];  // a page's number plus 1, or 0
};
WriteLog& write_log();

}  // namespace simt
