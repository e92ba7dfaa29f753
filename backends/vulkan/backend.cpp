#include <backends/vulkan/backend.hpp>

#include <backends/vulkan/fusion.hpp>
#include <backends/vulkan/fusion_module.hpp>
#include <backends/vulkan/grid.hpp>
#include <backends/vulkan/list.hpp>

#include <plugrad/backends/vulkan.hpp>

#include <cstdio>

namespace plugrad::vulkan {
namespace {

constexpr uint64_t kAlignment = 64;

const Candidate& candidate_of(const Opening& opening) {
  opening.options.allow({"memory", "flush_to_zero", "batch", "eager", "emulate", "cache", "cooperative"});
  opening.options.integer("memory", 0, 0, INT64_MAX);  // enforced by the core
  opening.options.integer("flush_to_zero", 0, 0, 1);   // a hint; the driver decides whether the device flushes
  return Driver::get().devices().at(opening.index);
}

// Returns whether the option demands matrix units. Throws if the device lacks them.
bool demands_matrix_units(const Opening& opening) {
  if (!opening.options.integer("cooperative", 0, 0, 1)) return false;
  const Candidate& candidate = candidate_of(opening);
  if (candidate.abilities.matrix_units.rows) return true;
  throw BackendError(PLUGRAD_INVALID, std::string("option cooperative=1: '") + candidate.properties.deviceName +
                                          "' offers no cooperative matrices of f16 with sums of f32; leave the option out");
}

uint64_t address_of(const plugrad_place& place) { return reinterpret_cast<uint64_t>(place.buffer) + place.offset; }

VulkanStream& stream_of(Stream& stream) { return static_cast<VulkanStream&>(stream); }

bool is_known(uint32_t kind) { return kind == PLUGRAD_HOST || kind == PLUGRAD_PINNED || kind == PLUGRAD_DEVICE; }

void demand_places(const plugrad_copy& copy) {
  if (!is_known(copy.to.kind) || !is_known(copy.from.kind))
    throw BackendError(PLUGRAD_UNSUPPORTED, "a copy's place has an unknown kind");
  if (copy.to.kind != PLUGRAD_DEVICE && copy.from.kind != PLUGRAD_DEVICE)
    throw BackendError(PLUGRAD_UNSUPPORTED, "a copy needs device memory as source or target");
  if (copy.to.kind == copy.from.kind && copy.to.device != copy.from.device)
    throw BackendError(PLUGRAD_UNSUPPORTED, "Vulkan has no copy between two devices");
}

}  // namespace

VulkanBackend::VulkanBackend(const Opening& opening)
    : device_(candidate_of(opening), static_cast<uint32_t>(opening.options.integer("emulate", 0, 0, 3)),
              demands_matrix_units(opening)),
      heap_(device_), pipelines_(device_, opening.options.find("cache")), info_(host_info("", PLUGRAD_ASYNC)) {
  info_.dlpack_type = 0;
  batching_.ops = static_cast<uint32_t>(opening.options.integer("batch", batching_.ops, 1, 1000));
  batching_.eager = static_cast<uint32_t>(opening.options.integer("eager", batching_.eager, 1, 1000));
  describe();
  if (info_.dlpack_type) info_.dlpack_index = static_cast<int32_t>(opening.index);
  const Abilities& abilities = device_.candidate().abilities;
  RowList list(recipes_, rows_);
  add_elementwise_rows(list, abilities);
  add_copy_rows(list, abilities);
  add_generator_rows(list, abilities);
  add_update_rows(list);
  add_indexing_rows(list, abilities);
  add_reduction_rows(list, abilities);
  add_product_rows(list, abilities);
  add_quantized_rows(list);
  if (device_.matrix_units().rows) add_matrix_unit_rows(list);
  add_line_rows(list);
  add_attention_rows(list);
}

void VulkanBackend::describe() {
  const Candidate& candidate = device_.candidate();
  if (device_.arithmetic().flushes) info_.capabilities |= PLUGRAD_FLUSHES_DENORMALS;
  info_.alignment = kAlignment;
  info_.memory = heap_.installed();
  if (!candidate.is_software()) info_.dlpack_type = 7;  // kDLVulkan: a GPU, as DLPack's libraries understand it
  std::snprintf(info_.name, sizeof info_.name, "%.50s%s", candidate.properties.deviceName,
                candidate.is_software() ? " (software)" : "");
  std::snprintf(info_.identity, sizeof info_.identity, "%s", candidate.identity.c_str());
}

DeviceCount VulkanBackend::count() {
  const Driver& driver = Driver::get();
  return {static_cast<uint32_t>(driver.devices().size()), driver.devices().empty() ? driver.reason() : ""};
}

// A launch takes longer than the work on a small tensor, so every fusion pays.
const void* VulkanBackend::extension(std::string_view name) noexcept {
  constexpr uint32_t kContents =
      PLUGRAD_FUSION_REDUCTIONS | PLUGRAD_FUSION_ROWS | PLUGRAD_FUSION_ALIKE | PLUGRAD_FUSION_PRODUCTS;
  if (name == PLUGRAD_LISTS) return &kLists<VulkanBackend>;
  return name == PLUGRAD_FUSIONS ? &kFusions<VulkanBackend, kContents, 1, kChunk> : nullptr;
}

std::unique_ptr<CallList> VulkanBackend::make_list(Stream& stream, std::span<const plugrad_list_call> calls,
                                                   uint32_t flags) {
  if (flags & PLUGRAD_LIST_ONCE)
    throw BackendError(PLUGRAD_UNSUPPORTED, "a list that runs once is not faster than its calls");
  return std::make_unique<VulkanList>(device_, heap_, pipelines_.layout(), stream_of(stream), calls);
}

const plugrad_kernel* VulkanBackend::fusion_kernel(OpenDevice& device, const plugrad_fusion& fusion) {
  auto made = make_fusion(device, pipelines_, fusion);
  return made ? fusions_.keep(std::move(made)) : nullptr;
}

uint32_t VulkanBackend::fusion_reach(const plugrad_fusion& fusion) { return reach_of(fusion); }

bool VulkanBackend::prepare(const KernelRow& row, const plugrad_signature&) {
  pipelines_.save_if_due();
  pipelines_.prepare(*static_cast<const Recipe*>(row.own));
  return true;
}

plugrad_buffer* VulkanBackend::alloc(uint64_t bytes) {
  device_.demand();
  return reinterpret_cast<plugrad_buffer*>(heap_.allocate(bytes));
}
void VulkanBackend::free(plugrad_buffer* buffer) noexcept { heap_.free(reinterpret_cast<uint64_t>(buffer)); }

void VulkanBackend::memory_info(uint64_t& free_bytes, uint64_t& total_bytes) {
  total_bytes = heap_.installed();
  free_bytes = heap_.available();
}

void* VulkanBackend::pin(uint64_t bytes) {
  device_.demand();
  return heap_.pin(bytes);
}
void VulkanBackend::unpin(void* address) noexcept { heap_.unpin(address); }

Place VulkanBackend::place_of(const plugrad_place& place) {
  if (place.kind == PLUGRAD_DEVICE) return heap_.find(address_of(place));
  return heap_.find_pinned(reinterpret_cast<const void*>(address_of(place)));
}

void VulkanBackend::copy(Stream* stream, const plugrad_copy& copy) {
  demand_places(copy);
  VulkanStream& s = stream_of(*stream);
  s.demand_sound();
  if (copy.from.kind == PLUGRAD_HOST)
    s.upload(copy.number, place_of(copy.to), reinterpret_cast<const char*>(address_of(copy.from)), copy.bytes);
  else if (copy.to.kind == PLUGRAD_HOST)
    s.download(copy.number, reinterpret_cast<char*>(address_of(copy.to)), place_of(copy.from), copy.bytes);
  else s.copy(copy.number, place_of(copy.to), place_of(copy.from), copy.bytes);
}

std::unique_ptr<Stream> VulkanBackend::stream_create(uint32_t /*role*/) {
  device_.demand();
  return std::make_unique<VulkanStream>(device_, heap_, pipelines_.layout(), batching_);
}

plugrad_status VulkanBackend::completed(Stream& stream, uint64_t& number) noexcept {
  return stream_of(stream).completed(number);
}

void VulkanBackend::wait(Stream& stream, Stream& other, uint64_t& number) {
  stream_of(stream).demand_sound();
  stream_of(stream).wait_for(stream_of(other), number);
}

void VulkanBackend::sync(Stream& stream, plugrad_failure& failure) {
  stream_of(stream).sync(failure);
  pipelines_.save_if_due();
}

// --- Names and lists of dtypes, for the tables of rows.

std::string suffix_of(uint8_t dtype) {
  switch (dtype) {
    case PLUGRAD_F32: return "_f32";
    case PLUGRAD_F64: return "_f64";
    case PLUGRAD_I64: return "_i64";
    case PLUGRAD_I32: return "_i32";
    default: return "_u8";
  }
}

std::vector<uint8_t> floating_dtypes(const Abilities& abilities) {
  std::vector<uint8_t> list = {PLUGRAD_F32};
  if (abilities.f64) list.push_back(PLUGRAD_F64);
  return list;
}

std::vector<uint8_t> number_dtypes(const Abilities& abilities) {
  std::vector<uint8_t> list = floating_dtypes(abilities);
  list.insert(list.end(), {PLUGRAD_I64, PLUGRAD_I32});
  return list;
}

std::vector<uint8_t> stored_dtypes(const Abilities& abilities) {
  std::vector<uint8_t> list;
  for (const DTypeInfo& each : kDTypes)
    if (each.size != 2 || abilities.i16) list.push_back(each.dtype);
  return list;
}

}  // namespace plugrad::vulkan

extern "C" PLUGRAD_EXPORT const plugrad_backend* plugrad_vulkan_backend(const plugrad_host*) {
  static constexpr plugrad_backend table = plugrad::backend_table<plugrad::vulkan::VulkanBackend>("vulkan", "0.1.0");
  return &table;
}
