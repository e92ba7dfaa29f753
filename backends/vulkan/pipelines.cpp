#include <backends/vulkan/pipelines.hpp>

#include <backends/vulkan/spirv.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

namespace plugrad::vulkan {
namespace {

// SPIR-V's numbers of features missing in GLSL.
enum : uint32_t {
  kDenormPreserve = 4459,
  kSignedZeroInfNanPreserve = 4461,
  kRoundingModeRTE = 4462,
  kFromModeToCapability = 5,  // the number of a mode's capability is larger by this
};

// Returns the module with execution modes for the rounding of its floating numbers, where the device offers them. In a
// module capabilities come first, and execution modes follow the entry point.
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
  MatrixUnits units;
};

VkSpecializationInfo specialization_of(const Constants& constants, std::vector<VkSpecializationMapEntry>& entries) {
  for (uint32_t i = 0; i < sizeof constants / sizeof(uint32_t); ++i)
    entries.push_back({i, i * static_cast<uint32_t>(sizeof(uint32_t)), sizeof(uint32_t)});
  return {static_cast<uint32_t>(entries.size()), entries.data(), sizeof constants, &constants};
}

}  // namespace

Pipelines::Pipelines(Device& device, const char* directory)
    : device_(device), file_(directory, device.candidate().properties) {
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(VkDeviceAddress)};
  auto info = typed<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  const DeviceFunctions& f = device.functions();
  device.check(f.vkCreatePipelineLayout(device.handle(), &info, nullptr, &layout_), "vkCreatePipelineLayout");
  if (!file_.path().empty()) cache_ = make_cache(file_.read());
}

// Returns null if the driver makes no cache: pipelines are then compiled each time.
VkPipelineCache Pipelines::make_cache(std::span<const char> data) const {
  auto info = typed<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  info.initialDataSize = data.size();
  info.pInitialData = data.data();
  VkPipelineCache made = nullptr;
  const VkResult result = device_.functions().vkCreatePipelineCache(device_.handle(), &info, nullptr, &made);
  return result == VK_SUCCESS ? made : nullptr;
}

void Pipelines::save_if_late() noexcept {
  const std::unique_lock lock(saving_, std::try_to_lock);
  const uint32_t unsaved = unsaved_;
  const auto since_last = std::chrono::steady_clock::now() - last_.load();
  if (!lock || (unsaved < 1 + saved_ / 2 && since_last < std::chrono::seconds(1))) return;
  unsaved_ -= unsaved;
  saved_ += unsaved;
  try {
    save();
  } catch (const std::bad_alloc&) {  // a later process compiles again
  }
}

void Pipelines::save() {
  const DeviceFunctions& f = device_.functions();
  // Keeps the pipelines that another process has stored meanwhile.
  if (const std::vector<char> stored = file_.read(); !stored.empty())
    if (const VkPipelineCache other = make_cache(stored)) {
      f.vkMergePipelineCaches(device_.handle(), cache_, 1, &other);
      f.vkDestroyPipelineCache(device_.handle(), other, nullptr);
    }
  size_t bytes = 0;
  if (f.vkGetPipelineCacheData(device_.handle(), cache_, &bytes, nullptr) != VK_SUCCESS) return;
  std::vector<char> data(bytes);
  if (f.vkGetPipelineCacheData(device_.handle(), cache_, &bytes, data.data()) != VK_SUCCESS) return;  // it grew meanwhile
  file_.write(std::span(data).first(bytes));
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
  const bool on_units = has_matrices(module);
  const std::vector<uint32_t> khr = on_units ? with_khr_matrices(module) : std::vector<uint32_t>();
  const std::vector<uint32_t> words = with_float_modes(on_units ? khr : module, float_bits, device_.candidate().abilities);
  auto code = typed<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  code.codeSize = words.size() * sizeof(uint32_t);
  code.pCode = words.data();
  auto info = typed<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.layout = layout_;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  if (on_units) info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  info.stage.pName = "main";
  device_.check(f.vkCreateShaderModule(device_.handle(), &code, nullptr, &info.stage.module), "vkCreateShaderModule");
  const Arithmetic& a = device_.arithmetic();
  const Constants constants{of_op.op,   of_op.mode,   a.flushes,    a.corrected,
                            a.emulated, of_op.source, of_op.target, device_.matrix_units()};
  std::vector<VkSpecializationMapEntry> entries;
  const VkSpecializationInfo special = specialization_of(constants, entries);
  info.stage.pSpecializationInfo = &special;
  VkPipeline made = nullptr;
  const VkResult result = f.vkCreateComputePipelines(device_.handle(), cache_, 1, &info, nullptr, &made);
  f.vkDestroyShaderModule(device_.handle(), info.stage.module, nullptr);
  device_.check(result, "vkCreateComputePipelines");
  if (cache_) {
    last_ = std::chrono::steady_clock::now();
    ++unsaved_;
  }
  return made;
}

}  // namespace plugrad::vulkan
