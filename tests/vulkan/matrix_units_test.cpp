// Matrix units: the plugin's choice among a driver's products, and its translation of the shader. The conformance program
// runs the shader if a driver has VK_KHR_cooperative_matrix.
#include <backends/vulkan/pipelines.hpp>
#include <backends/vulkan/spirv.hpp>

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace plugrad::vulkan {
namespace {

constexpr auto kF16 = VK_COMPONENT_TYPE_FLOAT16_KHR, kF32 = VK_COMPONENT_TYPE_FLOAT32_KHR;
constexpr auto kI8 = static_cast<VkComponentTypeKHR>(3), kI32 = static_cast<VkComponentTypeKHR>(5);

VkCooperativeMatrixPropertiesKHR product(uint32_t m, uint32_t n, uint32_t k, VkComponentTypeKHR factor,
                                         VkComponentTypeKHR sum, VkScopeKHR scope = VK_SCOPE_SUBGROUP_KHR) {
  return {VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR, nullptr, m, n, k, factor, factor, sum, sum, VK_FALSE, scope};
}

// The products that the driver below offers.
std::vector<VkCooperativeMatrixPropertiesKHR>& offered() {
  static std::vector<VkCooperativeMatrixPropertiesKHR> list;
  return list;
}

VKAPI_ATTR VkResult VKAPI_CALL answer(VkPhysicalDevice, uint32_t* count, VkCooperativeMatrixPropertiesKHR* properties) {
  if (properties) std::copy(offered().begin(), offered().end(), properties);
  *count = static_cast<uint32_t>(offered().size());
  return VK_SUCCESS;
}

MatrixUnits found(uint32_t subgroup) {
  InstanceFunctions functions;
  functions.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR = answer;
  return find_matrix_units(functions, nullptr, subgroup);
}

TEST(MatrixUnits, TakesTheFirstProductThatTheShaderCanUse) {
  constexpr auto kWorkgroup = static_cast<VkScopeKHR>(2);
  offered() = {product(16, 16, 32, kI8, kI32),  product(16, 16, 16, kF16, kF16), product(16, 16, 16, kF16, kF32, kWorkgroup),
               product(48, 16, 16, kF16, kF32), product(16, 16, 64, kF16, kF32), product(16, 4, 16, kF16, kF32),
               product(16, 8, 16, kF16, kF32),  product(16, 16, 16, kF16, kF32)};
  const MatrixUnits units = found(32);
  EXPECT_EQ(units.rows, 16u);
  EXPECT_EQ(units.columns, 8u);
  EXPECT_EQ(units.inner, 16u);
}

TEST(MatrixUnits, SubgroupsShareTheFragmentsOfATile) {
  offered() = {product(16, 16, 16, kF16, kF32)};  // 16 fragments in a tile
  EXPECT_EQ(found(32).fragments, 2u);
  EXPECT_EQ(found(64).fragments, 4u);
  EXPECT_EQ(found(8).fragments, 1u);
}

TEST(MatrixUnits, DevicesWithoutUsableProductsHaveNone) {
  offered() = {};
  EXPECT_EQ(found(32).rows, 0u);
  offered() = {product(16, 16, 16, kF16, kF16)};
  EXPECT_EQ(found(32).rows, 0u);
  offered() = {product(16, 16, 16, kF16, kF32)};
  EXPECT_EQ(found(48).rows, 0u) << "no whole number of subgroups in a workgroup";
  EXPECT_EQ(find_matrix_units(InstanceFunctions(), nullptr, 32).rows, 0u)
      << "the Vulkan library does not know the extension";
}

std::vector<uint32_t> rewritten(std::string_view name) {
  const Shader& shader = shader_of(name);
  return with_khr_matrices({shader.words, shader.count});
}

// The instructions of a module: their number for each opcode, and the constants of 32 bits.
struct Instructions {
  std::map<uint32_t, int> counts;
  std::map<uint32_t, uint32_t> constants;  // by id
  std::vector<std::span<const uint32_t>> types;

  explicit Instructions(std::span<const uint32_t> module) {
    for (size_t at = kHeaderWords; at < module.size(); at += words_of(module[at])) {
      const auto in = module.subspan(at, words_of(module[at]));
      ++counts[opcode_of(in[0])];
      if (opcode_of(in[0]) == kOpConstant && in.size() == 4) constants[in[2]] = in[3];
      if (opcode_of(in[0]) == kOpTypeCooperativeMatrixKHR) types.push_back(in);
    }
  }
};

TEST(MatrixUnits, TheShaderHasMatricesOfTheKhronosExtensionAlone) {
  const std::vector<uint32_t> module = rewritten("product_units");
  const Instructions given({shader_of("product_units").words, shader_of("product_units").count}), made(module);
  constexpr uint32_t kPairs[][2] = {{kOpTypeCooperativeMatrixNV, kOpTypeCooperativeMatrixKHR},
                                    {kOpCooperativeMatrixLoadNV, kOpCooperativeMatrixLoadKHR},
                                    {kOpCooperativeMatrixStoreNV, kOpCooperativeMatrixStoreKHR},
                                    {kOpCooperativeMatrixMulAddNV, kOpCooperativeMatrixMulAddKHR}};
  for (const auto& [old, now] : kPairs) {
    EXPECT_FALSE(made.counts.contains(old)) << old;
    ASSERT_TRUE(made.counts.contains(now)) << now;
    EXPECT_EQ(made.counts.at(now), given.counts.at(old)) << now;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(module.data()), module.size() * sizeof(uint32_t));
  EXPECT_NE(bytes.find("SPV_KHR_cooperative_matrix"), bytes.npos);
  EXPECT_EQ(bytes.find("SPV_NV_cooperative_matrix"), bytes.npos);
}

// The shader has a left factor, a right factor and a sum. Matrices are row-major in memory; that layout has the number 0.
TEST(MatrixUnits, TheShaderSaysWhatEachMatrixIsFor) {
  const std::vector<uint32_t> module = rewritten("product_units");
  const Instructions made(module);
  std::set<uint32_t> uses;
  for (const auto& type : made.types) {
    ASSERT_EQ(type.size(), 7u);
    ASSERT_TRUE(made.constants.contains(type[6]));
    uses.insert(made.constants.at(type[6]));
  }
  EXPECT_EQ(uses, (std::set<uint32_t>{0, 1, 2}));
  for (size_t at = kHeaderWords; at < module.size(); at += words_of(module[at])) {
    const uint32_t opcode = opcode_of(module[at]);
    const size_t layout = opcode == kOpCooperativeMatrixLoadKHR ? 4 : opcode == kOpCooperativeMatrixStoreKHR ? 3 : 0;
    if (!layout) continue;
    EXPECT_EQ(made.constants.at(module[at + layout]), 0u);
    EXPECT_GE(made.constants.at(module[at + layout + 1]), 32u) << "the stride, in elements";
  }
  for (const auto& [id, value] : made.constants) EXPECT_LT(id, module[kBoundAt]);
}

TEST(MatrixUnits, OtherShadersStayAsTheyAre) {
  const Shader& shader = shader_of("product_f32");
  EXPECT_EQ(rewritten("product_f32"), std::vector<uint32_t>(shader.words, shader.words + shader.count));
  EXPECT_FALSE(has_matrices({shader.words, shader.count}));
  EXPECT_TRUE(has_matrices({shader_of("product_units").words, shader_of("product_units").count}));
}

}  // namespace
}  // namespace plugrad::vulkan
