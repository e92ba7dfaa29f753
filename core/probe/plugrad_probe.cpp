// plugrad-probe: loads a plugin in a process of its own, before the core loads it. It tells the core through a pipe how far
// it came. Every effect of the plugin on this process is a finding. The program finds faults; it is not a sandbox.
#include <plugrad/sdk/driver.h>
#include <core/runtime/plugins/handshake.hpp>
#include <core/runtime/plugins/probe_record.hpp>

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
extern "C" int __lsan_is_turned_off() { return 1; }  // a plugin's leaks are conformance's business
#endif

namespace plugrad::probe {
namespace {

int core = -1;  // our end of the pipe
uint64_t nonce = 0;
const pid_t process = getpid();

// If the plugin's code forks and returns in the copy of this process, the copy reports nothing.
void tell(Step step, const std::string& refusal = "") {
  if (getpid() != process) _exit(0);
  Record record{nonce, step, !refusal.empty(), {}};
  refusal.copy(record.reason, sizeof record.reason - 1);
  if (write(core, &record, sizeof record) != sizeof record) _exit(1);
}
// Leaves the record in the buffer of a stream. The C library writes it at the end of exit, after all destructors.
void tell_at_last(Step step) {
  static char buffer[4 * sizeof(Record)];
  const Record record{nonce, step, 0, {}};
  FILE* stream = fdopen(core, "w");
  if (!stream || std::setvbuf(stream, buffer, _IOFBF, sizeof buffer)) _exit(1);
  if (std::fwrite(&record, sizeof record, 1, stream) != 1) _exit(1);
}
[[noreturn]] void refuse(Step step, const std::string& why) {
  tell(step, why);
  _exit(0);
}

void report(const plugrad_host*, plugrad_status, const char*) {}
void log(const plugrad_host*, uint32_t, const char*) {}
const void* extension(const plugrad_host*, const char*) { return nullptr; }
const plugrad_host kHost = {sizeof(plugrad_host), PLUGRAD_REVISION, plugrad_layouts, report, log, extension};

// Asks for the extension that the core asks for when it loads the file, and reads it.
void ask_for_driver(const plugrad_backend& table) {
  if (!table.get_extension) return;
  const auto* const driver = static_cast<const plugrad_driver*>(table.get_extension(PLUGRAD_DRIVER));
  if (driver && driver->struct_size >= sizeof *driver)
    static_cast<void>(*static_cast<const volatile uint32_t*>(&driver->brings));
}

// Leaves the device open, as the core does.
void open_device(const plugrad_backend& table, char** words) {
  std::vector<plugrad_option> items;
  for (char** each = words + 1; each[0] && each[1]; each += 2)
    items.push_back({sizeof(plugrad_option), 0, each[0], each[1]});
  const plugrad_options options{sizeof options, static_cast<uint32_t>(items.size()), sizeof(plugrad_option), items.data()};
  plugrad_device_info info{};
  info.struct_size = sizeof info;
  plugrad_device* device = nullptr;
  const auto index = static_cast<uint32_t>(std::strtoul(words[0], nullptr, 10));
  table.open(&kHost, index, &options, &device, &info);  // an orderly failure is the core's to report
}

template <class Entry> Entry entry_of(const char* path, const std::string& symbol, const char* what) {
  tell(Step::load);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) refuse(Step::load, dlerror());
  tell(Step::symbol);
  const auto entry = reinterpret_cast<Entry>(dlsym(library, symbol.c_str()));
  if (!entry) refuse(Step::symbol, no_entry_symbol(symbol, what));
  tell(Step::entry);
  return entry;
}

// Opens no group: a second start of an engine would disturb the job that its launcher started.
void probe_communicator(const char* path) {
  const auto entry = entry_of<plugrad_communicator_entry>(path, communicator_symbol(), "a communicator");
  if (const std::string why = negotiate(entry(&kHost)); !why.empty()) refuse(Step::entry, why);
}

void probe(const char* path, Depth depth, char** device) {
  const auto entry = entry_of<plugrad_backend_entry>(path, entry_symbol(), "a plugin");
  plugrad_backend table;
  if (const std::string why = negotiate(entry(&kHost), table); !why.empty()) refuse(Step::entry, why);
  ask_for_driver(table);
  if (std::strlen(table.version) > 1'000'000) refuse(Step::entry, "its version is longer than a million characters");
  if (depth == Depth::load) return;
  tell(Step::count);
  uint32_t devices = 0;
  table.count(&kHost, &devices);  // the core calls count as well, and reports an orderly failure
  if (depth == Depth::count) return;
  tell(Step::open);
  open_device(table, device);
}

}  // namespace
}  // namespace plugrad::probe

int main(int count, char** words) {
  using namespace plugrad::probe;
  const auto depth = static_cast<Depth>(count > 3 ? std::atoi(words[3]) : 0);
  if (count < 5 || (depth == Depth::open ? count % 2 : count != 5)) {
    std::fputs("plugrad-probe: the core library runs this program; see docs/loading.md\n", stderr);
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_dump{0, 0};
  setrlimit(RLIMIT_CORE, &no_dump);
  core = std::atoi(words[1]);
  nonce = std::strtoull(words[2], nullptr, 10);
  if (depth == Depth::communicator) probe_communicator(words[4]);
  else probe(words[4], depth, words + 5);
  tell(Step::exit);
  tell_at_last(Step::done);
  std::exit(0);
}
