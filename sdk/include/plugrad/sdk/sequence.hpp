// The extension of sequence.h for authors of backends in C++: derive from Sequences as well, and override make_sequence.
//
//   class Npu final : public plugrad::Backend, public plugrad::Sequences {
//     static const void* extension(std::string_view name) noexcept {
//       return name == PLUGRAD_SEQUENCES ? &kSequences<Npu> : nullptr;
//     }
#pragma once
#include <plugrad/sdk/backend.hpp>
#include <plugrad/sdk/sequence.h>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

// Which calls of a sequence changed.
class Changes {
 public:
  explicit Changes(const uint64_t* bits) : bits_(bits) {}
  bool at(uint32_t call) const { return bits_[call / 64] >> call % 64 & 1; }

 private:
  const uint64_t* bits_;
};

// Thrown by a sequence one of whose kernels failed, and has reported why.
struct CallFailed {
  plugrad_status status;
};

// A sequence of a plugin. Its end is drop. The functions may throw, as in Backend.
class Sequence {
 public:
  Sequence() = default;
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  virtual ~Sequence() = default;
  virtual void run(uint64_t first, Changes changes) = 0;
};

class Sequences {
 public:
  virtual ~Sequences() = default;
  virtual std::unique_ptr<Sequence> make_sequence(Stream& stream, std::span<const plugrad_sequence_call> calls) = 0;
};

namespace detail {
// The object that plugrad_sequence* points to.
struct OpenSequence {
  const plugrad_host* host;
  std::unique_ptr<Sequence> sequence;
};
}  // namespace detail

template <class B> struct SequenceTrampolines {
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
  static plugrad_status make(plugrad_stream* stream, const plugrad_sequence_call* calls, uint32_t count,
                             plugrad_sequence** made) noexcept {
    OpenDevice& device = OpenDevice::of(stream);
    return on(device.host, [&] {
      auto& backend = static_cast<Sequences&>(static_cast<B&>(*device.backend));
      auto open = std::make_unique<detail::OpenSequence>();
      open->host = device.host;
      open->sequence = backend.make_sequence(*reinterpret_cast<Stream*>(stream), {calls, count});
      *made = reinterpret_cast<plugrad_sequence*>(open.release());
    });
  }
  static plugrad_status run(plugrad_sequence* sequence, uint64_t first, const uint64_t* changed) noexcept {
    auto& open = *reinterpret_cast<detail::OpenSequence*>(sequence);
    return on(open.host, [&] { open.sequence->run(first, Changes(changed)); });
  }
  static void drop(plugrad_sequence* sequence) noexcept { delete reinterpret_cast<detail::OpenSequence*>(sequence); }
};

template <class B, uint32_t least = 2>
inline constexpr plugrad_sequences kSequences{sizeof(plugrad_sequences), least, SequenceTrampolines<B>::make,
                                              SequenceTrampolines<B>::run, SequenceTrampolines<B>::drop};

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
