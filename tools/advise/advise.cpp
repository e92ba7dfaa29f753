// plugrad advise.
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/generator.hpp>
#include <plugrad/runtime/numbers.hpp>
#include <plugrad/runtime/profiler.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <plugrad/sdk/ops.hpp>
#include <tools/advise/trace.hpp>
#include <tools/plugrad/json.hpp>
#include <tools/plugrad/options.hpp>
#include <tools/trial/models.hpp>
#include <tools/trial/target.hpp>

#include <algorithm>
#include <iomanip>
#include <iostream>

namespace plugrad::tool {
namespace {

// How the core runs an op without a kernel for it.
struct Missing {
  TracedOp op;
  std::string instead;
  double least = 0;  // seconds of a kernel as fast as memory on the profiled device; 0: unknown
};

// The same operands, narrow dtypes replaced by their accumulators.
std::vector<KernelOperand> widened(const std::vector<KernelOperand>& operands) {
  std::vector<KernelOperand> wide = operands;
  for (KernelOperand& each : wide) {
    const auto* info = std::ranges::find_if(kDTypes, [&](const auto& dtype) { return each.dtype == dtype.label; });
    if (info != std::end(kDTypes)) each.dtype = dtype_info(info->accumulator)->label;
  }
  return wide;
}

std::string instead_of(Device device, const TracedOp& op) {
  const std::vector<KernelOperand> wide = widened(op.operands);
  const bool other = !std::ranges::equal(wide, op.operands, {}, &KernelOperand::dtype, &KernelOperand::dtype);
  if (other && has_kernel(device, op.op, wide)) return "in a wider dtype, with conversions";
  const auto* info = std::ranges::find_if(kOps, [&](const OpInfo& each) { return upper(op.op) == each.name; });
  if (info->tier) return "composed of other ops";
  return "in host memory if PLUGRAD_FALLBACK allows it, else an error";
}

// The ops of a small model on the default device.
Traced traced_model(const TrialModel& model) {
  manual_seed(1);
  Profiler profiler;
  model.train(default_device());
  profiler.stop();
  return traced_events(profiler.events());
}

Traced traced(const std::string& what) {
  for (const TrialModel& model : trial_models())
    if (what == model.name) return traced_model(model);
  return traced_file(what);
}

std::string size_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1000 && unit < 4; ++unit) value /= 1000;
  return fixed_text(value, unit ? 1 : 0) + " " + kUnits[unit];
}

std::string share_text(double seconds, double total) { return fixed_text(total > 0 ? 100 * seconds / total : 0, 1) + "%"; }

void print_missing(const std::vector<Missing>& missing, double total) {
  std::cout
      << "missing, by the time that they took on the device that was profiled, and the time that a kernel at the speed "
         "of memory needs:\n";
  for (const Missing& each : missing)
    std::cout << "  " << std::left << std::setw(23) << each.op.op << " " << std::setw(31) << each.op.dtypes() << std::right
              << std::setw(8) << each.op.calls << " calls  " << std::setw(7) << share_text(each.op.seconds, total) << " "
              << std::setw(7) << (each.least > 0 ? share_text(each.least, total) : "-") << "  " << std::setw(9)
              << size_text(each.op.bytes) << "  " << each.instead << "\n";
}

// Groups that save less are not worth a line.
std::vector<TracedGroup> worthwhile(const Traced& traced, double total) {
  constexpr double kLeastShare = 0.005;
  std::vector<TracedGroup> groups;
  for (const TracedGroup& each : traced.groups)
    if (each.saved > kLeastShare * total && groups.size() < 10) groups.push_back(each);
  return groups;
}

void print_groups(const std::vector<TracedGroup>& groups, double total) {
  if (groups.empty()) return;
  std::cout
      << "neighbours that a fusion computes in one pass, with the share of the time that they took and that it saves:\n";
  for (const TracedGroup& each : groups)
    std::cout << "  " << std::left << std::setw(55) << each.text << std::right << std::setw(8) << each.calls << " calls  "
              << std::setw(7) << share_text(each.seconds, total) << " " << std::setw(7) << share_text(each.saved, total)
              << "\n";
}

void print(const Device& device, const Traced& traced, const std::vector<Missing>& missing, double total) {
  double lost = 0;
  for (const Missing& each : missing) lost += each.op.seconds;
  std::cout << device.name() << " has kernels for " << traced.ops.size() - missing.size() << " of the " << traced.ops.size()
            << " kinds of ops that ran, which took " << fixed_text(total > 0 ? 100 * (1 - lost / total) : 100, 1)
            << "% of the time\n";
  if (!missing.empty()) print_missing(missing, total);
  print_groups(worthwhile(traced, total), total);
}

Json to_json(const Missing& each) {
  return Json::object({{"op", each.op.op},
                       {"dtypes", each.op.dtypes()},
                       {"calls", each.op.calls},
                       {"seconds", each.op.seconds},
                       {"least_seconds", each.least},
                       {"bytes", each.op.bytes},
                       {"instead", each.instead}});
}
Json to_json(const TracedGroup& each) {
  return Json::object({{"ops", each.text}, {"calls", each.calls}, {"seconds", each.seconds}, {"saved_seconds", each.saved}});
}

int advise(const std::string& what, const std::string& target, int64_t index, bool json) {
  const Traced all = traced(what);
  const Device device(device_of(target, index));
  std::vector<Missing> missing;
  double total = 0;
  for (const TracedOp& op : all.ops) {
    total += op.seconds;
    if (has_kernel(device, op.op, op.operands)) continue;
    missing.push_back({op, instead_of(device, op), all.rate > 0 ? static_cast<double>(op.bytes) / all.rate : 0});
  }
  if (!json) {
    print(device, all, missing, total);
    return 0;
  }
  std::vector<Json> list, groups;
  for (const Missing& each : missing) list.push_back(to_json(each));
  for (const TracedGroup& each : worthwhile(all, total)) groups.push_back(to_json(each));
  const Json report = Json::object(
      {{"device", device.name()}, {"kinds", all.ops.size()}, {"seconds", total}, {"missing", list}, {"fusions", groups}});
  std::cout << report.pretty() << "\n";
  return 0;
}

}  // namespace

int advise_command(const Arguments& arguments) {
  Options options("plugrad advise");
  options.add_whole("device", "N", "which device of the file's plugin", 0);
  options.parse(arguments, arguments.size());
  if (options.flag("help")) {
    options.print_help(
        {"plugrad advise TRACE|mlp|cnn|transformer DEVICE|FILE [--device N] [--json]",
         "Says which ops of a program a device, or the device of a plugin's file, has no kernel for, ranked by the\n"
         "time that they took, and how the core runs them instead; and which neighbouring ops a fusion would compute\n"
         "in one pass, and how much time it would save. TRACE is what a profiler wrote (docs/profiling.md),\n"
         "on any device; the three names are the models of plugrad trial, on the default device.",
         "  plugrad advise trace.json build/libplugrad-backend-npu.so\n  plugrad advise transformer cuda:0\n"});
    return 0;
  }
  const Arguments& words = options.words();
  if (words.size() != 2)
    throw UsageError("a trace or model, and a device or a plugin's file expected (see plugrad advise --help)");
  return advise(words[0], words[1], *options.whole("device"), options.flag("json"));
}

}  // namespace plugrad::tool
