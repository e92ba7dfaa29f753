// An opened Vulkan device.
#pragma once
#include <backends/vulkan/pipelines.hpp>
#include <backends/vulkan/stream.hpp>

#include <plugrad/sdk/fusion.hpp>
#include <plugrad/sdk/list.hpp>

#include <deque>
#include <vector>

namespace plugrad::vulkan {

class VulkanBackend final : public Backend, public Fusions, public CallLists {
 public:
  explicit VulkanBackend(const Opening& opening);

  static DeviceCount count();
  static const void* extension(std::string_view name) noexcept;
  plugrad_device_info info() const override { return info_; }

  Rows kernels() const override { return rows_; }
  bool prepare(const KernelRow& row, const plugrad_signature& signature) override;

  plugrad_buffer* alloc(uint64_t bytes) override;
  void free(plugrad_buffer* buffer) noexcept override;
  void memory_info(uint64_t& free_bytes, uint64_t& total_bytes) override;
  void* pin(uint64_t bytes) override;
  void unpin(void* address) noexcept override;
  void copy(Stream* stream, const plugrad_copy& copy) override;

  std::unique_ptr<Stream> stream_create(uint32_t role) override;
  plugrad_status completed(Stream& stream, uint64_t& number) noexcept override;
  void wait(Stream& stream, Stream& other, uint64_t& number) override;
  void sync(Stream& stream, plugrad_failure& failure) override;

  const plugrad_kernel* fusion_kernel(OpenDevice& device, const plugrad_fusion& fusion) override;
  uint32_t fusion_reach(const plugrad_fusion& fusion) override;
  std::unique_ptr<CallList> make_list(Stream& stream, std::span<const plugrad_list_call> calls, uint32_t flags) override;

 private:
  void describe();
  Place place_of(const plugrad_place& place);

  Device device_;
  Heap heap_;
  Pipelines pipelines_;
  Batching batching_;
  plugrad_device_info info_;
  std::deque<Recipe> recipes_;  // the rows point to them
  std::vector<KernelRow> rows_;
  FusionKernels fusions_;
};

// Collects rows with their recipes.
class RowList {
 public:
  RowList(std::deque<Recipe>& recipes, std::vector<KernelRow>& rows) : recipes_(recipes), rows_(rows) {}

  // Adds the row. Its kernel uses the shader of this name in these modes.
  void add(KernelRow row, const std::string& shader, uint32_t modes = 1, uint8_t source = 0, uint8_t target = 0) {
    row.own = &recipes_.emplace_back(shader_of(shader), row.opcode, modes, source, target);
    rows_.push_back(row);
  }

 private:
  std::deque<Recipe>& recipes_;
  std::vector<KernelRow>& rows_;
};

// The rows of a file each.
void add_elementwise_rows(RowList& list, const Abilities& abilities);
void add_copy_rows(RowList& list, const Abilities& abilities);
void add_generator_rows(RowList& list, const Abilities& abilities);
void add_update_rows(RowList& list);
void add_indexing_rows(RowList& list, const Abilities& abilities);
void add_reduction_rows(RowList& list, const Abilities& abilities);
void add_product_rows(RowList& list, const Abilities& abilities);
void add_matrix_unit_rows(RowList& list);
void add_quantized_rows(RowList& list);
void add_line_rows(RowList& list);
void add_attention_rows(RowList& list);

// The end of a shader's name: of elements of this dtype, or of this many bytes.
std::string suffix_of(uint8_t dtype);
// The device's dtypes for arithmetic in shaders: floating dtypes, and all numbers.
std::vector<uint8_t> floating_dtypes(const Abilities& abilities);
std::vector<uint8_t> number_dtypes(const Abilities& abilities);
// Every dtype whose elements the device can move.
std::vector<uint8_t> stored_dtypes(const Abilities& abilities);

}  // namespace plugrad::vulkan
