// plugrad new-plugin.
#include <plugrad/io/file.hpp>
#include <plugrad/runtime/error.hpp>
#include <tools/new_plugin/templates.hpp>
#include <tools/plugrad/files.hpp>
#include <tools/plugrad/json.hpp>
#include <tools/plugrad/options.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>

namespace plugrad::tool {
namespace fs = std::filesystem;
namespace {

// Whether the core accepts the name for a backend, and CMake for a target.
bool is_valid(const std::string& name) {
  constexpr size_t kMost = 63;
  return !name.empty() && name.size() <= kMost && name[0] >= 'a' && name[0] <= 'z' && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// "my-npu" -> "MyNpu".
std::string class_name(const std::string& name) {
  std::string result;
  bool capital = true;
  for (const char c : name) {
    if (c != '-' && c != '_') result += capital ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    capital = c == '-' || c == '_';
  }
  return result;
}

std::string replaced(std::string text, const std::string& mark, const std::string& by) {
  for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += by.size()) text.replace(at, mark.size(), by);
  return text;
}

fs::path place_for(const std::string& path, const std::string& name) {
  if (path.starts_with("NAME.")) return name + path.substr(4);
  return path == "gitignore" ? ".gitignore" : path;
}

std::string filled(const std::string& text, const std::string& name) {
  const std::string named = replaced(replaced(text, "@NAME@", name), "@CLASS@", class_name(name));
  return replaced(named, "@IDENTIFIER@", replaced(name, "-", "_"));
}

// variant: the language whose files take the place of the language's own files.
void write_project(const fs::path& folder, const std::string& name, const std::string& language,
                   const std::string& variant) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error))
    throw Error(Code::io_error, "[" + folder.string() + "] exists already and is not empty: give another --directory");
  for (const TemplateFile& file : plugin_templates()) {
    const auto replaces = [&](const TemplateFile& each) { return each.language == variant && each.path == file.path; };
    if (file.language != variant && (file.language != language || std::ranges::any_of(plugin_templates(), replaces)))
      continue;
    const fs::path to = folder / place_for(file.path, name);
    create_folder(to.parent_path().string());
    io::write_file(to.string(), filled(file.text, name));
    if (to.extension() == ".sh")
      fs::permissions(to, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec, fs::perm_options::add,
                      error);
  }
}

// Whose the device's memory is, "host" or "device". Throws UsageError for options that no template has.
std::string memory_of(const Options& options) {
  const std::string memory = *options.text("memory");
  if (memory != "host" && memory != "device") throw UsageError("--memory " + memory + " is unknown: give host or device");
  if (memory == "host" && options.flag("streams")) throw UsageError("--streams: give --memory device as well");
  return memory;
}

}  // namespace

int new_plugin_command(const Arguments& arguments) {
  Options options("plugrad new-plugin");
  options.add_text("directory", "DIR", "where to write it (plugrad-NAME)");
  options.add_text("lang", "LANGUAGE", "c++, c or rust", "c++");
  options.add_text("memory", "WHOSE", "host: the host reads and writes it; device: with queues of a driver", "host");
  options.add_flag("streams", "the device works asynchronously; included in --memory device");
  options.parse(arguments, 1);
  if (options.flag("help")) {
    options.print_help(
        {"plugrad new-plugin NAME [--lang c++|c|rust] [--memory host|device] [--directory DIR]",
         "Writes the project of a backend plugin for a new kind of device: one source file, which can train networks from\n"
         "the start, a project file for CMake or Cargo, and a script that builds and tests it. It needs nothing but "
         "plugrad's\n"
         "SDK.",
         "  plugrad new-plugin npu && plugrad-npu/ci.sh\n"
         "  plugrad new-plugin npu --memory device --streams   for a driver with memory and queues of its own\n"});
    return 0;
  }
  if (options.words().empty())
    throw UsageError("the plugin's name is missing: plugrad new-plugin NAME (see plugrad new-plugin --help)");
  const std::string& name = options.words()[0];
  if (!is_valid(name))
    throw UsageError("'" + name +
                     "' cannot name a backend: begin with a lower-case letter, and use lower-case letters, digits, - and _");
  const fs::path folder = options.text("directory").value_or("plugrad-" + name);
  const std::string language = *options.text("lang");
  if (language != "c++" && language != "c" && language != "rust")
    throw UsageError("--lang " + language + " is unknown: give c++, c or rust");
  const std::string memory = memory_of(options);
  write_project(folder, name, language, memory == "device" ? language + "-device" : language);
  if (options.flag("json"))
    std::cout << Json::object({{"name", name}, {"language", language}, {"memory", memory}, {"directory", folder.string()}})
                     .pretty()
              << "\n";
  else
    std::cout << "written to " << folder.string() << "; build it, check it and train on it:\n  " << folder.string()
              << "/ci.sh\n";
  return 0;
}

}  // namespace plugrad::tool
