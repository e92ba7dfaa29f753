// The fusions of the CUDA backend: NVRTC compiles the sources of random fusions for the oldest architecture and a newer one.
// Other tests cover fusions that cannot be written, and a machine on which no compiler is found.
#include <backends/cuda/code_cache.hpp>
#include <backends/cuda/fusion_source.hpp>
#include <backends/cuda/nvrtc.hpp>
#include <sdk/conformance/fusion_problem.hpp>

#include <gtest/gtest.h>

#include <unistd.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace plugrad::cuda {
namespace {

using conformance::FusionProblem;

std::unique_ptr<const Nvrtc> open_real() {
  if (*PLUGRAD_REAL_NVRTC) setenv("PLUGRAD_NVRTC", PLUGRAD_REAL_NVRTC, 1);
  std::string why;
  return *PLUGRAD_REAL_NVRTC ? Nvrtc::open(why) : nullptr;
}

FusionSource source_for(const FusionProblem& problem) {
  const std::vector<uint64_t> block = packed(problem.parts);
  return source_of(*reinterpret_cast<const plugrad_fusion*>(block.data()));
}

// A fusion of one op, without broadcast operands.
FusionProblem single(const OpInfo& op, uint8_t dtype) {
  FusionProblem problem;
  problem.parts.inputs = op.inputs;
  std::vector<uint16_t> arguments;
  for (int k = 0; k < op.inputs; ++k) {
    const uint8_t its = op.operand_dtype(op.outputs + k, dtype);
    problem.parts.values.push_back({its ? its : uint8_t{PLUGRAD_F32}, 0});
    arguments.push_back(static_cast<uint16_t>(k));
  }
  problem.parts.values.push_back({op.operand_dtype(0, dtype), 0});
  problem.parts.lines = {{op.opcode, arguments}};
  problem.parts.outputs = {{op.inputs, PLUGRAD_FUSION_NONE}};
  return problem;
}

// All elementwise ops of a dtype, each as a line with its own outputs, so that one compilation covers many ops.
FusionProblem every_op(uint8_t dtype, size_t first, size_t count) {
  FusionProblem all;
  all.parts.inputs = 4;
  const uint8_t other = dtype == PLUGRAD_F32 ? PLUGRAD_I64 : PLUGRAD_F32;
  all.parts.values = {{dtype, 0}, {dtype, 0}, {PLUGRAD_BOOL, 0}, {other, 0}};
  size_t place = 0;
  for (const OpInfo& op : kOps) {
    const bool is_written = op.shape == OpShape::elementwise || op.shape == OpShape::copy || op.opcode == PLUGRAD_OP_FILL;
    if (!is_written || !op.is_for(dtype) || place++ < first || place > first + count) continue;
    std::vector<uint16_t> arguments;
    for (int k = 0; k < op.inputs; ++k) {
      const uint8_t its = op.operand_dtype(op.outputs + k, dtype);
      arguments.push_back(its == PLUGRAD_BOOL && dtype != PLUGRAD_BOOL ? 2 : !its ? 3 : static_cast<uint16_t>(k % 2));
    }
    all.parts.lines.push_back({op.opcode, arguments});
    all.parts.values.push_back({op.operand_dtype(0, dtype), 0});
    all.parts.outputs.push_back({static_cast<uint16_t>(all.parts.values.size() - 1), PLUGRAD_FUSION_NONE});
  }
  return all;
}

TEST(FusionSource, CompilesEachOpOfEachDType) {
  const auto nvrtc = open_real();
  if (!nvrtc) GTEST_SKIP() << "no NVRTC is installed";
  constexpr size_t kAtOnce = 24;
  for (const DTypeInfo& dtype : kDTypes)
    for (size_t first = 0;; first += kAtOnce) {
      const FusionProblem problem = every_op(dtype.dtype, first, kAtOnce);
      if (problem.parts.lines.empty()) break;
      const FusionSource source = source_for(problem);
      ASSERT_FALSE(source.text.empty());
      for (const char* architecture : {"sm_75", "sm_90"}) {
        std::string why;
        EXPECT_FALSE(nvrtc->compile(source.text, architecture, why).empty()) << why << source.text;
      }
    }
}

// Each update op, of two whole inputs and with a number.
FusionProblem every_update(uint8_t dtype) {
  FusionProblem all;
  all.parts.inputs = 3;
  all.parts.values = {{dtype, 0}, {dtype, 0}, {dtype, 1}};
  for (const OpInfo& op : kOps) {
    if (op.shape != OpShape::update || !op.is_for(dtype)) continue;
    FusionParts::Line line{op.opcode, {}, op.outputs};
    for (int k = 0; k < op.outputs + op.inputs; ++k)
      line.arguments.push_back(k > op.outputs ? 2 : static_cast<uint16_t>(k % 2));
    line.attributes.resize(sizeof(plugrad_adam));
    const plugrad_sgd sgd{sizeof sgd, 1, 0.9, 0.01};
    const plugrad_adam adam{sizeof adam, 1, 0.9, 0.999, 1e-8, 0.01};
    if (op.opcode == PLUGRAD_OP_SGD_STEP) std::memcpy(line.attributes.data(), &sgd, sizeof sgd);
    if (op.opcode == PLUGRAD_OP_ADAM_STEP) std::memcpy(line.attributes.data(), &adam, sizeof adam);
    for (int k = 0; k < op.outputs; ++k) {
      all.parts.outputs.push_back({static_cast<uint16_t>(all.parts.values.size()), PLUGRAD_FUSION_NONE});
      all.parts.values.push_back({dtype, 0});
    }
    all.parts.lines.push_back(std::move(line));
  }
  return all;
}

TEST(FusionSource, CompilesEachUpdateOfEachDType) {
  const auto nvrtc = open_real();
  if (!nvrtc) GTEST_SKIP() << "no NVRTC is installed";
  for (const DTypeInfo& dtype : kDTypes) {
    const FusionProblem problem = every_update(dtype.dtype);
    if (problem.parts.lines.empty()) continue;
    EXPECT_EQ(problem.parts.lines.size(), 3u);
    const FusionSource source = source_for(problem);
    ASSERT_NE(source.text.find("AdamStep"), std::string::npos) << source.text;
    std::string why;
    EXPECT_FALSE(nvrtc->compile(source.text, "sm_75", why).empty()) << why << source.text;
  }
}

TEST(FusionSource, SaysWhatTheCompilerSays) {
  const auto nvrtc = open_real();
  if (!nvrtc) GTEST_SKIP() << "no NVRTC is installed";
  std::string why;
  EXPECT_TRUE(nvrtc->compile("extern \"C\" __global__ void f() { g(); }", "sm_90", why).empty());
  EXPECT_NE(why.find("\"g\" is undefined"), std::string::npos) << why;
}

// A reduction of a product along one of two axes; the product is also stored.
FusionProblem reduction(uint32_t opcode, uint8_t dtype, unsigned axes) {
  FusionProblem problem;
  problem.parts.rank = 2;
  problem.parts.inputs = 2;
  const OpInfo& op = *op_info(opcode);
  problem.parts.values = {{dtype, 0}, {dtype, 0}, {dtype, 0}, {op.operand_dtype(0, dtype), static_cast<uint8_t>(axes)}};
  problem.parts.lines = {{PLUGRAD_OP_MUL, {0, 1}}, {opcode, {2}}};
  problem.parts.outputs = {{2, PLUGRAD_FUSION_NONE}, {3, PLUGRAD_FUSION_NONE}};
  return problem;
}

TEST(FusionSource, CompilesEachReductionOfEachDType) {
  const auto nvrtc = open_real();
  if (!nvrtc) GTEST_SKIP() << "no NVRTC is installed";
  int compiled = 0;
  for (const uint32_t opcode : {PLUGRAD_OP_SUM, PLUGRAD_OP_MAX, PLUGRAD_OP_MIN})
    for (const DTypeInfo& dtype : kDTypes)
      for (const unsigned axes : {1u, 2u}) {
        if (!op_info(opcode)->is_for(dtype.dtype) || !op_info(PLUGRAD_OP_MUL)->is_for(dtype.dtype)) continue;
        const FusionSource source = source_for(reduction(opcode, dtype.dtype, axes));
        if (source.text.empty()) continue;
        std::string why;
        EXPECT_FALSE(nvrtc->compile(source.text, axes == 1 ? "sm_75" : "sm_90", why).empty()) << why << source.text;
        ++compiled;
      }
  EXPECT_GE(compiled, 3 * 2 * 5);
}

// Ops that continue after a row's sum: quotients by the sum minus their maximum, and the square root of the sum.
FusionProblem rows(uint8_t dtype, unsigned axes) {
  FusionProblem problem = reduction(PLUGRAD_OP_SUM, dtype, axes);
  problem.parts.lines.push_back({PLUGRAD_OP_DIV, {2, 3}});
  problem.parts.lines.push_back({PLUGRAD_OP_MAX, {4}});
  problem.parts.lines.push_back({PLUGRAD_OP_SUB, {4, 5}});
  problem.parts.lines.push_back({PLUGRAD_OP_SQRT, {3}});
  const auto of_line = static_cast<uint8_t>(axes);
  for (const uint8_t its : {uint8_t{0}, of_line, uint8_t{0}, of_line}) problem.parts.values.push_back({dtype, its});
  problem.parts.outputs = {{6, PLUGRAD_FUSION_NONE}, {7, PLUGRAD_FUSION_NONE}};
  return problem;
}

TEST(FusionSource, CompilesWhatGoesOnAfterRows) {
  const auto nvrtc = open_real();
  if (!nvrtc) GTEST_SKIP() << "no NVRTC is installed";
  for (const uint8_t dtype : {uint8_t{PLUGRAD_F32}, uint8_t{PLUGRAD_F64}, uint8_t{PLUGRAD_BF16}}) {
    const FusionSource source = source_for(rows(dtype, 2));
    ASSERT_TRUE(source.goes_on) << source.text;
    for (const char* architecture : {"sm_75", "sm_90"}) {
      std::string why;
      EXPECT_FALSE(nvrtc->compile(source.text, architecture, why).empty()) << why << source.text;
    }
  }
}

TEST(FusionSource, IsNotWrittenForRepeatedOutputsAndWhatGoesOnAfterColumns) {
  EXPECT_FALSE(source_for(single(*op_info(PLUGRAD_OP_RELU), PLUGRAD_F32)).text.empty());
  FusionProblem repeated = single(*op_info(PLUGRAD_OP_RELU), PLUGRAD_F32);
  repeated.parts.values[1].axes = 1;
  EXPECT_TRUE(source_for(repeated).text.empty());
  EXPECT_FALSE(source_for(rows(PLUGRAD_F32, 2)).text.empty());
  EXPECT_TRUE(source_for(rows(PLUGRAD_F32, 1)).text.empty());
}

// All accumulators of a fusion have the same size and reduce the same axes, so that their bytes can be moved as words.
TEST(FusionSource, IsNotWrittenForReductionsThatDiffer) {
  const auto both = [](unsigned first, unsigned second, uint8_t dtype, uint32_t opcode) {
    FusionProblem problem = reduction(PLUGRAD_OP_SUM, dtype, first);
    problem.parts.lines.push_back({opcode, {2}});
    problem.parts.values.push_back({op_info(opcode)->operand_dtype(0, dtype), static_cast<uint8_t>(second)});
    problem.parts.outputs.push_back({4, PLUGRAD_FUSION_NONE});
    return source_for(problem).text;
  };
  EXPECT_FALSE(both(2, 2, PLUGRAD_F32, PLUGRAD_OP_MAX).empty());
  EXPECT_TRUE(both(2, 1, PLUGRAD_F32, PLUGRAD_OP_MAX).empty());
  EXPECT_TRUE(both(2, 2, PLUGRAD_U8, PLUGRAD_OP_MAX).empty());  // sums of u8 are i64
}

// NVRTC installs handlers for SIGINT and other signals while it compiles.
TEST(Nvrtc, KeepsTheHandlersOfTheProcess) {
  const auto nvrtc = open_real();
  if (!nvrtc) GTEST_SKIP() << "no NVRTC is installed";
  struct sigaction own{}, before{}, after{};
  own.sa_sigaction = [](int, siginfo_t*, void*) {};
  own.sa_flags = SA_SIGINFO | SA_RESETHAND;
  sigaddset(&own.sa_mask, SIGUSR1);
  for (const int signal : {SIGINT, SIGTERM, SIGXFSZ}) {
    ASSERT_EQ(sigaction(signal, &own, &before), 0);
    std::string why;
    EXPECT_FALSE(nvrtc->compile("extern \"C\" __global__ void f(float* x) { *x = 1; }", "sm_90", why).empty()) << why;
    ASSERT_EQ(sigaction(signal, &before, &after), 0);
    EXPECT_EQ(after.sa_sigaction, own.sa_sigaction);
    EXPECT_EQ(after.sa_flags & own.sa_flags, own.sa_flags);
    EXPECT_TRUE(sigismember(&after.sa_mask, SIGUSR1));
  }
}

TEST(Nvrtc, NamesThePlacesWhereItIsNot) {
  setenv("PLUGRAD_NVRTC", "/nowhere/libnvrtc.so", 1);
  std::string why;
  EXPECT_EQ(Nvrtc::open(why), nullptr);
  for (const char* part : {"/nowhere/libnvrtc.so", "run singly", "pip install nvidia-cuda-nvrtc"})
    EXPECT_NE(why.find(part), std::string::npos) << why;
}

class CodeCacheOnDisk : public testing::Test {
 protected:
  ~CodeCacheOnDisk() override { std::filesystem::remove_all(folder_); }
  std::unique_ptr<CodeCache> cache(const std::string& architecture = "sm_90", const std::string& compiler = "13.0",
                                   const std::string& build = "1") const {
    return std::make_unique<CodeCache>("cuda", architecture, compiler, build, folder_.c_str(), std::chrono::hours(1));
  }
  // In another process, as it were.
  void add(const std::string& source, const std::string& code) const { cache()->add(source, code); }
  std::string found(const std::string& source) const { return found(source, *cache()); }
  static std::string found(const std::string& source, CodeCache& cache) {
    const std::vector<char> code = cache.find(source);
    return {code.begin(), code.end()};
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("plugrad-codes-" + std::to_string(getpid()));
};

TEST_F(CodeCacheOnDisk, IsForOneSourceArchitectureCompilerAndBuild) {
  add("a", "one");
  add("b", "");
  add("ab", std::string("two\0three", 9));
  EXPECT_EQ(found("a"), "one");
  EXPECT_EQ(found("ab"), std::string("two\0three", 9));
  EXPECT_EQ(found("c"), "");
  EXPECT_EQ(found("a", *cache("sm_80")), "");
  EXPECT_EQ(found("a", *cache("sm_90", "13.1")), "");
  EXPECT_EQ(found("a", *cache("sm_90", "13.0", "2")), "");
  add("a", "newer");
  EXPECT_EQ(found("a"), "newer");
  EXPECT_EQ(found("ab"), std::string("two\0three", 9));
}

TEST_F(CodeCacheOnDisk, KeepsWhatAnotherProcessWrote) {
  const auto first = cache(), second = cache();
  EXPECT_TRUE(first->find("a").empty());
  second->add("b", std::string("code"));
  first->add("a", std::string("code"));
  EXPECT_EQ(found("a"), "code");
  EXPECT_EQ(found("b"), "code");
}

TEST_F(CodeCacheOnDisk, DropsWhatWasUsedLeastRecently) {
  const std::string third(CodeCache::kMostBytes / 3, 'x');
  const auto mine = cache();
  for (const char* source : {"a", "b"}) mine->add(source, third);
  EXPECT_FALSE(mine->find("a").empty());
  mine->add("c", third);
  mine->write();
  EXPECT_FALSE(found("a").empty());
  EXPECT_TRUE(found("b").empty());
  EXPECT_FALSE(found("c").empty());
}

// Many fusions are compiled in turn: the first is written at once, and all when the compiler has nothing more to do, also
// those of other devices.
TEST_F(CodeCacheOnDisk, IsNotWrittenForEachFusion) {
  const auto mine = cache(), other = cache("sm_80");
  for (CodeCache* each : {mine.get(), other.get()})
    for (const char* source : {"a", "b", "c"}) each->add(source, std::string("code"));
  EXPECT_EQ(found("a"), "code");
  EXPECT_EQ(found("b"), "");
  CodeCache::write_all();
  for (const char* architecture : {"sm_90", "sm_80"})
    for (const char* source : {"a", "b", "c"}) EXPECT_EQ(found(source, *cache(architecture)), "code");
}

}  // namespace
}  // namespace plugrad::cuda
