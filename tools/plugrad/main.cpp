// plugrad: lists devices, and trains and evaluates networks on them.
#include <plugrad/sdk/abi.h>
#include <plugrad/distributed/process_group.hpp>
#include <plugrad/runtime/device.hpp>
#include <tools/plugrad/commands.hpp>
#include <tools/plugrad/json.hpp>

#include <csignal>
#include <exception>
#include <iostream>

namespace {

using plugrad::tool::Arguments;
using plugrad::tool::UsageError;

constexpr int kFailure = 1, kMisuse = 2;

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Arguments& arguments);
};

constexpr Command kCommands[] = {
    {"backends", "the plugins that were found, and why others were refused", plugrad::tool::backends_command},
    {"devices", "the devices of these plugins", plugrad::tool::devices_command},
    {"train", "train a network, with checkpoints, a loss curve and results", plugrad::tool::train_command},
    {"eval", "loss and accuracy of a checkpoint", plugrad::tool::eval_command},
    {"run", "run an ONNX model, or a saved model: a compiled forward pass in a file", plugrad::tool::run_command},
    {"export", "write a saved model as an ONNX model", plugrad::tool::export_command},
    {"launch", "start processes that train together", plugrad::tool::launch_command},
    {"trial", "train three small models on a device, or on a plugin's file", plugrad::tool::trial_command},
    {"advise", "say which ops of a program a device lacks", plugrad::tool::advise_command},
    {"new-plugin", "write the project of a backend plugin", plugrad::tool::new_plugin_command},
};

int print_program_help() {
  std::cout << "usage: plugrad COMMAND [options]\n\ncommands:\n";
  for (const Command& command : kCommands) {
    std::cout << "  " << command.name << std::string(12 - std::string(command.name).size(), ' ') << command.summary << "\n";
  }
  std::cout << "\n  --version   this program's version and the plugin ABI's\n  --help      this text; after a command: its "
               "options\n"
            << "  --json      with any of these: JSON on stdout\n\nexamples:\n  plugrad backends --verbose\n"
            << "  plugrad train --data fashion-mnist --device cpu\n  plugrad train --help\n\n"
            << "status: 0 done, 1 failed, 2 misused, 130 interrupted (training was saved)\n";
  return 0;
}

int print_version(bool json) {
  if (json) {
    const auto version = plugrad::tool::Json::object({{"version", PLUGRAD_VERSION},
                                                      {"abi", static_cast<int>(PLUGRAD_ABI_MAJOR)},
                                                      {"revision", static_cast<int>(PLUGRAD_REVISION)}});
    std::cout << version.pretty() << "\n";
  } else {
    std::cout << "plugrad " << PLUGRAD_VERSION << " (plugin ABI v" << PLUGRAD_ABI_MAJOR << ", revision " << PLUGRAD_REVISION
              << ")\n";
  }
  return 0;
}

int dispatch(Arguments arguments) {
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  const bool is_launch = !arguments.empty() && arguments.front() == "launch";  // its words may be another program's
  const bool json = !is_launch && std::erase(arguments, "--json") > 0;
  if (arguments.empty()) {
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    throw UsageError("there is no command; expected one of " + known + " (see plugrad --help)");
  }
  const std::string first = arguments.front();
  if (first == "--help" || first == "-h" || first == "help") return print_program_help();
  if (first == "--version") return print_version(json);
  for (const Command& command : kCommands) {
    if (first != command.name) continue;
    arguments.erase(arguments.begin());
    if (json) arguments.emplace_back("--json");
    return command.run(arguments);
  }
  names.insert(names.end(), {"--version", "--help"});
  const char* kind = first.starts_with("-") ? "unknown option '" : "unknown command '";
  throw UsageError(kind + first + "'" + plugrad::tool::suggestion(first, names) + " (see plugrad --help)");
}

int complain(const std::exception& error, int status) {
  std::cerr << "plugrad: " << plugrad::tool::one_line(error.what()) << std::endl;
  return status;
}

int run(int count, char** words) {
  try {
    const int status = dispatch(Arguments(words + 1, words + count));
    if (!std::cout.flush()) throw std::runtime_error("cannot write to standard output");
    return status;
  } catch (const UsageError& error) {
    return complain(error, kMisuse);
  } catch (const std::bad_alloc&) {
    plugrad::distributed::abort_process_group("out of memory");
    return complain(std::runtime_error("out of memory"), kFailure);
  } catch (const std::exception& error) {
    plugrad::distributed::abort_process_group(error.what());
    return complain(error, kFailure);
  }
}

}  // namespace

int main(int count, char** words) {
  // Beyond a limit on file sizes a write must fail, with a message and the old file intact, instead of ending the process.
  std::signal(SIGXFSZ, SIG_IGN);
  const int status = run(count, words);
  plugrad::finish_all();
  return status;
}
