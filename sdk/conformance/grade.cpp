#include <sdk/conformance/grade.hpp>

#include <plugrad/sdk/ops.hpp>

#include <algorithm>
#include <string_view>

namespace plugrad::conformance {
namespace {

constexpr const char* kNames[kLevels] = {"loads", "memory", "tier 0", "trains", "under stress", "asynchronous"};

// The levels of cases by the beginnings of their names; the levels of ops follow from their tiers.
constexpr std::pair<std::string_view, int> kPrefixes[] = {{"contract.", 0},
                                                          {"process.", 0},
                                                          {"memory.", 1},
                                                          {"scale.", 2},
                                                          {"failure.indices", 2},
                                                          {"tier0", 2},
                                                          {"train.", kTrains},
                                                          {"thread.", 4},
                                                          {"fusion.", 4},
                                                          {"list.", 4},
                                                          {"forms.", 4},
                                                          {"stream.", kAsynchronous},
                                                          {"native.", kAsynchronous},
                                                          {"failure.", kAsynchronous}};

const OpInfo* op_of(std::string_view name) {
  if (!name.starts_with("op.")) return nullptr;
  const auto* op = std::ranges::find_if(kOps, [&](const OpInfo& each) { return name.substr(3) == each.name; });
  return op == std::end(kOps) ? nullptr : op;
}

// Whether a case about streams ran, in which work was in flight.
bool has_streams(const Summary& summary) {
  return std::ranges::any_of(summary.found,
                             [](const Found& found) { return found.name == "stream.run_returns" && found.result.cases; });
}

// Returns the reason why the level is not reached; "" if it is reached.
std::string lacking(const Summary& summary, int level) {
  int failing = 0;
  bool trained = false;
  std::string first;
  for (const Found& found : summary.found) {
    trained |= found.name.starts_with("train.");
    if (level_of(found.name) != level || !found.result.failures) continue;
    if (!failing++) first = found.name;
  }
  for (const std::string& name : summary.not_begun)
    if (level_of(name) == level && !failing) return name + " did not begin within the time of --budget";
  if (failing) return first + (failing > 1 ? " and " + std::to_string(failing - 1) + " more fail" : " fails");
  if (level == 2 && !summary.missing_of_tier0.empty())
    return std::to_string(summary.missing_of_tier0.size()) + " kernels of tier 0 are missing";
  if (level == kAsynchronous && !has_streams(summary)) return "the device has no streams";
  return level == kTrains && !trained ? "training was not tried (--train)" : "";
}

std::string escaped(const std::string& text) {
  std::string all;
  for (const char c : text) all += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return all;
}

std::string percentage(const Grade& grade) { return std::to_string(100 * grade.tier1 / grade.tier1_ops) + "%"; }

}  // namespace

std::string level_text(int level) { return level < 0 ? "no level" : "L" + std::to_string(level) + " " + kNames[level]; }

int level_of(const std::string& name) {
  if (const OpInfo* op = op_of(name)) return op->tier == 0 ? 2 : -1;
  for (const auto& [prefix, level] : kPrefixes)
    if (name.starts_with(prefix)) return level;
  return -1;
}

Grade grade_of(const Summary& summary, int highest) {
  Grade grade;
  for (int level = 0; level <= highest && grade.next.empty(); ++level) {
    const std::string lack = lacking(summary, level);
    if (lack.empty()) grade.level = level;
    else grade.next = level_text(level) + ": " + lack;
  }
  if (highest < kLevels - 1) return grade;
  for (const OpInfo& op : kOps) grade.tier1_ops += op.tier != 0;
  for (const Found& found : summary.found) {
    const OpInfo* op = op_of(found.name);
    grade.tier1 += op && op->tier != 0 && found.result.cases && !found.result.failures;
  }
  return grade;
}

std::string text_of(const Grade& grade) {
  std::string text = "level: " + level_text(grade.level);
  if (grade.tier1_ops)
    text += "; tier 1: " + std::to_string(grade.tier1) + " of " + std::to_string(grade.tier1_ops) + " ops (" +
            percentage(grade) + ")";
  return text + "\n" + (grade.next.empty() ? "" : "next:  " + grade.next + "\n");
}

std::string badge_of(const Grade& grade, const std::string& certificate) {
  constexpr const char* kColours[kLevels + 1] = {"#e05d44", "#fe7d37", "#fe7d37", "#dfb317",
                                                 "#a4a61d", "#97ca00", "#44cc11"};
  constexpr int kLetter = 7, kLeft = 62;  // pixels
  const std::string text = level_text(grade.level) + (grade.tier1_ops ? " | tier 1 " + percentage(grade) : "");
  const int right = kLetter * static_cast<int>(text.size()) + 8;
  const std::string width = std::to_string(kLeft + right);
  const auto label = [](int middle, const std::string& words) {
    return "<text x=\"" + std::to_string(middle) + "\" y=\"14\">" + words + "</text>";
  };
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width +
         "\" height=\"20\" role=\"img\" aria-label=\"plugrad: " + text + "\">\n<title>plugrad: " + text +
         "</title>\n<desc>" + escaped(certificate) + "</desc>\n<rect width=\"" + width +
         "\" height=\"20\" rx=\"3\" fill=\"#555\"/>\n<rect x=\"" + std::to_string(kLeft) + "\" width=\"" +
         std::to_string(right) + "\" height=\"20\" rx=\"3\" fill=\"" + kColours[grade.level + 1] +
         "\"/>\n<g fill=\"#fff\" text-anchor=\"middle\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">" +
         label(kLeft / 2, "plugrad") + label(kLeft + right / 2, text) + "</g>\n</svg>\n";
}

}  // namespace plugrad::conformance
