// Device memory on the host: nobody may touch it but a kernel or a copy of the emulator, while it runs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace simt {

inline constexpr size_t kPage = 4096;

// Kernels and copies hold it, so they run one at a time; so do whoever allocates and frees.
std::recursive_mutex& gate();

class Memory {
 public:
  Memory(unsigned device, uint64_t limit);

  // Aligned to 256 bytes and poisoned; its end is the end of a page that is followed by one nobody may touch. Null: full.
  void* allocate(size_t bytes);
  bool release(void* address);
  void release_all();
  uint64_t used() const { return used_; }
  uint64_t limit() const { return limit_; }

  bool owns(const void* address) const;  // of its addresses, allocated or not
  bool covers(const void* address, size_t bytes) const;
  // What lies at an address that owns(): "4 bytes past the end of an allocation of 256 bytes".
  std::string describe(const void* address) const;

  // With the gate: who opens it lets everybody in, so the emulator closes it where no job is left.
  void open();
  void close();
  // Empty where the bytes beside allocations that share their pages are as they were; else which is not.
  std::string check_ends();

  // From here to the end of the log writes are noted: page by page, with what was there.
  void begin_log();
  bool note_write(void* address);  // for the handler of faults: was it a write to a page of the log?
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
  mutable std::mutex table_;  // of allocations_, which is changed with the gate held too
  Allocations allocations_;
  std::vector<const char*> live_, ragged_;  // ragged: with bytes beside them on their pages
};

// The pages that were written since begin_log, of all devices. A handler of signals fills it, so nothing in it allocates.
struct WriteLog {
  static constexpr size_t kPages = 4096;
  struct Page {
    char* at;
    char before[kPage];
  };
  Page pages[kPages];
  size_t count = 0;
  bool full = false;  // a page more was written: the log says nothing

  void clear();
  bool has(const char* page) const { return *slot(page); }
  void add(char* page);

 private:
  static constexpr size_t kSlots = 4 * kPages;  // a table by addresses
  const uint16_t* slot(const char* page) const;
  uint16_t slots_[kSlots];  // the number of a page and 1, or 0
};
WriteLog& write_log();

}  // namespace simt
