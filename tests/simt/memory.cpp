#include <tests/simt/memory.hpp>

#include <tests/simt/execution.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace simt {
namespace {
constexpr size_t kAlignment = 256;
constexpr unsigned char kPoison = 0xff, kCanary = 0xcb;
constexpr size_t kPoisoned = 64 << 20;               // the most bytes poisoned per allocation; the rest reads as 0
constexpr size_t kMapped = 64 << 10;                 // from this size on poison is mapped, not written
constexpr size_t kAddresses = size_t{1} << 38;       // reserved address space: freed addresses are not soon reused
constexpr size_t kFewerAddresses = size_t{1} << 33;  // used if the larger reservation fails

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

char* reserve(size_t bytes, void* at = nullptr) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* memory = mmap(at, bytes, PROT_NONE, at ? kFlags | MAP_FIXED : kFlags, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

// Returns a memory file that holds at least this many bytes of poison, or -1 if the system does not provide one.
int poison_file(size_t bytes) {
  static const int file = memfd_create("poison", MFD_CLOEXEC);
  static size_t written = 0;
  static const std::vector<unsigned char> piece(1 << 20, kPoison);
  while (file >= 0 && written < bytes) {
    const ssize_t more = write(file, piece.data(), piece.size());
    if (more <= 0) return -1;
    written += static_cast<size_t>(more);
  }
  return file;
}

// Makes reserved pages accessible and fills them with poison. A large allocation maps the file of poison: untouched pages
// then take no memory, and changes of their protection are cheap.
bool poison(char* pages, size_t bytes) {
  const size_t poisoned = std::min(bytes, kPoisoned);
  if (bytes > poisoned && mprotect(pages + poisoned, bytes - poisoned, PROT_READ | PROT_WRITE)) return false;
  if (poisoned >= kMapped)
    return mmap(pages, poisoned, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, poison_file(poisoned),
                0) != MAP_FAILED;
  if (mprotect(pages, poisoned, PROT_READ | PROT_WRITE)) return false;
  std::memset(pages, kPoison, poisoned);
  return true;
}
}  // namespace

std::recursive_mutex& gate() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

WriteLog& write_log() {
  static auto* log = new WriteLog;
  return *log;
}

void WriteLog::clear() {
  count = 0;
  full = false;
  std::fill_n(slots_, kSlots, uint16_t{0});
}

const uint16_t* WriteLog::slot(const char* page) const {
  size_t i = reinterpret_cast<uintptr_t>(page) / kPage % kSlots;
  while (slots_[i] && pages[slots_[i] - 1].at != page) i = (i + 1) % kSlots;
  return &slots_[i];
}

void WriteLog::add(char* page) {
  const size_t i = static_cast<size_t>(slot(page) - slots_);
  pages[count].at = page;
  std::memcpy(pages[count].before, page, kPage);
  slots_[i] = static_cast<uint16_t>(++count);
}

Memory::Memory(unsigned device, uint64_t limit) : device_(device), limit_(limit) {
  size_t size = kAddresses;
  base_ = reserve(size);
  if (!base_) base_ = reserve(size = kFewerAddresses);
  if (!base_) throw std::bad_alloc();
  fresh_ = base_;
  end_ = base_ + size;
}

void* Memory::allocate(size_t bytes) {
  catch_faults();
  const std::lock_guard held(gate());
  const size_t size = rounded(bytes, kAlignment), pages = rounded(size, kPage);
  if (bytes > limit_ || used_ + size > limit_ || pages + kPage > static_cast<size_t>(end_ - fresh_)) return nullptr;
  char* first = fresh_;
  char* begin = first + (pages - size);
  if (!poison(first, pages)) return nullptr;
  std::memset(first, kCanary, static_cast<size_t>(begin - first));
  std::memset(begin + bytes, kCanary, size - bytes);
  if (!open_) mprotect(first, pages, PROT_NONE);
  fresh_ += pages + kPage;
  used_ += size;
  const std::lock_guard lock(table_);
  allocations_.emplace(begin, Allocation{bytes, pages, first, true});
  live_.push_back(begin);
  if (size != pages || size != bytes) ragged_.push_back(begin);
  return begin;
}

void Memory::retire(const char* begin, Allocation& allocation) {
  // Reserves the pages again, so that the system merges them with adjacent reserved ranges: the number of ranges is limited.
  reserve(allocation.pages, allocation.first);
  allocation.live = false;
  used_ -= rounded(allocation.bytes, kAlignment);
  std::erase(live_, begin);
  std::erase(ragged_, begin);
}

bool Memory::release(void* address) {
  const std::lock_guard held(gate());
  const std::lock_guard lock(table_);
  const auto found = allocations_.find(static_cast<const char*>(address));
  if (found == allocations_.end() || !found->second.live) return false;
  retire(found->first, found->second);
  return true;
}

void Memory::release_all() {
  const std::lock_guard held(gate());
  const std::lock_guard lock(table_);
  for (auto& [begin, allocation] : allocations_)
    if (allocation.live) retire(begin, allocation);
}

bool Memory::owns(const void* address) const { return address >= base_ && address < end_; }

Memory::Allocations::const_iterator Memory::before(const void* address) const {
  auto next = allocations_.upper_bound(static_cast<const char*>(address));
  return next == allocations_.begin() ? allocations_.end() : --next;
}

bool Memory::covers(const void* address, size_t bytes) const {
  const std::lock_guard lock(table_);
  const auto found = before(address);
  if (found == allocations_.end() || !found->second.live) return false;
  const size_t offset = static_cast<size_t>(static_cast<const char*>(address) - found->first);
  return offset <= found->second.bytes && bytes <= found->second.bytes - offset;
}

std::string Memory::describe(const void* address) const {
  const std::lock_guard lock(table_);
  const auto* at = static_cast<const char*>(address);
  const auto found = before(address);
  const std::string device = " on device " + std::to_string(device_);
  const auto allocation = [](size_t bytes) { return "an allocation of " + std::to_string(bytes) + " bytes"; };
  const auto next = allocations_.upper_bound(at);
  if (next != allocations_.end() && at >= next->second.first)
    return std::to_string(next->first - at) + " bytes before " + allocation(next->second.bytes) + device;
  if (found != allocations_.end()) {
    const Allocation& one = found->second;
    const size_t offset = static_cast<size_t>(at - found->first);
    if (!one.live && offset < rounded(one.bytes, kAlignment))
      return "byte " + std::to_string(offset) + " of " + allocation(one.bytes) + " that was freed" + device;
    if (offset < one.bytes) return "byte " + std::to_string(offset) + " of " + allocation(one.bytes) + device;
    if (offset < one.bytes + 2 * kPage)
      return std::to_string(offset - one.bytes) + " bytes past the end of " + allocation(one.bytes) + device;
  }
  return "an address that was never allocated" + device;
}

void Memory::protect(int protection) {
  for (const char* begin : live_) {
    const Allocation& one = allocations_.find(begin)->second;
    mprotect(one.first, one.pages, protection);
  }
}

void Memory::open() {
  if (open_) return;
  open_ = true;
  protect(PROT_READ | PROT_WRITE);
}

void Memory::close() {
  if (!open_) return;
  open_ = false;
  protect(PROT_NONE);
}

std::string Memory::check_ends() {
  const auto damaged = [](const char* from, const char* to) {
    return std::find_if(from, to, [](char c) { return static_cast<unsigned char>(c) != kCanary; });
  };
  for (const char* begin : ragged_) {
    const Allocation& one = allocations_.find(begin)->second;
    const char *front = begin - std::min<ptrdiff_t>(kAlignment, begin - one.first), *end = begin + one.bytes;
    const char *after = begin + rounded(one.bytes, kAlignment), *hit = damaged(end, after);
    if (hit == after) hit = damaged(front, begin);
    if (hit == begin) continue;
    const std::string what = describe(hit);
    std::memset(const_cast<char*>(front), kCanary, static_cast<size_t>(begin - front));
    std::memset(const_cast<char*>(end), kCanary, static_cast<size_t>(after - end));
    return what;
  }
  return {};
}

void Memory::begin_log() {
  logging_ = true;
  protect(PROT_READ);
}

bool Memory::note_write(void* address) {
  if (!logging_ || !owns(address)) return false;
  char* page = base_ + (static_cast<char*>(address) - base_) / static_cast<ptrdiff_t>(kPage) * static_cast<ptrdiff_t>(kPage);
  const auto found = before(page + kPage - 1);  // the allocation may begin later on this page
  if (found == allocations_.end() || !found->second.live) return false;
  const Allocation& one = found->second;
  if (page < one.first || page >= one.first + one.pages) return false;
  WriteLog& log = write_log();
  if (log.has(page)) return false;  // the page is already open: this is another fault
  if (log.count == WriteLog::kPages) {
    log.full = true;
    end_log();
    return true;
  }
  log.add(page);
  mprotect(page, kPage, PROT_READ | PROT_WRITE);
  return true;
}

void Memory::end_log() {
  if (!logging_) return;
  logging_ = false;
  protect(PROT_READ | PROT_WRITE);
}

}  // namespace simt
