#include <backends/vulkan/pipelines.hpp>

#include <backends/vulkan/spirv.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

namespace plugrad::vulkan {
namespace {

// SPIR-V's numbers of what GLSL cannot say.
enum : uint32_t {
  kDenormPreserve = 4459,
  kSignedZeroInfNanPreserve = 4461,
  kRoundingModeRTE = 4462,
  kFromModeToCapability = 5,  // the number of a mode's capability is larger by this
};

// Returns the module with execution modes that demand the rounding of its floating numbers, where the device offers them.
// In a module capabilities come first, and execution modes follow the entry point.
std::vector<uint32_t> with_float_modes(std::span<const uint32_t> given, int float_bits, const Abilities& abilities) {
  std::vector<uint32_t> modes;
  if (float_bits == 32) {
    if (abilities.keeps_denormals) modes.push_back(kDenormPreserve);
    if (abilities.keeps_nans) modes.push_back(kSignedZeroInfNanPreserve);
    if (abilities.rounds) modes.push_back(kRoundingModeRTE);
  }
  std::vector<uint32_t> module(given.begin(), given.begin() + kHeaderWords);
  uint32_t entry = 0, last = kOpCapability;
  for (size_t at = kHeaderWords; at < given.size(); at += words_of(given[at])) {
    const uint32_t opcode = opcode_of(given[at]);
    if (last == kOpCapability && opcode != kOpCapability)
      for (const uint32_t mode : modes)
        module.insert(module.end(), {first_word(kOpCapability, 2), mode + kFromModeToCapability});
    if (last == kOpEntryPoint && opcode != kOpEntryPoint)
      for (const uint32_t mode : modes) module.insert(module.end(), {first_word(kOpExecutionMode, 4), entry, mode, 32});
    if (opcode == kOpEntryPoint) entry = given[at + 2];
    module.insert(module.end(), given.begin() + at, given.begin() + at + words_of(given[at]));
    last = opcode;
  }
  return module;
}

// All specialisation constants, by their numbers in the shaders.
struct Constants {
  uint32_t op, mode, may_flush, corrected, emulated, source, target;
};

VkSpecializationInfo specialization_of(const Constants& constants, std::vector<VkSpecializationMapEntry>& entries) {
  for (uint32_t i = 0; i < sizeof constants / sizeof(uint32_t); ++i)
    entries.push_back({i, i * static_cast<uint32_t>(sizeof(uint32_t)), sizeof(uint32_t)});
  return {static_cast<uint32_t>(entries.size()), entries.data(), sizeof constants, &constants};
}

}  // namespace

Pipelines::Pipelines(Device& device) : device_(device) {
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(VkDeviceAddress)};
  auto info = typed<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  const DeviceFunctions& f = device.functions();
  device.check(f.vkCreatePipelineLayout(device.handle(), &info, nullptr, &layout_), "vkCreatePipelineLayout");
}

void Pipelines::prepare(const Recipe& recipe) {
  for (uint32_t mode = 0; mode < kModes; ++mode) {
    if (!(recipe.modes >> mode & 1) || recipe.of(mode)) continue;
    const std::lock_guard lock(mutex_);
    if (recipe.of(mode)) continue;
    const std::span module(recipe.shader->words, recipe.shader->count);
    const OpConstants constants{recipe.opcode, mode, recipe.source, recipe.target};
    recipe.made[mode].store(compile(module, recipe.shader->float_bits, constants), std::memory_order_release);
  }
}

VkPipeline Pipelines::compile(std::span<const uint32_t> module, int float_bits, const OpConstants& of_op) {
  const DeviceFunctions& f = device_.functions();
  const std::vector<uint32_t> words = with_float_modes(module, float_bits, device_.candidate().abilities);
  auto code = typed<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  code.codeSize = words.size() * sizeof(uint32_t);
  code.pCode = words.data();
  auto info = typed<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.layout = layout_;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.pName = "main";
  device_.check(f.vkCreateShaderModule(device_.handle(), &code, nullptr, &info.stage.module), "vkCreateShaderModule");
  const Arithmetic& a = device_.arithmetic();
  const Constants constants{of_op.op, of_op.mode, a.flushes, a.corrected, a.emulated, of_op.source, of_op.target};
  std::vector<VkSpecializationMapEntry> entries;
  const VkSpecializationInfo special = specialization_of(constants, entries);
  info.stage.pSpecializationInfo = &special;
  VkPipeline made = nullptr;
  const VkResult result = f.vkCreateComputePipelines(device_.handle(), nullptr, 1, &info, nullptr, &made);
  f.vkDestroyShaderModule(device_.handle(), info.stage.module, nullptr);
  device_.check(result, "vkCreateComputePipelines");
  return made;
}

}  // namespace plugrad::vulkan
