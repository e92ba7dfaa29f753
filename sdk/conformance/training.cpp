#include <sdk/conformance/training.hpp>

#include <process/child.hpp>
#include <process/patience.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>

namespace plugrad::conformance {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> command(const Plan& plan, const std::string& file, const Settings& settings) {
  const fs::path program = fs::path(plan.worker.front()).parent_path() / "plugrad";
  if (!fs::exists(program))
    throw Unloadable("--train needs the program plugrad beside plugrad-conform; there is no " + program.string());
  std::vector<std::string> words = {program.string(), "trial",    fs::absolute(file).string(),
                                    "--json",         "--device", std::to_string(settings.device)};
  for (const auto& [key, value] : settings.options) words.insert(words.end(), {"--option", key + "=" + value});
  return words;
}

// Runs the program. Returns its standard output; `error` becomes the reason if the output is not a result.
std::string run(const std::vector<std::string>& words, std::chrono::seconds deadline, std::string& error) {
  Child child;
  error = child.start(words);
  if (!error.empty()) return "";
  std::array<std::string, 3> texts;
  std::optional<int> status;
  Patience patience(child.process(), deadline);
  while (!child.ended(status)) {
    if (patience.is_over()) {
      child.stop();
      error = "the program that trains did not finish within " + std::to_string(deadline.count()) + " s";
      return "";
    }
    child.read(std::chrono::milliseconds(50), texts);
  }
  child.read(std::chrono::milliseconds(0), texts);
  if (texts[1].empty()) error = "the program that trains " + text_of_ending(status) + ": " + texts[2];
  return texts[1];
}

Found found_in(const nlohmann::json& model) {
  Found found{"train." + model.at("model").get<std::string>(), {}, false};
  found.result.cases = 1;
  if (!model.at("trains").get<bool>()) {
    found.result.failures = 1;
    found.result.lines.push_back(model.at("error").get<std::string>());
  }
  return found;
}

}  // namespace

std::vector<Found> trained(const Plan& plan, const std::string& file, const Settings& settings) {
  std::string error;
  const std::string text = run(command(plan, file, settings), plan.deadline, error);
  if (!error.empty()) return {{"train.program", {1, 1, 0, {error}, {}, {}}, false}};
  std::vector<Found> all;
  const nlohmann::json said = nlohmann::json::parse(text);
  for (const nlohmann::json& model : said.at("models")) all.push_back(found_in(model));
  return all;
}

}  // namespace plugrad::conformance
