// Shared ownership by a reference count inside the object.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace plugrad {

// The first base of every counted object.
struct Counted {
  std::atomic<uint32_t> refs{1};
};

// T's first base is Counted, and destroy(T*) noexcept exists; T may be incomplete here. As thread-safe as std::shared_ptr.
template <class T> class Ref {
 public:
  Ref() = default;
  explicit Ref(T* adopted) : p_(adopted) {}
  static Ref share(T* p) {
    counter(p).fetch_add(1, std::memory_order_relaxed);
    return Ref(p);
  }
  Ref(const Ref& other) : p_(other.p_) {
    if (p_) counter(p_).fetch_add(1, std::memory_order_relaxed);
  }
  Ref(Ref&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  Ref& operator=(const Ref& other) {
    Ref(other).swap(*this);
    return *this;
  }
  Ref& operator=(Ref&& other) noexcept {
    Ref(std::move(other)).swap(*this);
    return *this;
  }
  ~Ref() {
    if (p_ && last()) destroy(p_);
  }
  void swap(Ref& other) noexcept { std::swap(p_, other.p_); }
  T* get() const { return p_; }
  T* release() { return std::exchange(p_, nullptr); }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_; }

 private:
  // If a thread reads a count of 1, it owns the only reference, so no other thread can add a reference. This saves the
  // atomic write.
  bool last() const {
    return counter(p_).load(std::memory_order_acquire) == 1 || counter(p_).fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  static std::atomic<uint32_t>& counter(T* p) { return reinterpret_cast<Counted*>(p)->refs; }
  T* p_ = nullptr;
};

}  // namespace plugrad
