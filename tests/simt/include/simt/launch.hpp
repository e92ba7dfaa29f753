// The launch of a kernel. The queue stores the arguments by value.
#pragma once
#include <simt/vectors.hpp>

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

typedef struct CUstream_st* cudaStream_t;

namespace simt {

struct Kernel {
  const char* name;       // the name in the source
  const char* signature;  // with the types of its parameters
  const void* function;
  dim3 grid, block;
  size_t dynamic_bytes;
  void (*call)(const void* frame);  // runs one GPU thread
  std::shared_ptr<const void> frame;
};

// Queues the kernel, or refuses it with an error that cudaGetLastError returns, as after <<<>>>.
void submit(Kernel kernel, cudaStream_t stream);

template <class... P> struct Frame {
  void (*function)(P...);
  std::tuple<P...> arguments;
  static void call(const void* frame) {
    const auto* self = static_cast<const Frame*>(frame);
    std::apply(self->function, self->arguments);
  }
};

template <class... P> constexpr const char* signature_of() { return __PRETTY_FUNCTION__; }

template <class... P, class... A>
void launch(const char* name, void (*function)(P...), dim3 grid, dim3 block, size_t dynamic_bytes, cudaStream_t stream,
            A&&... arguments) {
  static_assert((std::is_trivially_copyable_v<P> && ...), "a kernel's arguments are copied as bytes");
  static_assert((sizeof(P) + ... + 0) <= 4096, "a kernel's arguments are 4096 bytes at most");
  auto frame = std::make_shared<const Frame<P...>>(Frame<P...>{function, {static_cast<P>(std::forward<A>(arguments))...}});
  submit({name, signature_of<P...>(), reinterpret_cast<const void*>(function), grid, block, dynamic_bytes, Frame<P...>::call,
          std::move(frame)},
         stream);
}

}  // namespace simt

#define PLUGRAD_SIMT 1
#define PLUGRAD_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  ::simt::launch(#kernel, kernel, grid, block, shared_bytes, stream __VA_OPT__(, ) __VA_ARGS__)
#define PLUGRAD_DYNAMIC_SHARED(type, name) type* name = static_cast<type*>(::simt::dynamic_shared())
