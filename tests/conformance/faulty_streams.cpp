// The plugin sim with one planted bug in its extensions for native streams and for lists. PLUGRAD_BUG names the bug.
#include <plugrad/sdk/list.h>
#include <plugrad/sdk/native.h>
#include <plugrad/sim.hpp>

#include <cstdlib>
#include <deque>
#include <string_view>
#include <vector>

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

// These functions pass the stream's own handle: they use the number, but order no work.
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

const plugrad_lists& sound_lists() {
  static const plugrad_lists& table =
      *static_cast<const plugrad_lists*>(plugrad_sim_backend(nullptr)->get_extension(PLUGRAD_LISTS));
  return table;
}

// Every run of the list repeats the operands with which it was made.
plugrad_status frozen(plugrad_stream* stream, const plugrad_list_call* calls, uint32_t count, uint32_t flags,
                      plugrad_list** made) {
  static std::deque<plugrad_view> views;
  static std::deque<std::vector<const plugrad_view*>> pointers;
  static std::deque<plugrad_op> ops;
  std::vector<plugrad_list_call> list;
  for (uint32_t i = 0; i < count; ++i) {
    plugrad_op& op = ops.emplace_back(*calls[i].op);
    pointers.emplace_back();
    for (int k = 0; k < op.outputs + op.inputs; ++k) pointers.back().push_back(&views.emplace_back(*op.views[k]));
    op.views = pointers.back().data();
    list.push_back({calls[i].kernel, &op});
  }
  return sound_lists().make(stream, list.data(), count, flags, made);
}
plugrad_status without_last(plugrad_stream* stream, const plugrad_list_call* calls, uint32_t count, uint32_t flags,
                            plugrad_list** made) {
  return sound_lists().make(stream, calls, count > 1 ? count - 1 : count, flags, made);
}
plugrad_status run_later(plugrad_list* list, uint64_t first, const uint64_t* changed) {
  return sound_lists().run(list, first + 1, changed);
}

std::string_view bug_of_environment() {
  const char* name = std::getenv("PLUGRAD_BUG");
  return name ? name : "";
}

plugrad_lists lists_with_bug() {
  plugrad_lists table = sound_lists();
  const std::string_view bug = bug_of_environment();
  if (bug == "list_without_drop") table.drop = nullptr;
  if (bug == "list_frozen") table.make = frozen;
  if (bug == "list_without_last") table.make = without_last;
  if (bug == "list_of_other_numbers") table.run = run_later;
  return table;
}

plugrad_native with_bug() {
  plugrad_native table = sound();
  const std::string_view bug = bug_of_environment();
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
  static const plugrad_lists lists = lists_with_bug();
  if (std::string_view(name) == PLUGRAD_NATIVE) return &native;
  return std::string_view(name) == PLUGRAD_LISTS ? &lists : plugrad_sim_backend(nullptr)->get_extension(name);
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
