#include <tests/tools/process.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace plugrad::test {
namespace {

using Words = std::vector<std::string>;

std::string joined(const Words& words) {
  std::string text = "plugrad";
  for (const std::string& word : words) text += " " + word;
  return text;
}

TEST(Usage, EachHelpHasItsOptionsAndExamples) {
  for (const char* command : {"backends", "devices", "train", "eval", "run", "trial", "advise", "new-plugin"}) {
    const Outcome outcome = plugrad_run({command, "--help"});
    SCOPED_TRACE(command);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_TRUE(outcome.out.starts_with("usage: plugrad " + std::string(command)));
    for (const char* words : {"options:", "--json", "--help", "\nexamples:\n  plugrad "})
      expect_mentions(outcome.out, words);
  }
  const Outcome all = plugrad_run({"--help"});
  EXPECT_EQ(all.status, 0);
  for (const char* words : {"backends", "devices", "train", "eval", "examples:", "status:"}) expect_mentions(all.out, words);
}

TEST(Usage, TheVersionIsPrintedAsTextAndAsJson) {
  const Outcome text = plugrad_run({"--version"});
  EXPECT_EQ(text.status, 0);
  EXPECT_TRUE(text.out.starts_with("plugrad ")) << text.out;
  const auto json = nlohmann::json::parse(plugrad_run({"--version", "--json"}).out);
  EXPECT_TRUE(text.out.starts_with("plugrad " + json.at("version").get<std::string>() + " ")) << text.out;
  EXPECT_EQ(json.at("abi"), 0);
}

struct Misuse {
  Words words;
  const char* complaint;
};

TEST(Usage, MisuseIsOneLineThatHelps) {
  const Misuse rows[] = {
      {{}, "no command; expected one of backends, devices, train, eval, run, export, launch, trial, advise, new-plugin"},
      {{"trainn"}, "unknown command 'trainn'; did you mean 'train'?"},
      {{"device"}, "unknown command 'device'; did you mean 'devices'?"},
      {{"xyzzy"}, "unknown command 'xyzzy' (see plugrad --help)"},
      {{"--verison"}, "unknown option '--verison'; did you mean '--version'?"},
      {{"train", "--epoch", "3"}, "unknown option '--epoch'; did you mean '--epochs'?"},
      {{"train", "--checkpoint"}, "unknown option '--checkpoint'; did you mean '--checkpoint-every'?"},
      {{"train", "--frobnicate"}, "unknown option '--frobnicate' (see plugrad train --help)"},
      {{"backends", "-x"}, "unknown option '-x'"},
      {{"train", "moons"}, "unexpected argument 'moons'"},
      {{"train", "--epochs"}, "--epochs"},
      {{"train", "--epochs", "many"}, "('many') for option '--epochs' is invalid"},
      {{"train", "--epochs", "0"}, "--epochs must be at least 1, got 0"},
      {{"train", "--epochs", "-1"}, "--epochs must be at least 1, got -1"},
      {{"train", "--batch", "0"}, "--batch must be at least 1"},
      {{"train", "--steps", "0"}, "--steps must be at least 1"},
      {{"train", "--checkpoint-every", "0"}, "--checkpoint-every must be at least 1"},
      {{"train", "--seed", "-1"}, "--seed must be at least 0"},
      {{"train", "--rate", "0"}, "--rate must be above 0"},
      {{"train", "--rate", "nan"}, "--rate must be above 0"},
      {{"train", "--hidden", "16,,16"}, "--hidden '16,,16' is not a list of widths"},
      {{"train", "--hidden", "16,"}, "is not a list of widths"},
      {{"train", "--hidden", "-4"}, "is not a list of widths"},
      {{"train", "--hidden", "4x"}, "is not a list of widths"},
      {{"train", "--hidden", "99999999999999999999"}, "is not a list of widths"},
      {{"train", "--epochs", "1", "--epochs", "2"}, "--epochs"},
      {{"train", "--data", "idx"}, "--data idx needs --images FILE and --labels FILE"},
      {{"train", "--data", "idx", "--images", "a", "--labels", "b", "--test-images", "c"}, "go together"},
      {{"train", "--data", "moons", "--images", "a"}, "are for --data idx"},
      {{"train", "--data", "moons", "--data-dir", "a"}, "is for --data fashion-mnist"},
      {{"eval"}, "--checkpoint FILE is missing"},
      {{"run"}, "the model's file is missing"},
      {{"new-plugin"}, "the plugin's name is missing"},
      {{"new-plugin", "My Npu"}, "'My Npu' cannot name a backend"},
      {{"new-plugin", "npu", "--folder", "x"}, "unknown option '--folder'"},
      {{"eval", "--epochs", "3"}, "unknown option '--epochs'"},
  };
  for (const Misuse& row : rows) {
    SCOPED_TRACE(joined(row.words));
    expect_complaint(plugrad_run(row.words), 2, row.complaint);
  }
}

TEST(Usage, AnOutputThatCannotBeWrittenIsAnError) {
  const Outcome outcome = plugrad_run({"--help"}, {.standard_output = "/dev/full"});
  expect_complaint(outcome, 1, "cannot write to standard output");
}

}  // namespace
}  // namespace plugrad::test
