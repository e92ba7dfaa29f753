#include <core/runtime/plugins/loader.hpp>

#include <core/runtime/dispatch/printable.hpp>
#include <core/runtime/local.hpp>
#include <core/runtime/plugins/foreign.hpp>
#include <core/runtime/plugins/handshake.hpp>
#include <core/runtime/plugins/ownership.hpp>
#include <core/runtime/plugins/probe.hpp>
#include <core/runtime/streams/stream.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/log.hpp>
#include <process/process_state.hpp>
#include <process/shared_object.hpp>

#include <boost/dll/shared_library.hpp>

#include <algorithm>
#include <array>
#include <filesystem>

namespace plugrad::loader {
namespace fs = std::filesystem;
namespace dll = boost::dll;
namespace {
// Handles stay open until the process ends, because a plugin's threads may still run; reachable for leak checkers.
std::vector<dll::shared_library>& handles() {
  static auto& kept = *new std::vector<dll::shared_library>;
  return kept;
}

[[noreturn]] void refuse(Code code, const std::string& why) { throw Error(code, why); }
void require(const std::string& damage, Code code = Code::invalid) {
  if (!damage.empty()) refuse(code, damage);
}

// Extracts the system loader's text. Boost puts it between text of its own and the empty text of an error code.
std::string system_message(const std::string& text) {
  const size_t from = text.find("failed ("), to = text.rfind("): ");
  return from == std::string::npos || to == std::string::npos || to < from ? text : text.substr(from + 8, to - from - 8);
}

void try_first(const std::string& path, const FileIdentity& identity, PluginRecord& record, probe::Depth depth) {
  constexpr std::array kReached{Stage::file,     Stage::loaded, Stage::symbol, Stage::contract,
                                Stage::contract, Stage::file,   Stage::file};
  const probe::Outcome outcome = probe::check(path, identity, depth);
  if (outcome.sound) return;
  record.stage = kReached[static_cast<size_t>(outcome.step)];
  refuse(outcome.step == probe::Step::load ? Code::invalid : Code::unsupported, outcome.reason);
}

dll::shared_library open(const std::string& path) {
  try {
    dll::shared_library library(path, dll::load_mode::rtld_now | dll::load_mode::rtld_local);
    handles().push_back(library);
    return library;
  } catch (const std::exception& error) {
    refuse(Code::invalid, system_message(error.what()));
  }
}

// Calls the file's entry.
template <class Table>
const Table* source_in(const std::string& path, PluginRecord& record, const std::string& symbol, const char* what) {
  const dll::shared_library library = open(path);
  record.stage = Stage::loaded;
  if (!library.has(symbol)) refuse(Code::unsupported, no_entry_symbol(symbol, what));
  record.stage = Stage::symbol;
  return library.get<const Table*(const plugrad_host*)>(symbol)(host());
}

// Runs code of a file, and undoes its changes to the process. expects_handlers is asked after the call. level: of the line
// about changes.
template <class Call, class Expects>
auto guarded(PluginRecord& record, const Expects& expects_handlers, const Call& call, LogLevel level = LogLevel::warning)
    -> decltype(call()) {
  ProcessState before;
  const auto restore = [&] {
    if (const std::string changed = before.restore(expects_handlers()); !changed.empty()) {
      record.notes = "it changed " + changed + " of the process, which the core put back";
      log(level, record.path + ": " + record.notes);
    }
  };
  try {
    auto result = call();
    restore();
    return result;
  } catch (const Error&) {
    restore();
    throw;
  } catch (...) {
    report_exception();
    restore();
    refuse(Code::internal, take_report());
  }
}
}  // namespace

std::vector<std::string> candidates(const std::string& directory, std::string& why, const char* prefix) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator each(directory, error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename();
    if (name.starts_with(prefix) && name.ends_with(".so")) found.push_back(each->path());
  }
  why = error ? error.message() : "";
  std::ranges::sort(found);
  return found;
}

Loaded agree(const plugrad_backend* source) {
  Loaded loaded{source, {}};
  require(negotiate(source, loaded.table), Code::unsupported);
  return loaded;
}

namespace {
// Checks the file and tries it in a process of its own.
void check_file(const std::string& path, PluginRecord& record, Chosen chosen, probe::Depth depth) {
  record.path = path;
  record.stage = Stage::found;
  if (!path.starts_with('/')) refuse(Code::invalid, "the path is not absolute");
  FileIdentity identity;
  require(check_shared_object(path, identity));
  if (chosen == Chosen::by_search) require(check_ownership(path));
  record.stage = Stage::file;
  try_first(path, identity, record, depth);
  if (identity_of(path) != identity) refuse(Code::invalid, "the file changed while it was checked: try again");
}
}  // namespace

Loaded load(const std::string& path, PluginRecord& record, Chosen chosen) {
  check_file(path, record, chosen, probe::Depth::load);
  Loaded loaded{};
  guarded(
      record, [&] { return brings_signal_handlers(loaded.table); },
      [&] {
        const auto* source = source_in<plugrad_backend>(path, record, entry_symbol(), "a plugin");
        return (loaded = agree(source)).source;
      });
  return loaded;
}

const plugrad_communicator& load_communicator(const std::string& path, PluginRecord& record, Chosen chosen) {
  check_file(path, record, chosen, probe::Depth::communicator);
  // Engines such as MPICH install handlers of signals when they are loaded, which nobody who uses them can change.
  const auto* table = guarded(
      record, [] { return false; },
      [&] {
        const auto* source = source_in<plugrad_communicator>(path, record, communicator_symbol(), "a communicator");
        require(negotiate(source), Code::unsupported);
        return source;
      },
      LogLevel::info);
  record.stage = Stage::ready;
  record.name = table->name;
  record.version = printable(table->version);
  return *table;
}

uint32_t count(const plugrad_backend& table, PluginRecord& record) {
  if (record.path.starts_with('/')) {
    const probe::Outcome outcome = probe::check(record.path, identity_of(record.path), probe::Depth::count);
    if (!outcome.sound) refuse(Code::internal, outcome.reason);
  }
  uint32_t devices = 0;
  const plugrad_status status = guarded(
      record, [&] { return brings_signal_handlers(table); }, [&] { return contained(table.count, host(), &devices); });
  const std::string reason = take_report();
  streams::guard_exit();
  if (status) throw_status(status, record.name + ": count", reason);
  require(check_count(devices));
  if (!devices) record.reason = reason.empty() ? "no device, and it does not say why" : reason;
  return devices;
}

void try_open(const PluginRecord& record, uint32_t device, const OptionList& options) {
  if (!record.path.starts_with('/')) return;
  const probe::Outcome outcome = probe::check_open(record.path, identity_of(record.path), device, options);
  if (!outcome.sound)
    refuse(Code::internal, "[" + record.name + ":" + std::to_string(device) + "] " + record.path + ": " + outcome.reason);
}

}  // namespace plugrad::loader
