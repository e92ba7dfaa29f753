#include <sdk/conformance/worker.hpp>

#include <plugrad/sdk/driver.h>
#include <process/child.hpp>
#include <process/process_state.hpp>
#include <sdk/conformance/running.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <mutex>
#include <sstream>
#include <utility>

namespace plugrad::conformance {
namespace {
// Whether the plugin says that its driver installs signal handlers.
bool brings_handlers(const plugrad_backend& table) {
  const void* const found = table.get_extension ? table.get_extension(PLUGRAD_DRIVER) : nullptr;
  const auto* const driver = static_cast<const plugrad_driver*>(found);
  return driver && driver->struct_size >= sizeof *driver && driver->brings & PLUGRAD_DRIVER_SIGNALS;
}
}  // namespace

Worker::Worker(const std::string& file, const Settings& settings, Tell tell) : settings_(settings), tell_(std::move(tell)) {
  on_running([this](const std::string& what) { tell_({Say::running, {what}}); });
  on_log([this](const std::string& line) { tell_({Say::log, {line}}); });
  try {
    load(file);
  } catch (const Breach& breach) {
    tell_({Say::breach, {breach.what()}});
  } catch (const Unloadable& error) {
    tell_({Say::unusable, {error.what()}});
  } catch (...) {
    tell_({Say::breach, {"a function of the plugin threw " + exception_text()}});
  }
}

Worker::~Worker() {
  on_running({});
  on_log({});
}

void Worker::load(const std::string& file) {
  const plugrad_host* host = make_host();
  ProcessState before;
  note_running("loading");
  plugin_ = load_plugin(file, host);
  const plugrad_backend& table = *plugin_.table;
  if (!table.count || !table.open || !table.resolve)
    throw Unloadable(file + ": count, open or resolve is null in the table");
  const std::string name = readable(table.name ? table.name : ""), version = readable(table.version ? table.version : "");
  note_running("count");
  const Counted counted = count_devices(plugin_, host);
  if (!counted.outcome.ok()) throw Breach("count returned " + counted.outcome.text());
  if (counted.devices == 0) {
    if (counted.reason.empty()) throw Breach("count returned 0 devices without a reason: report one with PLUGRAD_OK");
    return tell_({Say::no_device, {name, version, counted.reason}});
  }
  if (settings_.device >= counted.devices)
    throw Unloadable("--device " + std::to_string(settings_.device) + ": the plugin has " + std::to_string(counted.devices) +
                     " devices, numbered from 0");
  note_running("open");
  device_ = std::make_unique<Device>(plugin_.table, host, settings_.device, settings_.options);
  session_.reset(new Session{plugin_, host, settings_, counted.devices, *device_});
  if (const std::string changed = before.restore(brings_handlers(table)); !changed.empty()) tell_({Say::changed, {changed}});
  tell_({Say::device,
         {name, version,
          readable(device_->info().name) + (device_->host_memory() ? ", host memory" : "") +
              (device_->async() ? ", streams" : "") + ", alignment " + std::to_string(device_->info().alignment)}});
}

void Worker::run(const Case& one) {
  Tally tally(settings_.verbose ? 1000 : 20);
  ProcessState before;
  run_case(one, *session_, tally);
  if (const std::string changed = before.restore(); !changed.empty()) tell_({Say::changed, {changed}});
  tell_(message_of(result_of(tally, std::exchange(session_->matrix, {}))));
}

void Worker::leave() {
  note_running("the end of the process, with work in flight");
  try {
    leave_in_flight(*session_);
  } catch (const Breach&) {  // a case about streams says so
  }
}

void Worker::tell_missing() { tell_({Say::missing, missing_of_tier0(*session_)}); }

void Worker::tell(void (*write)(std::ostream& out, Session& session)) {
  std::ostringstream text;
  write(text, *session_);
  tell_({Say::text, {text.str()}});
}

namespace {

// Moves an open file to a new descriptor and puts the replacement in its place: the plugin must neither read the worker's
// commands nor write into its messages by mistake. Returns the new descriptor.
int moved(int descriptor, const char* replacement) {
  const int ours = fcntl(descriptor, F_DUPFD_CLOEXEC, 100);
  const int other = open(replacement, O_RDWR | O_CLOEXEC);
  dup2(other, descriptor);
  close(other);
  return ours;
}

void write_all(int to, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t put = write(to, bytes.data() + done, bytes.size() - done);
    if (put <= 0) _exit(1);  // the supervisor is gone
    done += static_cast<size_t>(put);
  }
}

// A plugin's worker threads may log while a case runs.
std::mutex& telling() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

}  // namespace

void serve(const std::string& file, const Settings& settings) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_dump{0, 0};
  setrlimit(RLIMIT_CORE, &no_dump);
  const int in = moved(STDIN_FILENO, "/dev/null"), out = moved(Child::kRecords, "/dev/null");
  Worker worker(file, settings, [out](const Message& message) {
    const std::scoped_lock lock(telling());
    write_all(out, encoded(message));
  });
  if (!worker.is_ready()) return;
  FILE* commands = fdopen(in, "r");
  char line[64];
  while (commands && std::fgets(line, sizeof line, commands)) {
    const std::string command(line);
    if (command == "missing\n") worker.tell_missing();
    else if (command == "kernels\n") worker.tell(write_kernels);
    else if (command == "perf\n") worker.tell(write_perf);
    else if (command == "leave\n") return worker.leave();
    else worker.run(all_cases().at(std::stoul(command)));
  }
}

}  // namespace plugrad::conformance
