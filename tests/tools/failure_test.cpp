// Each failed run ends with one line on stderr and status 1, and damages no file.
#include <tests/io/idx_bytes.hpp>
#include <tests/tools/process.hpp>

#include <gtest/gtest.h>

#include <sys/mount.h>

#include <cerrno>
#include <cstring>

namespace plugrad::test {
namespace {

// Returns the last line of stderr; the lines before it show progress.
Outcome last_line_of(Outcome outcome) {
  const size_t before = outcome.err.rfind('\n', outcome.err.size() - 2);
  if (before != std::string::npos) outcome.err.erase(0, before + 1);
  return outcome;
}

TEST(Failure, WhatCannotBeReadOrFoundIsNamed) {
  const Scratch scratch;
  const std::string images = scratch.write("images", idx_bytes({10, 4, 4})),
                    labels = scratch.write("labels", idx_bytes({10}));
  const std::string cut = scratch.write("cut", idx_bytes({10, 4, 4}).substr(0, 90)),
                    text = scratch.write("text", "some text");
  const auto idx = [&](const std::string& x, const std::string& y) {
    return train({"--data", "idx", "--images", x, "--labels", y, "--out", scratch.path("run")});
  };
  expect_complaint(train({"--data", "moons", "--device", "abacus"}), 1, "no device 'abacus'");
  expect_complaint(train({"--data", "mnist"}), 1, "no data called 'mnist': expected fashion-mnist, moons or idx");
  expect_complaint(train({"--data-dir", scratch.folder()}), 1, "apt-get install dataset-fashion-mnist");
  expect_complaint(idx(scratch.path("absent"), labels), 1, "No such file");
  expect_complaint(idx(cut, labels), 1, "[" + cut + "] is cut short");
  expect_complaint(idx(text, labels), 1, "[" + text + "] is not an IDX file");
  expect_complaint(idx(images, scratch.write("nine", idx_bytes({9}))), 1, "holds 9 labels");
  EXPECT_FALSE(std::filesystem::exists(scratch.path("run")));
  expect_complaint(train({"--data", "moons", "--out", images}), 1, "[" + images + "] cannot be created");
  expect_complaint(train({"--data", "moons", "--out", "/proc"}), 1, "[/proc/checkpoint.safetensors] cannot be written");
}

TEST(Failure, ACheckpointThatDoesNotFitIsNamedWithBothShapes) {
  const Scratch scratch;
  ASSERT_EQ(train({"--data", "moons", "--steps", "3", "--out", scratch.path("run")}).status, 0);
  const std::string checkpoint = scratch.path("run/checkpoint.safetensors"), bytes = read_file(checkpoint);
  const auto resume = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--resume", checkpoint});
    return train(more);
  };
  expect_complaint(resume({"--hidden", "8,16"}), 1, "tensor model.0.weight is f32 (16, 2), expected f32 (8, 2)");
  expect_complaint(resume({"--hidden", "16"}), 1, "tensor model.2.weight is f32 (16, 16), expected f32 (1, 16)");
  expect_complaint(resume({"--hidden", "16,16,16"}), 1, "tensor model.4.");
  expect_complaint(resume({"--batch", "64"}), 2, "--batch cannot change when a run is resumed; this one has 32");
  expect_complaint(resume({"--seed", "2"}), 2, "--seed cannot change");
  expect_complaint(resume({"--data", "fashion-mnist"}), 2, "--data cannot change when a run is resumed; this one has moons");
  EXPECT_EQ(read_file(checkpoint), bytes);
}

TEST(Failure, AFileThatIsNoCheckpointIsRefused) {
  const Scratch scratch;
  ASSERT_EQ(train({"--data", "moons", "--steps", "3", "--out", scratch.path("run")}).status, 0);
  const std::string bytes = read_file(scratch.path("run/checkpoint.safetensors"));
  const std::string cut = scratch.write("cut", bytes.substr(0, bytes.size() - 1));
  std::string corrupt = bytes;
  corrupt[20] = '\x01';
  const std::string plain = scratch.write("plain", std::string("\2\0\0\0\0\0\0\0{}", 10));
  std::string renamed = bytes;
  const size_t at = renamed.find("\\\"epochs\\\":100");
  ASSERT_NE(at, std::string::npos);
  renamed.replace(at, 12, "\\\"epoxhs\\\":1");
  const std::vector<std::pair<std::string, std::string>> rows = {
      {scratch.path("absent"), "No such file"},
      {cut, "is not a valid safetensors file"},
      {scratch.write("corrupt", corrupt), "is not a valid safetensors file: its header is not JSON"},
      {plain, "is not a checkpoint of plugrad train: its metadata have no 'format'"},
      {scratch.write("renamed", renamed), "is not a checkpoint of plugrad train: its config is not a configuration"},
  };
  for (const auto& [path, words] : rows) {
    SCOPED_TRACE(path);
    expect_complaint(train({"--resume", path}), 1, words);
    expect_complaint(plugrad_run({"eval", "--checkpoint", path}), 1, words);
  }
}

// The first part of the run stays below the limit; its next checkpoint exceeds the limit.
TEST(Failure, ADiskThatFillsUpWhileSavingLeavesTheOldCheckpoint) {
  const Scratch scratch;
  ASSERT_EQ(train({"--data", "moons", "--steps", "40", "--out", scratch.path("run")}).status, 0);
  const std::string checkpoint = scratch.path("run/checkpoint.safetensors"), bytes = read_file(checkpoint);
  const Outcome outcome = train({"--resume", checkpoint, "--steps", "200"}, {.file_size = bytes.size() - 100});
  EXPECT_EQ(outcome.signal, 0);
  expect_complaint(last_line_of(outcome), 1,
                   "checkpoint.safetensors] cannot be written: File too large; the previous file is unchanged");
  EXPECT_EQ(read_file(checkpoint), bytes);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path("run")), {}), 4);
  EXPECT_EQ(train({"--resume", checkpoint, "--steps", "41"}).status, 0);
}

TEST(Failure, AFullFileSystemIsNamed) {
  const Scratch scratch;
  if (mount("none", scratch.folder().c_str(), "tmpfs", 0, "size=16k") != 0) {
    GTEST_SKIP() << "a small file system cannot be mounted here: " << std::strerror(errno);
  }
  const Outcome outcome = train({"--data", "moons", "--steps", "40", "--out", scratch.path("run"), "--hidden", "64,64"});
  expect_complaint(last_line_of(outcome), 1, "No space left on device");
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path("run")));
  EXPECT_EQ(umount2(scratch.folder().c_str(), MNT_DETACH), 0);
}

}  // namespace
}  // namespace plugrad::test
