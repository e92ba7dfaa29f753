// A program that tests run in private trees: it executes the commands in its arguments in order and prints their results,
// with fields separated by tabs.
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/log.hpp>
#include <plugrad/runtime/policy.hpp>
#include <plugrad/runtime/runtime.hpp>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace plugrad {
namespace {

void print(std::initializer_list<std::string> fields) {
  std::string line;
  for (const std::string& field : fields) line += (line.empty() ? "" : "\t") + field;
  for (char& c : line)
    if (c == '\n') c = ' ';
  std::puts(line.c_str());
}

void print_record(const char* kind, const PluginRecord& r) {
  print({kind, r.path, stage_name(r.stage), r.reason, r.name, r.version, std::to_string(r.revision),
         std::to_string(r.devices), r.notes});
}

OptionList parse_options(std::string text) {
  OptionList options;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string item = text.substr(0, end);
    options.emplace_back(item.substr(0, item.find('=')), item.substr(item.find('=') + 1));
    text.erase(0, end + 1);
  }
  return options;
}

void compute(const std::string& name) {
  const Tensor one = full({3}, 1.5, DType::f32, Device(name)), two = full({3}, 2, DType::f32, Device(name));
  print({"value", std::to_string(add(one, two).to_vector<float>()[2])});
}

// Allocates blocks of a megabyte until memory is exhausted, releases them, and allocates one block again.
void exhaust(const std::string& name) {
  const Device device(name);
  std::vector<Tensor> held;
  try {
    while (held.size() < 1000) held.push_back(full({1 << 18}, 1, DType::f32, device));
  } catch (const Error& error) {
    print({"exhausted", std::to_string(static_cast<int>(error.code())), std::to_string(held.size()), error.what()});
  }
  held.clear();
  print({"again", std::to_string(full({1 << 18}, 7, DType::f32, device).to_vector<float>().back())});
}

void print_device(const std::string& name) {
  const Device d(name);
  print({"device", d.name(), d.description(), d.plugin()});
}

void fork_and_compute(const std::string& name) {
  std::fflush(nullptr);
  if (const pid_t child = fork()) {
    int status = 0;
    waitpid(child, &status, 0);
    print({"forked", std::to_string(status)});
  } else {
    std::_Exit(add(full({3}, 1.5, DType::f32, Device(name)), 2).to_vector<float>()[2] == 3.5f ? 0 : 1);
  }
}

// Prints the state of the process that a plugin must not change.
void print_state() {
  volatile float denormal = 1e-39f, half = 0.5f;
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  struct sigaction fault, interrupt;
  sigaction(SIGSEGV, nullptr, &fault);
  sigaction(SIGINT, nullptr, &interrupt);
  const mode_t files = umask(022);
  umask(files);
  char directory[4096] = "";
  print({"state", std::to_string(std::fegetround()), denormal * half == 0 ? "flushes" : "keeps denormals",
         std::to_string(sigismember(&mask, SIGTERM)), fault.sa_handler == SIG_DFL ? "default" : "handled",
         interrupt.sa_handler == SIG_DFL ? "default" : "handled", std::to_string(files), std::setlocale(LC_ALL, nullptr),
         getcwd(directory, sizeof directory) ? directory : "?"});
}

using Command = std::function<void(const std::string&)>;
const std::map<std::string, Command> kCommands = {
    {"records",
     [](const std::string&) {
       for (const PluginRecord& each : plugins()) print_record("record", each);
     }},
    {"directories",
     [](const std::string&) {
       for (const std::string& each : plugin_directories()) print({"directory", each});
     }},
    {"names",
     [](const std::string&) {
       for (const std::string& each : device_names()) print({"name", each});
     }},
    {"add", add_plugin_directory},
    {"load", [](const std::string& path) { print_record("loaded", load_plugin(path)); }},
    {"device", print_device},
    {"has", [](const std::string& name) { print({"has", has_device(name) ? "yes" : "no"}); }},
    {"compute", compute},
    {"default", [](const std::string&) { print({"device", default_device().name()}); }},
    {"fork", fork_and_compute},
    {"exhaust", exhaust},
    {"log",
     [](const std::string& level) {
       set_log_level(level == "info" ? LogLevel::info : LogLevel::warning);
       set_log_sink([](LogLevel at, std::string_view line) {
         print({"log", std::to_string(static_cast<int>(at)), std::string(line)});
       });
     }},
    {"say",
     [](const std::string& line) {
       log(LogLevel::info, line);
       log(LogLevel::warning, line);
     }},
    {"extension",
     [](const std::string& backend) { print({"extension", backend_extension(backend, "none/0") ? "some" : "none"}); }},
    {"state", [](const std::string&) { print_state(); }},
    {"memory", [](const std::string& name) { print({"memory", std::to_string(Device(name).physical_memory().second)}); }},
    {"sync", [](const std::string& name) { Device(name).sync(); }},
    {"trim", [](const std::string& name) { print({"trimmed", Device(name).trim() ? "some" : "none"}); }},
    {"descriptors",
     [](const std::string&) {
       const std::filesystem::directory_iterator all("/proc/self/fd");
       print({"descriptors", std::to_string(std::distance(begin(all), end(all)))});
     }},
    {"quarantine",
     [](const std::string&) {
       for (const QuarantinedPlugin& each : quarantined_plugins()) print({"quarantined", each.path, each.reason});
     }},
    {"clear",
     [](const std::string& path) { print({"cleared", std::to_string(clear_quarantine(path == "-" ? "" : path))}); }},
    {"fallback", [](const std::string&) { print({"fallback", std::to_string(static_cast<int>(fallback()))}); }},
    {"options",
     [](const std::string& text) {
       const size_t space = text.find(' ');
       set_device_options(text.substr(0, space), parse_options(text.substr(space + 1)));
     }},
    {"go",
     [](const std::string& directory) {
       if (chdir(directory.c_str())) print({"error", "0", "chdir"});
     }},
};
}  // namespace
}  // namespace plugrad

// probe COMMAND ARGUMENT ...: "-" for a command without argument. Prints the error of a command that throws.
int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto command = plugrad::kCommands.find(argv[i]);
    if (command == plugrad::kCommands.end()) return 2;
    try {
      command->second(argv[i + 1]);
    } catch (const plugrad::Error& error) {  // nothing else may leave the library
      plugrad::print({"error", std::to_string(static_cast<int>(error.code())), error.what()});
    }
  }
  return 0;
}
