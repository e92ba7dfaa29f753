// plugrad backends, plugrad devices.
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <tools/plugrad/json.hpp>
#include <tools/plugrad/options.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <system_error>

namespace plugrad::tool {
namespace {

bool usable(const PluginRecord& record) { return record.stage == Stage::ready && record.devices > 0; }

Json to_json(const PluginRecord& record) {
  return Json::object({{"name", record.name},
                       {"version", record.version},
                       {"devices", record.devices},
                       {"path", record.path},
                       {"stage", stage_name(record.stage)},
                       {"reason", record.reason},
                       {"revision", record.revision},
                       {"notes", record.notes}});
}

void print_row(const std::vector<std::string>& cells, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    line += cells[i];
    if (i + 1 < cells.size()) line.append(widths[i] - cells[i].size() + 2, ' ');
  }
  std::cout << line << "\n";
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) print_row(row, widths);
}

void print_searched() {
  std::cout << "searched in this order:\n";
  for (const std::string& directory : plugin_directories()) {
    std::error_code error;
    const bool is_there = std::filesystem::is_directory(directory, error);
    std::cout << "  " << one_line(directory) << (is_there ? "" : "  (there is no such directory)") << "\n";
  }
}

void print_communicators(const std::vector<PluginRecord>& records) {
  for (const PluginRecord& record : records) {
    std::cout << one_line(record.path) << "\n  stage    " << stage_name(record.stage) << "\n";
    if (!record.name.empty()) std::cout << "  connects processes: " << record.name << ", " << record.version << "\n";
    if (!record.reason.empty()) std::cout << "  reason   " << one_line(record.reason) << "\n";
  }
}

void print_verbose(const std::vector<PluginRecord>& records) {
  for (const PluginRecord& record : records) {
    std::cout << one_line(record.path) << "\n  stage    " << stage_name(record.stage) << "\n";
    if (!record.name.empty()) {
      std::cout << "  backend  " << record.name << " " << record.version << ", revision " << record.revision << ", "
                << record.devices << (record.devices == 1 ? " device\n" : " devices\n");
    }
    if (!record.reason.empty()) std::cout << "  reason   " << one_line(record.reason) << "\n";
    if (!record.notes.empty()) std::cout << "  note     " << one_line(record.notes) << "\n";
  }
  if (records.empty()) std::cout << "no plugin was found\n";
  print_communicators(communicators());
  print_searched();
}

void print_brief(const std::vector<PluginRecord>& records) {
  std::vector<std::vector<std::string>> rows = {{"backend", "version", "devices", "file"}};
  for (const PluginRecord& record : records) {
    if (usable(record)) rows.push_back({record.name, record.version, std::to_string(record.devices), record.path});
  }
  if (rows.size() > 1) print_table(rows);
  const auto directories = std::ranges::count(records, Stage::not_searched, &PluginRecord::stage);
  const auto others = std::ranges::count_if(records, [](const PluginRecord& r) { return !usable(r); }) - directories;
  if (rows.size() == 1 && others == 0) {
    std::cout << "no plugin was found\n";
    print_searched();
  }
  if (others > 0)
    std::cout << others << (others == 1 ? " file brings" : " files bring")
              << " no device; plugrad backends --verbose says why\n";
  if (directories > 0)
    std::cout << directories << (directories == 1 ? " directory was" : " directories were")
              << " not searched; plugrad backends --verbose says why\n";
}

std::vector<std::string> capability_names(const Device& device) {
  std::vector<std::string> names;
  if (device.capabilities() & PLUGRAD_HOST_MEM) names.emplace_back("host-memory");
  if (device.capabilities() & PLUGRAD_ASYNC) names.emplace_back("async");
  if (device.capabilities() & PLUGRAD_FLUSHES_DENORMALS) names.emplace_back("flushes-denormals");
  return names;
}

Json to_json(const Device& device) {
  const auto [free, total] = device.physical_memory();
  return Json::object({{"name", device.name()},
                       {"description", device.description()},
                       {"identity", device.identity()},
                       {"memory_free", free},
                       {"memory_total", total},
                       {"capabilities", capability_names(device)},
                       {"plugin", device.plugin()}});
}

std::string memory_text(const Device& device) {
  const auto [free, total] = device.physical_memory();
  if (total == 0) return "-";
  const auto mebibytes = [](uint64_t bytes) { return std::to_string(bytes >> 20); };
  return mebibytes(free) + " of " + mebibytes(total) + " MiB free";
}

}  // namespace

int backends_command(const Arguments& arguments) {
  Options options("plugrad backends");
  options.add_flag("verbose,v", "every file that was considered, its last stage, and why it went no further");
  options.add_flag("clear-quarantine", "first forget which files crashed, hung or ended the process that tried them");
  options.parse(arguments);
  if (options.flag("help")) {
    options.print_help({"plugrad backends [--verbose] [--clear-quarantine] [--json]",
                        "Lists the backends that were found as plugins.",
                        "  plugrad backends\n  plugrad backends --verbose\n  plugrad backends --clear-quarantine\n"
                        "  PLUGRAD_PLUGIN_PATH=/opt/npu/lib plugrad backends --json\n"});
    return 0;
  }
  if (options.flag("clear-quarantine")) {
    const size_t cleared = clear_quarantine();
    std::cerr << "plugrad: " << cleared << (cleared == 1 ? " file left" : " files left") << " the quarantine\n";
  }
  const std::vector<PluginRecord> records = plugins();
  if (options.flag("json")) {
    std::vector<Json> list;
    for (const PluginRecord& record : records) list.push_back(to_json(record));
    std::vector<Json> connecting;
    for (const PluginRecord& record : communicators()) connecting.push_back(to_json(record));
    const Json all = Json::object({{"directories", plugin_directories()}, {"plugins", list}, {"communicators", connecting}});
    std::cout << all.pretty() << "\n";
  } else if (options.flag("verbose")) {
    print_verbose(records);
  } else {
    print_brief(records);
  }
  return 0;
}

int devices_command(const Arguments& arguments) {
  Options options("plugrad devices");
  options.parse(arguments);
  if (options.flag("help")) {
    options.print_help({"plugrad devices [--json]", "Opens and lists the devices of all plugins.",
                        "  plugrad devices\n  plugrad devices --json | jq -r '.devices[].name'\n"});
    return 0;
  }
  bool failed = false;
  std::vector<Json> list;
  std::vector<std::vector<std::string>> rows = {{"device", "description", "memory", "plugin"}};
  for (const std::string& name : device_names()) {
    try {
      const Device device(name);
      list.push_back(to_json(device));
      rows.push_back({device.name(), device.description(), memory_text(device), device.plugin()});
    } catch (const Error& error) {
      failed = true;
      std::cerr << "plugrad: " << one_line(error.what()) << "\n";
    }
  }
  if (options.flag("json")) {
    std::cout << Json::object({{"devices", list}}).pretty() << "\n";
  } else if (rows.size() > 1) {
    print_table(rows);
  } else {
    std::cout << "no device; plugrad backends --verbose lists the directories that were searched\n";
  }
  return failed ? 1 : 0;
}

}  // namespace plugrad::tool
