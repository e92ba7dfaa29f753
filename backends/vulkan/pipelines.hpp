// Compute pipelines: a shader with the constants of one op.
#pragma once
#include <backends/vulkan/cache_file.hpp>
#include <backends/vulkan/device.hpp>

#include <array>
#include <chrono>
#include <mutex>
#include <span>
#include <string_view>

namespace plugrad::vulkan {

// A module of SPIR-V, made at build time.
struct Shader {
  std::string_view name;
  const uint32_t* words;
  size_t count;
  int float_bits;  // the width of its floating numbers; a pipeline may demand their rounding; 0: none
};

// Returns the shader of this name. A missing shader is a bug.
const Shader& shader_of(std::string_view name);

// The ops of elementwise.glsl, by the function that computes them: shaders.cmake finds their cases.
struct ElementwiseOps {
  std::span<const uint32_t> moved, floating, f32, integers;
};
ElementwiseOps elementwise_ops();

inline constexpr int kModes = 3;  // a shader's MODE is below

// The data to make the pipelines of a kernel row, and the pipelines made so far. A row's `own` points to its recipe.
struct Recipe {
  const Shader* shader;
  uint32_t opcode;
  uint32_t modes;          // a bit for each of the kernel's modes
  uint8_t source, target;  // dtypes, of CAST
  mutable std::array<std::atomic<VkPipeline>, kModes> made{};

  Recipe(const Shader& its_shader, uint32_t its_opcode, uint32_t its_modes, uint8_t its_source = 0, uint8_t its_target = 0)
      : shader(&its_shader), opcode(its_opcode), modes(its_modes), source(its_source), target(its_target) {}
  VkPipeline of(uint32_t mode) const { return made[mode].load(std::memory_order_acquire); }
};

// An op's specialisation constants in common.glsl and cast.comp.
struct OpConstants {
  uint32_t op = 0, mode = 0, source = 0, target = 0;
};

class Pipelines {
 public:
  // directory: as CacheFile's.
  Pipelines(Device& device, const char* directory);

  // Compiles a module with floating numbers of `float_bits`. Throws BackendError if the driver refuses it. [any]
  VkPipeline compile(std::span<const uint32_t> module, int float_bits, const OpConstants& constants);

  // Makes the pipelines of the recipe's modes. Takes milliseconds for each pipeline. [any]
  void prepare(const Recipe& recipe);
  VkPipelineLayout layout() const { return layout_; }

  // Stores the compiled pipelines on disk, for later processes, if this is due: often while there are few pipelines, and a
  // second after the last compilation. [any]
  void save_if_due() noexcept {
    if (unsaved_.load(std::memory_order_relaxed)) [[unlikely]]
      save_if_late();
  }

 private:
  VkPipelineCache make_cache(std::span<const char> data) const;
  void save_if_late() noexcept;
  void save();

  Device& device_;
  VkPipelineLayout layout_ = nullptr;
  std::mutex mutex_;  // of recipes
  const CacheFile file_;
  VkPipelineCache cache_ = nullptr;  // the driver locks it; null without a file
  std::mutex saving_;
  std::atomic<uint32_t> unsaved_{0};                           // pipelines
  std::atomic<std::chrono::steady_clock::time_point> last_{};  // time of the last compilation
  uint32_t saved_ = 0;                                         // pipelines of this process; under saving_
};

}  // namespace plugrad::vulkan
