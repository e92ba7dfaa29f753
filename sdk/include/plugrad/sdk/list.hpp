// The extension of list.h for authors of backends in C++: derive from CallLists as well, and override make_list, and batches
// where the device gains from batches.
//
//   class Npu final : public plugrad::Backend, public plugrad::CallLists {
//     static const void* extension(std::string_view name) noexcept {
//       return name == PLUGRAD_LISTS ? &kLists<Npu> : nullptr;
//     }
#pragma once
#include <plugrad/sdk/list.h>
#include <plugrad/sdk/backend.hpp>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

// The changed calls of a list since its last run. A list with the flag ONCE has no changed calls.
class Changes {
 public:
  explicit Changes(const uint64_t* bits) : bits_(bits) {}
  bool at(uint32_t call) const { return bits_ && bits_[call / 64] >> call % 64 & 1; }

 private:
  const uint64_t* bits_;
};

// A list throws this after one of its kernels failed and reported why.
struct CallFailed {
  plugrad_status status;
};

// A list of a plugin. Its destructor is drop. The functions may throw, as in Backend.
class CallList {
 public:
  CallList() = default;
  CallList(const CallList&) = delete;
  CallList& operator=(const CallList&) = delete;
  virtual ~CallList() = default;
  virtual void run(uint64_t first, Changes changes) = 0;
};

class CallLists {
 public:
  virtual ~CallLists() = default;
  // flags: PLUGRAD_LIST_*. Throw UNSUPPORTED for a kind of lists not supported by the device.
  virtual std::unique_ptr<CallList> make_list(Stream& stream, std::span<const plugrad_list_call> calls, uint32_t flags) = 0;
  // Whether the device gains from batches of this kernel.
  virtual bool batches(const plugrad_kernel&) const noexcept { return false; }
};

namespace detail {
// A plugrad_list* points to this object.
struct OpenCallList {
  const plugrad_host* host;
  std::unique_ptr<CallList> list;
};
}  // namespace detail

template <class B> struct CallListTrampolines {
  template <class Body> static plugrad_status on(const plugrad_host* host, Body body) noexcept {
    plugrad_status of_call = PLUGRAD_OK;
    const plugrad_status own = guarded(host, [&] {
      try {
        body();
      } catch (const CallFailed& failed) {
        of_call = failed.status;
      }
    });
    return own ? own : of_call;
  }
  static uint32_t batches(plugrad_device* device, const plugrad_kernel* kernel) noexcept {
    return static_cast<const CallLists&>(backend_of<B>(device)).batches(*kernel);
  }
  static plugrad_status make(plugrad_stream* stream, const plugrad_list_call* calls, uint32_t count, uint32_t flags,
                             plugrad_list** made) noexcept {
    OpenDevice& device = OpenDevice::of(stream);
    return on(device.host, [&] {
      auto& backend = static_cast<CallLists&>(static_cast<B&>(*device.backend));
      auto open = std::make_unique<detail::OpenCallList>();
      open->host = device.host;
      open->list = backend.make_list(*reinterpret_cast<Stream*>(stream), {calls, count}, flags);
      *made = reinterpret_cast<plugrad_list*>(open.release());
    });
  }
  static plugrad_status run(plugrad_list* list, uint64_t first, const uint64_t* changed) noexcept {
    auto& open = *reinterpret_cast<detail::OpenCallList*>(list);
    return on(open.host, [&] { open.list->run(first, Changes(changed)); });
  }
  static void drop(plugrad_list* list) noexcept { delete reinterpret_cast<detail::OpenCallList*>(list); }
};

template <class B, uint32_t least = 2>
inline constexpr plugrad_lists kLists{sizeof(plugrad_lists),           least,
                                      CallListTrampolines<B>::batches, CallListTrampolines<B>::make,
                                      CallListTrampolines<B>::run,     CallListTrampolines<B>::drop};

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
