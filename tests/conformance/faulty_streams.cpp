// The plugin sim with one planted bug in its extension for native streams, which PLUGRAD_BUG names.
#include <plugrad/sdk/native.h>
#include <plugrad/sim.hpp>

#include <cstdlib>
#include <string_view>

namespace {

const plugrad_native& sound() {
  static const plugrad_native& table =
      *static_cast<const plugrad_native*>(plugrad_sim_backend(nullptr)->get_extension(PLUGRAD_NATIVE));
  return table;
}

plugrad_status one_handle(plugrad_stream*, void** native) {
  static int handle;
  *native = &handle;
  return PLUGRAD_OK;
}

// These pass on the stream's own handle: they use up the number but order nothing.
plugrad_status unordered_wait(plugrad_stream* stream, uint64_t number, void*) {
  void* own = nullptr;
  sound().handle(stream, &own);
  return sound().wait(stream, number, own);
}
plugrad_status unordered_signal(plugrad_stream* stream, uint64_t number, void*) {
  void* own = nullptr;
  sound().handle(stream, &own);
  return sound().signal(stream, number, own);
}

plugrad_status early(plugrad_stream*, uint64_t, void (*callback)(void*), void* context) {
  callback(context);
  return PLUGRAD_OK;
}
plugrad_status twice(plugrad_stream* stream, uint64_t number, void (*callback)(void*), void* context) {
  const plugrad_status status = sound().notify(stream, number, callback, context);
  return status ? status : sound().notify(stream, number, callback, context);
}
plugrad_status lost_if_over(plugrad_stream* stream, uint64_t number, void (*callback)(void*), void* context) {
  uint64_t done = 0;
  plugrad_sim_backend(nullptr)->completed(stream, &done);
  return done >= number && number ? PLUGRAD_OK : sound().notify(stream, number, callback, context);
}
plugrad_status future(plugrad_stream* stream, uint64_t number, void (*callback)(void*), void* context) {
  if (const plugrad_status status = sound().notify(stream, number, callback, context); status != PLUGRAD_INVALID)
    return status;
  return PLUGRAD_OK;
}

plugrad_native with_bug() {
  plugrad_native table = sound();
  const char* name = std::getenv("PLUGRAD_BUG");
  const std::string_view bug = name ? name : "";
  if (bug == "null_function") table.signal = nullptr;
  if (bug == "one_handle") table.handle = one_handle;
  if (bug == "unordered_wait") table.wait = unordered_wait;
  if (bug == "unordered_signal") table.signal = unordered_signal;
  if (bug == "notice_early") table.notify = early;
  if (bug == "notice_twice") table.notify = twice;
  if (bug == "notice_lost") table.notify = lost_if_over;
  if (bug == "notice_of_future") table.notify = future;
  return table;
}

const void* get_extension(const char* name) {
  static const plugrad_native native = with_bug();
  return std::string_view(name) == PLUGRAD_NATIVE ? &native : plugrad_sim_backend(nullptr)->get_extension(name);
}

plugrad_backend table_with_bug(const plugrad_host* host) {
  plugrad_backend table = *plugrad_sim_backend(host);
  table.get_extension = get_extension;
  return table;
}

}  // namespace

extern "C" PLUGRAD_EXPORT const plugrad_backend* plugrad_backend_v0(const plugrad_host* host) {
  static const plugrad_backend table = table_with_bug(host);
  return &table;
}
