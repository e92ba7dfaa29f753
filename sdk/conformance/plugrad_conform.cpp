// plugrad-conform: checks one plugin file against the contract.
#include <sdk/conformance/running.hpp>
#include <sdk/conformance/summary.hpp>

#include <boost/program_options.hpp>

#include <iostream>

namespace {

namespace conformance = plugrad::conformance;
namespace po = boost::program_options;

constexpr int kGood = 0, kFailed = 1, kUnusable = 2;

constexpr const char* kUsage = R"(usage: plugrad-conform [options] FILE

Loads a backend plugin and checks it: the rules of the contract, memory, streams, and every op that it
claims, in every dtype and class of layouts, against references in higher precision.

)";
constexpr const char* kExamples = R"(
examples:
  plugrad-conform lib/plugrad/plugins-v0/libplugrad-backend-cpu.so
  plugrad-conform --only EXP ./libplugrad-backend-mynpu.so      one op while you work on it
  plugrad-conform --only memory. ./libplugrad-backend-mynpu.so  all cases whose name begins so
  plugrad-conform --option threads=1 --device 1 --json FILE

exit status: 0 all good, or no device and a reason; 1 failures; 2 bad usage, or a file that cannot be used
)";

struct Request {
  std::string file;
  conformance::Settings settings;
  bool json = false, help = false, list = false, kernels = false;
  po::options_description shown{"options"};
};

conformance::OptionList key_values(const std::vector<std::string>& texts) {
  conformance::OptionList list;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == text.npos) throw po::error("--option " + text + ": expected key=value");
    list.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return list;
}

Request parsed(int argc, char** argv) {
  Request request;
  std::vector<std::string> options;
  conformance::Settings& s = request.settings;
  request.shown.add_options()("help,h", po::bool_switch(&request.help), "show this help")(
      "list", po::bool_switch(&request.list), "list the cases")(
      "kernels", po::bool_switch(&request.kernels), "list the dtypes for which the plugin has a kernel, op by op")(
      "json", po::bool_switch(&request.json), "print JSON")(
      "only", po::value(&s.only)->value_name("NAME"),
      "one op (EXP), one case (memory.alloc), or all with this prefix (stream.)")(
      "seed", po::value(&s.seed)->value_name("N"), "seed of the random values (1)")(
      "device", po::value(&s.device)->value_name("N"), "the number of the device (0)")(
      "option", po::value(&options)->value_name("KEY=VALUE"), "an option for opening the device; may be repeated")(
      "require-tier0", po::bool_switch(&s.require_tier0), "fail on missing ops of tier 0")(
      "verbose,v", po::bool_switch(&s.verbose), "print more lines about failures, and the plugin's log");
  po::options_description all;
  all.add(request.shown).add_options()("file", po::value(&request.file));
  po::positional_options_description positional;
  positional.add("file", 1);
  po::variables_map values;
  constexpr int kStyle = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::store(po::command_line_parser(argc, argv).options(all).positional(positional).style(kStyle).run(), values);
  po::notify(values);
  s.options = key_values(options);
  if (request.file.empty() && !request.help && !request.list) throw po::error("expected the path of a plugin's file");
  return request;
}

bool selected(const conformance::Case& one, const std::string& only) {
  return only.empty() || one.name == only || one.name == "op." + only || (only.back() == '.' && one.name.starts_with(only));
}

void write(const conformance::Summary& summary, bool json) {
  if (json)
    write_json(std::cout, summary);
  else
    write_text(std::cout, summary);
  std::cout.flush();  // leak checkers and a plugin's own threads may end the process before its regular flush
}

void run_cases(conformance::Session& session, conformance::Summary& summary) {
  const conformance::Settings& settings = session.settings;
  for (const conformance::Case& one : conformance::all_cases()) {
    if (!selected(one, settings.only)) continue;
    conformance::Found& found = summary.found.emplace_back(one.name, settings.verbose ? 1000 : 20);
    run_case(one, session, found.tally);
  }
  if (!summary.whole) return;
  summary.missing_of_tier0 = missing_of_tier0(session);
  if (!settings.require_tier0) return;
  conformance::Found& found = summary.found.emplace_back("tier0", 1000);
  for (const std::string& question : summary.missing_of_tier0) found.tally.fail(question + " is missing");
}

int check(const Request& request) {
  const conformance::Settings& settings = request.settings;
  const plugrad_host* host = conformance::make_host(settings.verbose);
  const conformance::Plugin plugin = conformance::load_plugin(request.file, host);
  const plugrad_backend& table = *plugin.table;
  conformance::Summary summary;
  summary.plugin = request.file;
  summary.backend = table.name ? table.name : "";
  summary.version = table.version ? table.version : "";
  summary.whole = settings.only.empty();
  if (!table.count || !table.open || !table.resolve)
    throw conformance::Unloadable(request.file + ": count, open or resolve is null in the table");
  const conformance::Counted counted = count_devices(plugin, host);
  if (!counted.outcome.ok()) throw conformance::Breach("count returned " + counted.outcome.text());
  if (counted.devices == 0) {
    if (counted.reason.empty())
      throw conformance::Breach("count returned 0 devices without a reason: report one with PLUGRAD_OK");
    summary.no_device = counted.reason;
    write(summary, request.json);
    return kGood;
  }
  if (settings.device >= counted.devices)
    throw conformance::Unloadable("--device " + std::to_string(settings.device) + ": the plugin has " +
                                  std::to_string(counted.devices) + " devices, numbered from 0");
  conformance::Device device(plugin.table, host, settings.device, settings.options);
  conformance::Session session{plugin, host, settings, counted.devices, device};
  summary.session = &session;
  summary.device = std::string(device.info().name) + (device.host_memory() ? ", host memory" : "") +
                   (device.async() ? ", streams" : "") + ", alignment " + std::to_string(device.info().alignment);
  conformance::report_crashes();
  if (request.kernels) {
    write_kernels(std::cout, session);
    return kGood;
  }
  run_cases(session, summary);
  write(summary, request.json);
  return summary.failures() ? kFailed : kGood;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Request request = parsed(argc, argv);
    if (request.help) {
      std::cout << kUsage << request.shown << kExamples;
      return kGood;
    }
    const std::string& only = request.settings.only;
    bool any = false;
    for (const conformance::Case& one : conformance::all_cases()) any = any || selected(one, only);
    if (!any) throw po::error("--only " + only + ": no case has that name; --list shows them");
    if (!request.list) return check(request);
    for (const conformance::Case& one : conformance::all_cases())
      if (selected(one, only)) std::cout << one.name << "\n";
    return kGood;
  } catch (const po::error& error) {
    std::cerr << "plugrad-conform: " << error.what() << "; see --help\n";
    return kUnusable;
  } catch (const conformance::Breach& breach) {
    std::cout << "FAIL " << breach.what() << "\n";
    return kFailed;
  } catch (const std::exception& error) {
    std::cerr << "plugrad-conform: " << error.what() << "\n";
    return kUnusable;
  }
}
