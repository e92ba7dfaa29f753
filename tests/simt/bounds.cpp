// The functions that code compiled with -fsanitize=alignment,bounds calls on a violation. The structures match those of the
// compiler's runtime library, which is not linked.
#include <tests/simt/block.hpp>
#include <tests/simt/device.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

struct Location {
  const char* file;
  uint32_t line, column;
};
struct Type {
  uint16_t kind, info;
  char name[1];  // variable length
};
struct Mismatch {
  Location location;
  const Type* type;
  unsigned char log_alignment, kind;
};
struct OutOfBounds {
  Location location;
  const Type *array, *index;
};

std::string text(const Location& at) {
  const std::string file = at.file;
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(at.line);
}

[[noreturn]] void fail(int error, const std::string& what) {
  if (simt::Block::current().running()) {
    simt::Block::current().blame(error, what);
    simt::Block::current().abandon();
  }
  std::fprintf(stderr, "simt: the host %s\n", what.c_str());
  std::abort();
}

std::string place_of(const void* address) {
  for (const simt::Device* device : simt::devices())
    if (device->memory.owns(address)) return ", at " + device->memory.describe(address);
  return {};
}

}  // namespace

extern "C" {

[[noreturn]] __attribute__((visibility("hidden"))) void __ubsan_handle_type_mismatch_v1_abort(const Mismatch* data,
                                                                                              const void* address) {
  fail(cudaErrorMisalignedAddress, "touches an address that is not aligned for its type " + std::string(data->type->name) +
                                       ", which needs " + std::to_string(1u << data->log_alignment) + " bytes, in " +
                                       text(data->location) + place_of(address));
}

[[noreturn]] __attribute__((visibility("hidden"))) void __ubsan_handle_out_of_bounds_abort(const OutOfBounds* data,
                                                                                           uintptr_t index) {
  fail(cudaErrorIllegalAddress, "index " + std::to_string(static_cast<int64_t>(index)) + " is outside of " +
                                    data->array->name + " in " + text(data->location));
}

}  // extern "C"
